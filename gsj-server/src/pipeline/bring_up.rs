//! One episode before there are pins: what the agent really sends, for a person to approve.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gsj_gateway::Recorded;
use gsj_trace::json::{Array, Value, ValueRef};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{init, run, verdict, write::write_whole};
use crate::{
    config::Config,
    error::ServerError,
    id::SessionId,
    preflight::{self, Purpose, Ready},
    server::Context,
    shared::Shared,
    store::Store,
};

/// Marks the metadata and the result of such an episode; also its status. No profile accepts a trace with another status
/// than `COMPLETED`.
const STATUS: &str = "BRING_UP";
const MARK: &str = "gsj_bring_up";
/// What the agent is asked; its first request is what counts, not the answer.
const INSTRUCTION: &str = "Look at this case file and say in one sentence what it is about.";
/// The longest answer, in tokens: one call is asked for, and only to see that the engine gives what a trace needs.
const ANSWER: u32 = 64;
/// The most calls of an agent that gives them up before they are answered.
const CALLS: u32 = 8;
/// How long the agent may take for its one call, a small model's first prompt on a busy machine included.
const TIMEOUT_S: u32 = 900;

/// Where to run the episode, and what keeps its parts.
#[derive(Debug, Clone)]
pub struct BringUp {
    /// The case, which must be among those of the configuration.
    pub case_id: String,
    /// The last visible page.
    pub timestep: u32,
    /// The split of the case, for the record.
    pub split: Option<String>,
    /// The folder that gets a folder for the episode; sandboxes of another server may run meanwhile elsewhere.
    pub folder: PathBuf,
}

/// What the episode left. Nothing of it was delivered: no trace, no quarantine, no task, no callback.
#[derive(Debug, Clone, PartialEq)]
pub struct BroughtUp {
    /// Its name.
    pub session: SessionId,
    /// Everything that is kept of it.
    pub folder: PathBuf,
    /// The log of its calls; the first line is the call with the agent's system prompt and roster.
    pub log: PathBuf,
    /// The marked result.
    pub result: PathBuf,
    /// The ids of the first prompt, as the engine gave them.
    pub prompt_ids: Vec<u32>,
    /// The ids that the engine sampled for it.
    pub sampled_ids: Vec<u32>,
    /// What the engine says of how the answer ended.
    pub finish_reason: Option<String>,
}

