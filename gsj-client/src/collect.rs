//! Judging what came back, a second time and on the trainer's side.

use bytes::Bytes;
use gsj_checks::{Policy, validate};
use gsj_pins::Pins;
use gsj_trace::json::{ReadError, Value};

use crate::error::ClientError;
use crate::task::{RawResult, TaskState, TaskStatus};

/// The results of a task, sorted by what they are good for.
///
/// When the server sent two results of one session, only the last is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Collected {
    /// The task.
    pub task_id: String,
    /// How far the task was when it was asked.
    pub status: TaskState,
    /// Results without a finding, ready to train on.
    pub accepted: Vec<Item>,
    /// Results of sessions that completed, but with findings.
    pub rejected: Vec<Rejected>,
    /// Sessions that did not complete.
    pub failed: Vec<Failed>,
    /// How many sessions have no result yet.
    pub missing: u64,
}

/// One session result in the bytes in which it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// The session, when its result names one.
    pub session_id: Option<String>,
    /// The result, exactly as sent: what is stored, hashed and judged.
    pub bytes: Bytes,
}

impl Item {
    /// Reads the result, with the leniency of the validators.
    ///
    /// # Errors
    /// When the bytes are no JSON; an accepted result is.
    pub fn parse(&self) -> Result<Value<'_>, ReadError> {
        Value::parse(&self.bytes)
    }
}

/// A result with findings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// The result.
    pub item: Item,
    /// Why it is not accepted; never empty. For a body that cannot be read, its code (`invalid_json`, `too_deep`,
    /// `not_an_object`).
    pub findings: Vec<String>,
}

/// A session that did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed {
    /// The result, with whatever trajectory could be built.
    pub item: Item,
    /// `ERROR`, `TIMEOUT`, or what else the result says.
    pub status: String,
    /// Why, in the server's words.
    pub error: Option<String>,
    /// What the validators say of it.
    pub findings: Vec<String>,
}

impl Collected {
    /// Judges the results of a task from their bytes.
    ///
    /// Pure and without waiting: a caller with many large results may run it on a thread of its own.
    ///
    /// # Errors
    /// [`ClientError::Pins`] when the pins cannot be used.
    pub fn judge(status: &TaskStatus, pins: &Pins, policy: &Policy) -> Result<Self, ClientError> {
        let mut out = Self {
            task_id: status.task_id.clone(),
            status: status.status.clone(),
            accepted: Vec::new(),
            rejected: Vec::new(),
            failed: Vec::new(),
            missing: status.total_sessions.saturating_sub(status.results.len() as u64),
        };
        for (at, result) in status.results.iter().enumerate() {
            let superseded = result.session_id.is_some()
                && status.results[at + 1..].iter().any(|later| later.session_id == result.session_id);
            if !superseded {
                out.sort_in(result, pins, policy)?;
            }
        }
        Ok(out)
    }

    fn sort_in(&mut self, result: &RawResult, pins: &Pins, policy: &Policy) -> Result<(), ClientError> {
        let verdict = validate(&result.bytes, pins, policy)
            .map_err(|source| ClientError::Pins { task_id: self.task_id.clone(), source })?;
        let item = Item { session_id: verdict.session_id.clone(), bytes: result.bytes.clone() };
        if verdict.accepted() {
            self.accepted.push(item);
            return Ok(());
        }
        let mut findings = verdict.findings;
        findings.extend(verdict.unreadable.map(|why| why.code().to_owned()));
        match &result.status {
            Some(status) if status != "COMPLETED" => {
                self.failed.push(Failed { item, status: status.clone(), error: result.error.clone(), findings });
            }
            _ => self.rejected.push(Rejected { item, findings }),
        }
        Ok(())
    }

    /// Whether every session of the task came back accepted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.rejected.is_empty() && self.failed.is_empty()
    }
}
