//! The states of sessions and tasks, spelled as the wire spells them.

use serde::Serialize;

/// Where a session stands, in the order in which it passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum SessionState {
    /// Stored, and waiting for a worker.
    Registered,
    /// Its checkout, token and settings are being made.
    Initializing,
    /// Made ready, and waiting for a place to run.
    Ready,
    /// Its agent runs.
    Running,
    /// Its sandbox is ended and its deliverables are copied out.
    PostRun,
    /// Its trajectory is reconstructed, validated and written.
    Building,
    /// Ended with a trajectory.
    Completed,
    /// Ended without one that could be used; its error says why.
    Error,
    /// Ended by its deadline or a limit.
    Timeout,
}

impl SessionState {
    const ALL: [Self; 9] = [
        Self::Registered,
        Self::Initializing,
        Self::Ready,
        Self::Running,
        Self::PostRun,
        Self::Building,
        Self::Completed,
        Self::Error,
        Self::Timeout,
    ];

    /// Returns the wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "REGISTERED",
            Self::Initializing => "INITIALIZING",
            Self::Ready => "READY",
            Self::Running => "RUNNING",
            Self::PostRun => "POST_RUN",
            Self::Building => "BUILDING",
            Self::Completed => "COMPLETED",
            Self::Error => "ERROR",
            Self::Timeout => "TIMEOUT",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Says whether nothing follows after this state.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Error | Self::Timeout)
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskState {
    /// At least one of its sessions has not ended.
    Running,
    /// All have ended, at least one of them `COMPLETED`.
    Completed,
    /// All have ended, and none `COMPLETED`.
    Failed,
}

impl TaskState {
    /// Returns the wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Completed, Self::Failed].into_iter().find(|state| state.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_reads_back_from_its_spelling() {
        for state in SessionState::ALL {
            assert_eq!(SessionState::parse(state.as_str()), Some(state));
            let wire = serde_json::to_value(state).expect("a unit variant serialises");
            assert_eq!(wire, state.as_str(), "serde and as_str must agree");
        }
        assert_eq!(SessionState::parse("running"), None, "case matters on the wire");
    }
}