/// Why there is nothing to approve yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BringUpError {
    /// Something that every session needs is missing; as at the start of a server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The configuration takes no such task.
    #[error("the bring-up episode on `{case_id}` at timestep {timestep} is no task for this configuration: {reason}")]
    Task {
        /// The case.
        case_id: String,
        /// The last visible page.
        timestep: u32,
        /// The first thing that is wrong.
        reason: String,
    },
    /// The agent made no call that was answered whole.
    #[error("the bring-up episode came to nothing: {reason}; what it left is in `{folder}`")]
    Episode {
        /// What went wrong, of agent, sandbox or engine.
        reason: String,
        /// Where its transcript and its log lie.
        folder: PathBuf,
    },
    /// Its result could not be kept.
    #[error("keep the bring-up episode in `{path}`")]
    Keep {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Runs the agent of a configuration for one model call, in the real sandbox, against the real engine.
///
/// Needs no pins, no state store and no API, and the server of the same configuration may run meanwhile. The call is
/// answered by the engine, so that it also shows whether the engine gives token ids and log-probabilities; then the
/// agent is told that its session is over. Dropping the future kills the sandbox.
///
/// # Errors
/// [`BringUpError`]: the surroundings will not do, or the agent made no call.
pub async fn bring_up(mut config: Config, context: Context, wanted: &BringUp) -> Result<BroughtUp, BringUpError> {
    let _first = rustls::crypto::ring::default_provider().install_default();
    confine(&mut config, wanted);
    let clock = context.clock.clone();
    let checked = tokio::task::spawn_blocking(move || {
        let ready = preflight::check(&mut config, &context, Purpose::BringUp)?;
        let sandbox = |source| ServerError::Sandbox { cure: "see the reason below".to_owned(), source };
        gsj_sandbox::become_subreaper().map_err(sandbox)?;
        gsj_sandbox::reap(&ready.equipment.places.run).map_err(sandbox)?;
        // The lock is ours: whatever lies there is of an episode that was killed.
        clear(&ready.equipment.places.sessions);
        Ok::<_, ServerError>((config, ready))
    })
    .await;
    let keep = |path: &Path| {
        let path = path.to_owned();
        move |source| BringUpError::Keep { path, source }
    };
    let (config, ready) = checked.map_err(io::Error::other).map_err(keep(&wanted.folder))??;
    let Ready { equipment, agents, installed, lock, .. } = ready;
    let equipment = Arc::new(equipment);
    // Nobody gives orders to a server that takes no tasks.
    let (orders, _none) = mpsc::channel(1);
    let shared = Arc::new(Shared::new(config, clock, Store::closed(), agents, installed, None, orders));
    let session = SessionId::draw().map_err(keep(&wanted.folder))?;
    let folder = equipment.places.artifacts.join(session.as_str());
    let request = shared.read_request(&task(&shared.config, &session, wanted)).map_err(|details| {
        let reason = details.first().map(|detail| detail.msg.clone()).unwrap_or_default();
        BringUpError::Task { case_id: wanted.case_id.clone(), timestep: wanted.timestep, reason }
    })?;
    let seconds = request.timeout.as_secs_f64();
    let came_to_nothing = |reason: String| BringUpError::Episode { reason, folder: folder.clone() };
    let prepared = init::prepare(&shared, &equipment, &session, request, std::future::pending()).await;
    let ended = match prepared {
        Ok(mut prepared) => {
            prepared.metadata.insert(MARK.to_owned(), true.into());
            let cancel = CancellationToken::new();
            let ran = Box::pin(run::run(&shared, &equipment, &session, &prepared, None, &cancel)).await;
            let recorded = match &ran.gateway {
                Some(gateway) => Some(gateway.finish().await),
                None => None,
            };
            let transcript = prepared.artifacts.join("pi_transcript.jsonl");
            let verdict = verdict::judge(&ran, recorded.as_ref(), prepared.installed.manifest(), &transcript, seconds);
            let token = prepared.dressed.token.clone();
            let error = verdict.error.map(|text| text.replace(&token, "TOKEN"));
            Ok((prepared.metadata, recorded, error))
        }
        Err(reason) => Err(came_to_nothing(reason)),
    };
    let left = equipment.places.sessions.join(session.as_str());
    let removed = tokio::task::spawn_blocking(move || gsj_sandbox::remove_tree(&left)).await;
    if let Ok(Err(error)) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%session, %error, "the bring-up episode's folder could not be removed");
    }
    drop(lock);
    let (metadata, recorded, error) = ended?;
    let broken_off = match recorded.as_ref().map_or(0, |recorded| recorded.aborted) {
        0 => String::new(),
        n => format!(" ({n} calls were broken off before they were answered: is the engine too slow for the agent?)"),
    };
    let Some(recorded) = recorded.filter(|recorded| recorded.calls > 0) else {
        return Err(came_to_nothing(error.unwrap_or_else(|| "the agent made no call".to_owned()) + &broken_off));
    };
    let result = folder.join("result.json");
    let kept = marked(&session, &metadata, &recorded, error.as_deref());
    write_whole(&result, &[kept.to_string().as_bytes(), b"\n"]).map_err(keep(&result))?;
    let (prompt_ids, sampled_ids) = ids(&recorded);
    let log = folder.join("session.log");
    let finish_reason = finish(&log).map_err(keep(&log))?;
    Ok(BroughtUp { session, folder, log, result, prompt_ids, sampled_ids, finish_reason })
}

