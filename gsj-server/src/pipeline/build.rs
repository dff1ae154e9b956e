//! From a session's record to its stored result: reconstruct, compose, validate, write.

use std::path::PathBuf;

use gsj_checks::LaterText;
use gsj_trace::{
    json::{Object, Value, ValueRef},
    reconstruct::{self, Options},
};
use serde::Serialize;

use super::{equipment::Equipment, leak::SessionScan, verdict::Verdict, write::write_whole};
use crate::{
    id::{SessionId, TaskId},
    state::SessionState,
    store::{Ended, StoredResult},
};

/// Milliseconds that a session spent in each part of its life.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Timing {
    pub(super) register_to_init_queue_ms: f64,
    pub(super) init_ms: f64,
    pub(super) run_ms: f64,
    pub(super) postrun_ms: f64,
}

/// Everything that a result is made of.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) session: SessionId,
    pub(super) task: TaskId,
    pub(super) node_id: String,
    pub(super) verdict: Verdict,
    /// What the gateway recorded; absent when there was no gateway.
    pub(super) record: Option<Recording>,
    pub(super) calls: usize,
    /// The trace's metadata as far as it was known, for a session without a document.
    pub(super) trace_metadata: Value<'static>,
    /// The request's metadata and what gsj measured of the session as a whole.
    pub(super) metadata: Object<'static>,
    pub(super) timing: Timing,
    pub(super) options: Options,
    /// The session's prompt, when it is known.
    pub(super) prompt: Option<String>,
}

