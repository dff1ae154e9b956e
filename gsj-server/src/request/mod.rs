//! A task request: from the body as received to what the pipeline works with.
//!
//! Everything that can be wrong with a body is found here and answered with 422 and the paths of
//! the fields; what is legal but not done as asked becomes a warning or a stated substitution.

mod compare;
mod task;
mod walk;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use compare::substitutions;
pub(crate) use walk::{Detail, Step};

use crate::{config::Thinking, id::TaskId};

/// Keys of the metadata that only gsj writes.
const OWN_KEYS: [&str; 4] = ["session_id", "task_id", "evaluation", "policy_version"];
/// Longest time one session may be given, in seconds.
const LONGEST_S: f64 = 604_800.0;
/// Most sessions of one task.
const MOST_SAMPLES: i64 = 10_000;

/// What a request named and what this server used in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Substitution {
    pub(crate) field: String,
    pub(crate) asked: String,
    pub(crate) used: String,
}

/// A checked task request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRequest {
    pub(crate) task: TaskId,
    /// The prompt, word for word.
    pub(crate) instruction: String,
    pub(crate) samples: usize,
    /// Counted from the moment the agent runs.
    pub(crate) timeout: Duration,
    /// The agent that runs.
    pub(crate) harness: String,
    /// The model as the request names it, provider and all.
    pub(crate) model: Option<String>,
    pub(crate) settings: TaskSettings,
    /// Environment that the request gives its agent.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) end_of_turn: Option<i64>,
    pub(crate) glue: Vec<i64>,
    pub(crate) callback_url: Option<String>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) warnings: Vec<String>,
    pub(crate) substituted: Vec<Substitution>,
}

/// What a task settles about its episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskSettings {
    pub(crate) case_id: String,
    /// The last page that exists for this episode; from 1.
    pub(crate) timestep: u32,
    /// Tools that the model is offered, in this order.
    pub(crate) tools: Vec<String>,
    pub(crate) context_window: u32,
    pub(crate) max_tokens: u32,
    pub(crate) thinking: Thinking,
    /// Life of the retrieval token, in seconds.
    pub(crate) token_ttl_s: u32,
}

/// What a request is read against.
pub(crate) struct Rules<'a> {
    pub(crate) config: &'a crate::config::Config,
    /// The proper name of the agent that a name or alias means, or why there is none that can run.
    pub(crate) agent: &'a dyn Fn(&str) -> Result<String, String>,
}

impl Rules<'_> {
    /// Reads a body; the details name every field that will not do.
    pub(crate) fn read(&self, body: &Value) -> Result<TaskRequest, Vec<Detail>> {
        task::read(self, body)
    }
}

/// Says whether a case's name can stand in a path and a URL: letters, digits, `_`, `.`, `-`, no dot first.
pub(crate) fn is_case_name(name: &str) -> bool {
    name.len() <= 128
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !name.contains("..")
}

#[cfg(test)]
mod tests;