fn clear(sessions: &Path) {
    for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
        if let Err(error) = gsj_sandbox::remove_tree(&entry.path()) {
            tracing::warn!(folder = %entry.path().display(), %error, "what a killed episode left could not be removed");
        }
    }
}

/// Keeps everything of the episode in its own folder, and the episode to one call.
fn confine(config: &mut Config, wanted: &BringUp) {
    config.harness.installed_in = config.harness.installed_in.take().or_else(|| config.server.state_dir.clone());
    config.server.state_dir = Some(wanted.folder.clone());
    config.harness.artifacts_dir = Some(wanted.folder.clone());
    // An index of its own: a running server writes the other.
    config.retrieval.index_dir = None;
    // The other cases need not be indexed for it.
    config.estate.cases = Some(vec![wanted.case_id.clone()]);
    // An answer with any token ends the session. A call that the agent gave up, as it may with a slow engine, is no answer.
    config.limits.max_completion_tokens = 1;
    config.limits.max_turns = CALLS;
    config.engine.sampling.max_tokens = Some(config.engine.sampling.max_tokens.map_or(ANSWER, |most| most.min(ANSWER)));
}

fn task(config: &Config, session: &SessionId, wanted: &BringUp) -> serde_json::Value {
    let mut metadata = json!({"prompt_source": "free"});
    if let Some(split) = &wanted.split {
        metadata["split"] = json!(split);
    }
    json!({
        "task_id": format!("bring-up.{session}"),
        "instruction": INSTRUCTION,
        "timeout_seconds": TIMEOUT_S,
        "agent": {"harness": config.harness.agent, "settings": {"case_id": wanted.case_id, "timestep": wanted.timestep}},
        "metadata": metadata,
    })
}

/// The result as it is kept: without traces, and called what it is, so that nobody can train on it by mistake.
fn marked(
    session: &SessionId,
    metadata: &serde_json::Map<String, serde_json::Value>,
    recorded: &Recorded,
    ended: Option<&str>,
) -> serde_json::Value {
    json!({
        "session_id": session,
        "task_id": format!("bring-up.{session}"),
        "status": STATUS,
        "trajectory": {"status": STATUS, "metadata": {"task_metadata": metadata, MARK: true}, "traces": [], "error": null},
        // Being stopped after the first call is how it is meant to end.
        "ended": ended,
        "error": null,
        "metadata": {MARK: true, "calls": recorded.calls, "tokens": recorded.tokens},
    })
}

/// The ids of the first prompt, and those that were sampled for it, as the trajectory has them.
fn ids(recorded: &Recorded) -> (Vec<u32>, Vec<u32>) {
    let trace = recorded.trajectory.as_ref().and_then(|trajectory| trajectory.pointer("/traces/0"));
    let of = |key: &str| -> Vec<u32> {
        let list = trace.and_then(|trace| trace.get(key)).and_then(ValueRef::as_array).and_then(Array::as_u32s);
        list.map(<[u32]>::to_vec).unwrap_or_default()
    };
    let (mut prompt, mask, mut response) = (of("prompt_ids"), of("loss_mask"), of("response_ids"));
    let opening = mask.iter().take_while(|trained| **trained == 0).count().min(response.len());
    let sampled = response.split_off(opening);
    prompt.append(&mut response);
    (prompt, sampled)
}

/// How the first call of a log ended.
fn finish(log: &Path) -> io::Result<Option<String>> {
    let text = fs::read(log)?;
    let calls = text.split(|byte| *byte == b'\n').filter_map(|line| Value::parse(line).ok());
    let mut whole = calls.filter(|call| call.get("outcome").and_then(ValueRef::as_str) == Some("completed"));
    let reason = |call: Value<'_>| {
        call.pointer("/response/choices/0/finish_reason").and_then(ValueRef::as_str).map(str::to_owned)
    };
    Ok(whole.next().and_then(reason))
}