/// The calls of a session, as far as they are put together.
#[derive(Debug)]
pub(super) enum Recording {
    /// A completion session, to be built from.
    Completions(Value<'static>),
    /// The trajectory.
    Trajectory(Value<'static>),
}

impl Recording {
    pub(super) fn of(trajectory: Option<Value<'static>>, document: Value<'static>) -> Self {
        trajectory.map_or(Self::Completions(document), Self::Trajectory)
    }
}

/// A result that is composed and not written yet.
#[derive(Debug)]
pub(super) struct Composed {
    pub(super) state: SessionState,
    pub(super) error: Option<String>,
    pub(super) bytes: Vec<u8>,
    traces: usize,
    prompt: String,
}

impl Material {
    /// Builds the trajectory and the session result around it.
    pub(super) fn compose(self) -> Composed {
        let built = self.record.map(|record| match record {
            Recording::Trajectory(trajectory) => Ok(trajectory),
            Recording::Completions(document) => reconstruct::build(&document, &self.options),
        });
        let mut trajectory = match built {
            Some(Ok(trajectory)) => trajectory,
            Some(Err(error)) => {
                tracing::error!(session = %self.session, %error, "the trajectory could not be built");
                bare(&self.session, &self.trace_metadata)
            }
            None => bare(&self.session, &self.trace_metadata),
        };
        let text = |key: &str| trajectory.get(key).and_then(ValueRef::as_str).map(str::to_owned);
        let verdict = match (&self.verdict.state, text("status").as_deref()) {
            (SessionState::Completed, Some("COMPLETED")) => self.verdict,
            // What the builder found is the session's error when the run itself had none.
            (SessionState::Completed, _) => {
                Verdict::error(text("error").unwrap_or_else(|| "the trajectory could not be built".to_owned()))
            }
            _ => self.verdict,
        };
        if let Some(members) = trajectory.as_object_mut() {
            members.insert("status", verdict.state.as_str());
            members.insert("error", verdict.error.clone());
        }
        let traces = trajectory.get("traces").and_then(ValueRef::as_array).map_or(0, gsj_trace::json::Array::len);
        let mut timing = Object::new();
        timing.insert("register_to_init_queue_ms", self.timing.register_to_init_queue_ms);
        timing.insert("init_ms", self.timing.init_ms);
        timing.insert("run_ms", self.timing.run_ms);
        timing.insert("postrun_ms", self.timing.postrun_ms);
        let mut result = Object::new();
        result.insert("session_id", self.session.as_str());
        result.insert("task_id", self.task.as_str());
        result.insert("status", verdict.state.as_str());
        result.insert("trajectory", trajectory);
        result.insert("timing", timing);
        result.insert("node_id", self.node_id);
        result.insert("error", verdict.error.clone());
        result.insert("metadata", self.metadata);
        let bytes = Value::from(result).to_json().into_bytes();
        let prompt = self.prompt.unwrap_or_default();
        Composed { state: verdict.state, error: verdict.error, bytes, traces, prompt }
    }
}

/// The trajectory of a session of which nothing was recorded.
fn bare(session: &SessionId, metadata: &Value<'static>) -> Value<'static> {
    let mut inner = Object::new();
    inner.insert("builder", "prefix_merging");
    inner.insert("session_id", session.as_str().to_owned());
    inner.insert("task_metadata", metadata.clone());
    inner.insert("record_count", 0_i64);
    let mut trajectory = Object::new();
    trajectory.insert("status", "ERROR");
    trajectory.insert("metadata", inner);
    trajectory.insert("traces", Vec::<Value<'static>>::new());
    trajectory.insert("error", Value::Null);
    Value::from(trajectory)
}

/// A result that could not be stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreResultError {
    /// Its file could not be written.
    #[error("write the session result `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Validates a result and writes it whole where it belongs; what is returned is for the store.
pub(super) fn deliver(
    equipment: &Equipment,
    session: &SessionId,
    composed: &Composed,
    calls: usize,
    timing: Timing,
) -> Result<Ended, StoreResultError> {
    let name = format!("{session}.{}.json", equipment.pins.mode());
    let scan = equipment.leak_scan.as_ref().map(|scan| scan.of_session(session, &composed.prompt));
    let later = scan.as_ref().map(|scan| -> &dyn LaterText { scan });
    let validated = gsj_checks::validate_with(&composed.bytes, &equipment.pins, &equipment.policy, later);
    let (findings, fault) = match validated {
        Ok(verdict) => {
            let unreadable = verdict.unreadable.map(|why| format!("the result is no readable body: {}", why.code()));
            (verdict.findings, unreadable)
        }
        // Nothing is accepted while the pins cannot be used: the result waits in quarantine, with the reason.
        Err(error) => (Vec::new(), Some(format!("pins configuration: {error}"))),
    };
    // A scan that could not be made has found nothing, and that says nothing.
    let fault = fault.or_else(|| scan.and_then(SessionScan::fault));
    let accepted = composed.state == SessionState::Completed && findings.is_empty() && fault.is_none();
    let length = u64::try_from(composed.bytes.len()).unwrap_or(u64::MAX);
    let (path, head, tail): (PathBuf, Vec<u8>, &[u8]) = if accepted {
        (equipment.places.traces.join(name), Vec::new(), b"")
    } else {
        let mut head = Object::new();
        head.insert("findings", findings.iter().map(|finding| Value::from(finding.as_str())).collect::<Vec<_>>());
        if let Some(fault) = &fault {
            tracing::error!(%session, fault, "the result could not be validated");
            head.insert("error", fault.as_str());
        }
        let mut head = Value::from(head).to_json();
        head.truncate(head.len().saturating_sub(1));
        head.push_str(",\"session_result\":");
        (equipment.places.quarantine.join(name), head.into_bytes(), b"}")
    };
    write_whole(&path, &[&head, &composed.bytes, tail])
        .map_err(|source| StoreResultError::Write { path: path.clone(), source })?;
    let offset = u64::try_from(head.len()).unwrap_or(u64::MAX);
    Ok(Ended {
        state: composed.state,
        error: composed.error.clone(),
        timing: serde_json::to_string(&timing).unwrap_or_else(|_never| "{}".to_owned()),
        accepted,
        findings: findings.len(),
        completions: calls,
        traces: composed.traces,
        result: StoredResult { path, offset, length },
    })
}

/// Members of a JSON object of the request, as the trace crate holds them.
pub(super) fn members(map: &serde_json::Map<String, serde_json::Value>) -> Object<'static> {
    let text = serde_json::Value::Object(map.clone()).to_string();
    let parsed = Value::parse(text.as_bytes()).ok().map(Value::into_owned);
    parsed.and_then(|value| value.as_object().cloned()).unwrap_or_default()
}

/// Milliseconds rounded to microseconds, as results state them.
pub(super) fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
