//! The bodies of the rollout API, as a trainer writes and reads them.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::raw;

/// A task: one instruction at one timestep of one case, to be run `num_samples` times.
///
/// A trainer that has a request of its own shape sends that with [`crate::Client::submit`] instead; the server names
/// in its warnings what it does not read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRequest {
    /// The task's id, chosen by the trainer; all sessions of a task share it.
    pub task_id: String,
    /// What the agent is asked to do.
    pub instruction: String,
    /// How many sessions to run, at least 1.
    pub num_samples: u32,
    /// How long one session may take, in seconds.
    pub timeout_seconds: f64,
    /// Which agent, model and settings.
    pub agent: AgentSpec,
    /// How the trajectory is built; absent = as the server is configured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub builder: Option<BuilderSpec>,
    /// Where the server delivers results; absent = nowhere, they are collected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub callback_url: Option<String>,
    /// What is carried on to each trace; `case_id` and `timestep` stand here too.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// Which agent runs, with which model and settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The name of the agent, as `pi`.
    pub harness: String,
    /// The model, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model_name: Option<String>,
    /// Settings of the session: `case_id`, `timestep`, `max_tokens`, `thinking` and the like.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Environment variables for the agent.
    #[serde(skip_serializing_if = "Environment::is_empty", default)]
    pub env: Environment,
}

/// Environment variables; printed for debugging as names only, since values may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How the trajectory of a session is built.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BuilderSpec {
    /// The name of the builder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub strategy: Option<String>,
    /// `end_of_turn_token_id`, `generation_prompt_glue_ids`.
    #[serde(default)]
    pub config: Map<String, Value>,
}

impl TaskRequest {
    /// A task of one sample and 600 seconds for the agent `harness` at timestep `timestep` of case `case_id`.
    ///
    /// Case and timestep are written to the settings and the metadata, which must agree.
    #[must_use]
    pub fn new(
        task_id: impl Into<String>,
        instruction: impl Into<String>,
        harness: impl Into<String>,
        case_id: &str,
        timestep: u32,
    ) -> Self {
        let at: Map<String, Value> =
            [("case_id".to_owned(), case_id.into()), ("timestep".to_owned(), timestep.into())].into_iter().collect();
        let mut metadata = at.clone();
        metadata.insert("prompt_source".to_owned(), "free".into());
        Self {
            task_id: task_id.into(),
            instruction: instruction.into(),
            num_samples: 1,
            timeout_seconds: 600.0,
            agent: AgentSpec { harness: harness.into(), settings: at, ..AgentSpec::default() },
            builder: None,
            callback_url: None,
            metadata,
        }
    }
}

/// What the server answers to a submit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SubmitAnswer {
    /// The task's id.
    pub task_id: String,
    /// `running`.
    pub status: TaskState,
    /// What the server ignored or replaced, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
#[non_exhaustive]
pub enum TaskState {
    /// Sessions are queued or under way.
    Running,
    /// Every session has ended.
    Completed,
    /// The task ended without what was asked for.
    Failed,
    /// A word that this client does not know.
    Other(String),
}

impl TaskState {
    /// Whether nothing more will happen.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl From<String> for TaskState {
    fn from(word: String) -> Self {
        match word.as_str() {
            "running" => Self::Running,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            _ => Self::Other(word),
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Other(word) => word,
        })
    }
}

/// A task and the session results that it has so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskStatus {
    /// The task's id.
    pub task_id: String,
    /// How far it is.
    pub status: TaskState,
    /// How many sessions it has.
    pub total_sessions: u64,
    /// How many of them have ended.
    pub completed_sessions: u64,
    /// The results, each the bytes in which the server sent it.
    pub results: Vec<RawResult>,
    /// Where the server keeps them.
    pub result_paths: Vec<String>,
}

/// One session result as it arrived, unread but for its name and status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawResult {
    /// `session_id`, when it is a string.
    pub session_id: Option<String>,
    /// `status`, when it is a string.
    pub status: Option<String>,
    /// `error`, when it is a string.
    pub error: Option<String>,
    /// The bytes of the result, a slice of the answer.
    pub bytes: Bytes,
}

impl RawResult {
    fn of(bytes: Bytes) -> Self {
        let mut out = Self { session_id: None, status: None, error: None, bytes };
        for (key, range) in raw::members(&out.bytes).unwrap_or_default() {
            let slot = match key.as_str() {
                "session_id" => &mut out.session_id,
                "status" => &mut out.status,
                "error" => &mut out.error,
                _ => continue,
            };
            *slot = serde_json::from_slice(&out.bytes[range]).ok();
        }
        out
    }
}

