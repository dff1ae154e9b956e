//! From how a run ended to what its session is called, and why.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use gsj_gateway::{FailureKind, Recorded};

use super::run::{Ending, Ran};
use crate::{
    agent::{AgentManifest, Outcome},
    state::SessionState,
};

/// How much of a transcript's end is read to judge it; the last message and what follows it must fit.
const JUDGED: u64 = 32 << 20;

/// The state that a session ends in, with the sentence for whoever asks why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) state: SessionState,
    pub(super) error: Option<String>,
}

impl Verdict {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { state: SessionState::Error, error: Some(text.into()) }
    }

    /// A session that was cancelled in a state.
    pub(super) fn cancelled(state: SessionState) -> Self {
        Self::error(format!("cancelled: the task was cancelled while the session was {}", state.as_str()))
    }

    /// A session that the server's end cut off in a state.
    pub(super) fn interrupted(state: SessionState) -> Self {
        Self::error(format!("interrupted: the server stopped while the session was {}", state.as_str()))
    }
}

/// Judges a run: by what ended it, then by what the gateway saw, then by what the agent itself says.
pub(super) fn judge(
    ran: &Ran,
    recorded: Option<&Recorded>,
    manifest: &AgentManifest,
    transcript: &Path,
    seconds: f64,
) -> Verdict {
    let failure = recorded.and_then(|recorded| recorded.failure.as_ref());
    let exit = match (&ran.ending, failure) {
        (Ending::NotStarted(error), _) => return Verdict::error(error.clone()),
        (Ending::Cancelled, _) => return Verdict::cancelled(SessionState::Running),
        (Ending::Stopping, _) => return Verdict::interrupted(SessionState::Running),
        (Ending::Deadline, _) => {
            return Verdict {
                state: SessionState::Timeout,
                error: Some(format!("timeout: the agent ran longer than {seconds} s")),
            };
        }
        // An agent that is told of a failure ends, and its end may be seen first.
        (Ending::Failed(failure), _) | (Ending::Exited(_), Some(failure)) => {
            let state = if failure.kind == FailureKind::Limit { SessionState::Timeout } else { SessionState::Error };
            let error = match failure.limit {
                Some(limit) => format!("{limit}: {failure}"),
                None => failure.to_string(),
            };
            return Verdict { state, error: Some(error) };
        }
        (Ending::Exited(exit), None) => exit,
    };
    let said = ran.stderr.last_line().map(|line| format!(": {line}")).unwrap_or_default();
    if recorded.is_none_or(|recorded| recorded.calls == 0) {
        return Verdict::error(format!(
            "no_model_call: the agent ended ({exit}) without one answered model call{said}"
        ));
    }
    if ran.stdout.dropped > 0 {
        return Verdict::error(format!(
            "agent failed: its output is longer than `limits.transcript_bytes`, {} bytes were cut off",
            ran.stdout.dropped
        ));
    }
    let output = match tail(transcript) {
        Ok(output) => output,
        Err(error) => return Verdict::error(format!("read the transcript `{}`: {error}", transcript.display())),
    };
    match manifest.judge(&output) {
        Outcome::Success { .. } => Verdict { state: SessionState::Completed, error: None },
        Outcome::Failed { reason } => Verdict::error(format!("agent failed: {reason} ({exit}){said}")),
    }
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(JUDGED)))?;
    let mut bytes = Vec::new();
    file.take(JUDGED).read_to_end(&mut bytes)?;
    Ok(bytes)
}
