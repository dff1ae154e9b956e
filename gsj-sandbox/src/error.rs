//! What can go wrong between a spec and a running command.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A sandbox that could not be prepared, started or ended.
///
/// [`SandboxError::hint`] holds the cure where one is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The spec itself cannot be carried out by any machine.
    #[error("sandbox spec: {what}")]
    Invalid {
        /// The field and what is wrong with it.
        what: String,
    },
    /// A program that the backend needs is absent or too old.
    #[error("{what}")]
    BackendMissing {
        /// What was looked for, and where.
        what: String,
        /// The command that installs it.
        cure: String,
    },
    /// The kernel or its configuration refuses what the backend needs.
    #[error("user namespaces do not work here: {reason}")]
    UserNamespaces {
        /// What was found, with the backend's own words.
        reason: String,
        /// The command that allows it.
        cure: String,
    },
    /// A path that is to be mounted cannot be reached by the sandbox's user.
    #[error("`{path}` cannot be reached by uid {uid}: `{blocked_at}` has mode {mode:04o}")]
    Unreachable {
        /// The path that was to be mounted.
        path: PathBuf,
        /// The user that the sandbox runs as.
        uid: u32,
        /// The folder on the way that is closed to it.
        blocked_at: PathBuf,
        /// That folder's permission bits.
        mode: u32,
    },
    /// A system call failed.
    #[error("{doing}")]
    Io {
        /// What was being done to which thing.
        doing: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The backend ended before the init reported.
    #[error("{backend} could not set up the sandbox: {detail}")]
    Setup {
        /// The backend's name.
        backend: &'static str,
        /// Its own words, or how it ended.
        detail: String,
    },
    /// The init inside the sandbox could not do its part.
    #[error("sandbox init: {detail}")]
    Init {
        /// What it was doing, and the system's answer.
        detail: String,
    },
    /// The sandbox came up, but what the init measured inside is not what was asked for.
    #[error("the sandbox is not sealed: {detail}")]
    NotSealed {
        /// What was measured.
        detail: String,
    },
    /// The sandbox did not come up in time.
    #[error("the sandbox was not up within {} s", .after.as_secs_f32())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The launcher's thread has ended.
    #[error("the sandbox launcher has stopped")]
    Closed,
}

impl SandboxError {
    /// Returns what to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::BackendMissing { cure, .. } | Self::UserNamespaces { cure, .. } => Some(cure.clone()),
            Self::Unreachable { blocked_at, .. } => Some(format!(
                "keep it below folders that everybody may enter, or run: chmod o+x {}",
                blocked_at.display()
            )),
            Self::Timeout { .. } => {
                Some("start fewer sandboxes at once, or raise the launcher's start timeout".to_owned())
            }
            _ => None,
        }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    /// Returns a closure for `map_err` that says what was being done.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { doing: doing.into(), source: source.into() }
    }
}