impl TaskStatus {
    /// Reads the answer of `GET /rollout/task/{id}` without parsing the results.
    ///
    /// # Errors
    /// A sentence that names the member which is missing or of the wrong type.
    pub fn from_bytes(body: Bytes) -> Result<Self, String> {
        let members = raw::members(&body).ok_or("it is no JSON object")?;
        // The last of repeated members counts, as for every JSON reader in this project.
        let slice =
            |key: &str| members.iter().rev().find(|(k, _)| k == key).map(|(_, range)| body.slice(range.clone()));
        fn read<'a, T: Deserialize<'a>>(key: &str, bytes: Option<&'a Bytes>) -> Result<T, String> {
            let bytes = bytes.ok_or_else(|| format!("member `{key}` is missing"))?;
            serde_json::from_slice(bytes).map_err(|e| format!("member `{key}`: {e}"))
        }
        let results = match slice("results") {
            Some(list) if &list[..] != b"null" => raw::elements(&list)
                .ok_or("member `results` is no array")?
                .into_iter()
                .map(|range| RawResult::of(list.slice(range)))
                .collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            task_id: read("task_id", slice("task_id").as_ref())?,
            status: read("status", slice("status").as_ref())?,
            total_sessions: read("total_sessions", slice("total_sessions").as_ref())?,
            completed_sessions: read("completed_sessions", slice("completed_sessions").as_ref())?,
            result_paths: slice("result_paths")
                .map(|b| read("result_paths", Some(&b)))
                .transpose()?
                .unwrap_or_default(),
            results,
        })
    }
}

/// One session of a task, on its way or ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session's id.
    pub session_id: String,
    /// The task it belongs to.
    #[serde(default)]
    pub task_id: String,
    /// REGISTERED, INITIALIZING, READY, RUNNING, POST_RUN, BUILDING, EVALUATING, COMPLETED, ERROR or TIMEOUT.
    pub status: String,
    /// The node that runs it.
    #[serde(default)]
    pub node_id: Option<String>,
    /// The reward, when an evaluator gave one.
    #[serde(default)]
    pub reward: Option<f64>,
    /// Milliseconds per stage.
    #[serde(default)]
    pub timing: Option<BTreeMap<String, Option<f64>>>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// The state of the whole server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Every task with its state.
    pub tasks: BTreeMap<String, TaskState>,
    /// What each stage of the pipeline is doing, as the server words it.
    #[serde(default)]
    pub pipeline: Map<String, Value>,
    /// The nodes, as the server words them.
    #[serde(default)]
    pub nodes: Vec<Value>,
    /// How many sessions are in each state, of all that the server knows.
    #[serde(default)]
    pub sessions: BTreeMap<String, u64>,
}

impl ServerStatus {
    /// One stage of the pipeline, when the server states it in numbers.
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<Stage> {
        Stage::deserialize(self.pipeline.get(name)?).ok()
    }
}

/// How busy one stage of the pipeline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Stage {
    /// Sessions waiting for it.
    pub queued: u64,
    /// Sessions in it.
    pub running: u64,
    /// How many it takes at once.
    pub limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_bytes() {
        let body = Bytes::from_static(
            b"{\"task_id\":\"t\",\"status\":\"completed\",\"total_sessions\":2,\"completed_sessions\":2,\"result_paths\":[\"a\"],\"results\":[ {\"session_id\":\"s1\", \"x\":NaN ,\"y\":1.50},{\"session_id\":5,\"status\":\"ERROR\",\"error\":\"gone\"} ]}",
        );
        let status = TaskStatus::from_bytes(body).unwrap();
        assert_eq!(
            (status.status.is_terminal(), status.total_sessions, status.result_paths.as_slice()),
            (true, 2, ["a".to_owned()].as_slice())
        );
        assert_eq!(&status.results[0].bytes[..], b"{\"session_id\":\"s1\", \"x\":NaN ,\"y\":1.50}");
        assert_eq!(status.results[0].session_id.as_deref(), Some("s1"));
        let second = &status.results[1];
        assert_eq!(
            (second.session_id.as_deref(), second.status.as_deref(), second.error.as_deref()),
            (None, Some("ERROR"), Some("gone"))
        );
    }

    #[test]
    fn a_missing_or_mistyped_member_is_named() {
        let read =
            |body: &'static str| TaskStatus::from_bytes(Bytes::from_static(body.as_bytes())).err().unwrap_or_default();
        assert_eq!(read("[]"), "it is no JSON object");
        assert_eq!(read("{\"task_id\":\"t\"}"), "member `status` is missing");
        assert!(read("{\"task_id\":3,\"status\":\"running\"}").starts_with("member `task_id`: invalid type"));
        assert_eq!(read("{\"results\":{}}"), "member `results` is no array");
    }

    #[test]
    fn values_of_the_environment_are_not_printed() {
        let env = Environment([("KEY".to_owned(), "canary".to_owned())].into());
        assert_eq!(format!("{env:?}"), "{\"KEY\"}");
    }

    #[test]
    fn a_new_request_states_the_case_in_settings_and_metadata() {
        let request = serde_json::to_value(TaskRequest::new("t", "do", "pi", "case_0001", 7)).unwrap();
        assert_eq!(
            request,
            serde_json::json!({"task_id": "t", "instruction": "do", "num_samples": 1, "timeout_seconds": 600.0,
                "agent": {"harness": "pi", "settings": {"case_id": "case_0001", "timestep": 7}},
                "metadata": {"case_id": "case_0001", "timestep": 7, "prompt_source": "free"}})
        );
    }
}
