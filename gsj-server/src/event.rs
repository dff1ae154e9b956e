//! What `GET /events` tells: changes of tasks and sessions, as they are stored.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    id::{SessionId, TaskId},
    state::{SessionState, TaskState},
};

/// How many events a slow listener may fall behind before it loses the oldest.
const BACKLOG: usize = 1024;

/// One change, as the stream carries it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// Seconds since 1970.
    pub(crate) at: f64,
    pub(crate) task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<SessionId>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completed_sessions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_sessions: Option<u64>,
}

impl Event {
    /// A session changed its state.
    pub(crate) fn session(at: f64, task: &TaskId, session: &SessionId, state: SessionState) -> Self {
        Self {
            kind: "session.state_changed",
            at,
            task_id: task.clone(),
            session_id: Some(session.clone()),
            status: state.as_str(),
            completed_sessions: None,
            total_sessions: None,
        }
    }

    /// A task was created, moved on or ended; `kind` is the wire's event name.
    pub(crate) fn task(
        kind: &'static str,
        at: f64,
        task: &TaskId,
        state: TaskState,
        completed: u64,
        total: u64,
    ) -> Self {
        Self {
            kind,
            at,
            task_id: task.clone(),
            session_id: None,
            status: state.as_str(),
            completed_sessions: Some(completed),
            total_sessions: Some(total),
        }
    }
}

/// Hands events to every listener; nobody listening is no error, and nobody is waited for.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<Arc<Event>>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }

    pub(crate) fn publish(&self, event: Event) {
        // An error here means only that nobody listens.
        let _nobody = self.0.send(Arc::new(event));
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.0.subscribe()
    }
}
