//! The rows as the rest of the server sees them.

use std::path::PathBuf;

use rusqlite::Row;

use super::StoreError;
use crate::{
    id::{SessionId, TaskId},
    state::{SessionState, TaskState},
};

/// One run of a task: a task that is submitted again after it ended gets the next number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RunKey {
    pub(crate) task: TaskId,
    /// From 1.
    pub(crate) run: i64,
}

/// A task about to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewTask {
    pub(crate) task: TaskId,
    /// The request body as JSON text; the same body again is the same task.
    pub(crate) request: serde_json::Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) harness: String,
    pub(crate) model: Option<String>,
    pub(crate) callback_url: Option<String>,
    pub(crate) sessions: Vec<SessionId>,
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// Stored as a run of its own.
    New(RunKey),
    /// The same body is running already.
    Same(RunKey),
    /// Another body is running under this name.
    Conflict,
}

/// What a cancelled run still had open.
#[derive(Debug, Clone)]
pub(crate) struct Cancelled {
    pub(crate) key: RunKey,
    /// Whether this cancelled it; false when it had ended, or was cancelled already.
    pub(crate) first: bool,
    /// Sessions that nobody had taken, now in `POST_RUN`: the caller ends them.
    pub(crate) waiting: Vec<SessionRow>,
    /// Sessions that a worker has.
    pub(crate) active: Vec<SessionRow>,
}

/// A stored run.
#[derive(Debug, Clone)]
pub(crate) struct TaskRow {
    pub(crate) key: RunKey,
    pub(crate) state: TaskState,
    pub(crate) request: String,
    pub(crate) warnings: String,
    pub(crate) cancelled: bool,
}

/// A stored session.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) session: SessionId,
    pub(crate) key: RunKey,
    pub(crate) state: SessionState,
    /// Seconds since 1970.
    pub(crate) created_at: f64,
    pub(crate) error: Option<String>,
    /// The result's `timing` object as JSON text.
    pub(crate) timing: Option<String>,
    pub(crate) result: Option<StoredResult>,
}

/// Where the bytes of a session result lie: a part of a file, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredResult {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// How a session ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) state: SessionState,
    pub(crate) error: Option<String>,
    pub(crate) timing: String,
    pub(crate) accepted: bool,
    pub(crate) findings: usize,
    pub(crate) completions: usize,
    pub(crate) traces: usize,
    pub(crate) result: StoredResult,
}

/// Where the run stands after one of its sessions ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) state: TaskState,
    pub(crate) completed: u64,
    pub(crate) total: u64,
    /// Where this session's result is to be delivered.
    pub(crate) callback_url: Option<String>,
}

/// A result that somebody asked to be told of and has not yet taken.
#[derive(Debug, Clone)]
pub(crate) struct PendingCallback {
    pub(crate) session: SessionId,
    pub(crate) url: String,
    pub(crate) result: StoredResult,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskFilter {
    pub(crate) status: Option<TaskState>,
    pub(crate) harness: Option<String>,
    /// Only tasks created at or after this moment, seconds since 1970.
    pub(crate) since: Option<f64>,
    pub(crate) limit: u32,
}

/// A task as the list shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct TaskSummary {
    pub(crate) task_id: String,
    pub(crate) status: String,
    pub(crate) harness: String,
    pub(crate) model: Option<String>,
    pub(crate) num_samples: i64,
    pub(crate) completed_sessions: i64,
    pub(crate) errored_sessions: i64,
    /// Rewarding is the trainer's, so this stays null.
    pub(crate) mean_reward: Option<f64>,
    pub(crate) mean_traces: Option<f64>,
    pub(crate) mean_completions: Option<f64>,
    pub(crate) created_at: f64,
    pub(crate) updated_at: f64,
    pub(crate) source: String,
}

/// A session row before its texts are checked.
pub(super) struct RawSession {
    session: String,
    task: String,
    run: i64,
    state: String,
    created_at: f64,
    error: Option<String>,
    timing: Option<String>,
    path: Option<String>,
    offset: Option<i64>,
    length: Option<i64>,
}

/// The columns that [`RawSession::read`] takes, in its order.
pub(super) const SESSION_COLUMNS: &str = "session_id, task_id, run, state, created_at, error, timing, \
     result_path, result_offset, result_length";

impl RawSession {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            session: row.get(0)?,
            task: row.get(1)?,
            run: row.get(2)?,
            state: row.get(3)?,
            created_at: row.get(4)?,
            error: row.get(5)?,
            timing: row.get(6)?,
            path: row.get(7)?,
            offset: row.get(8)?,
            length: row.get(9)?,
        })
    }
}

impl TryFrom<RawSession> for SessionRow {
    type Error = StoreError;

    fn try_from(raw: RawSession) -> Result<Self, StoreError> {
        let result = match (raw.path, raw.offset, raw.length) {
            (Some(path), Some(offset), Some(length)) => Some(stored_result(path, offset, length)?),
            _ => None,
        };
        Ok(Self {
            session: session_id(raw.session)?,
            key: RunKey { task: task_id(raw.task)?, run: raw.run },
            state: SessionState::parse(&raw.state)
                .ok_or(StoreError::Row { what: "session state", value: raw.state })?,
            created_at: raw.created_at,
            error: raw.error,
            timing: raw.timing,
            result,
        })
    }
}

pub(super) fn task_id(text: String) -> Result<TaskId, StoreError> {
    TaskId::new(&text).ok_or(StoreError::Row { what: "task id", value: text })
}

pub(super) fn session_id(text: String) -> Result<SessionId, StoreError> {
    SessionId::stored(&text).ok_or(StoreError::Row { what: "session id", value: text })
}

pub(super) fn task_state(text: String) -> Result<TaskState, StoreError> {
    TaskState::parse(&text).ok_or(StoreError::Row { what: "task status", value: text })
}

pub(super) fn stored_result(path: String, offset: i64, length: i64) -> Result<StoredResult, StoreError> {
    let size = |value: i64| {
        u64::try_from(value).map_err(|_negative| StoreError::Row { what: "result size", value: value.to_string() })
    };
    Ok(StoredResult { path: PathBuf::from(path), offset: size(offset)?, length: size(length)? })
}
