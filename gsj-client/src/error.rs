//! What can go wrong between a trainer and a rollout server.

use std::fmt;
use std::time::Duration;

/// Why a call to a rollout server gave no answer that can be used.
///
/// URLs in messages never hold user names, passwords or queries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The base URL cannot be used.
    #[error("`{url}` is no base URL of a rollout server ({reason}); give one like http://127.0.0.1:8080")]
    BaseUrl {
        /// The URL as given, without credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client could not be built, as when no root certificate is installed for an https URL.
    #[error("set up an HTTP client for {url}")]
    Setup {
        /// The server's URL.
        url: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The task id cannot stand in a path of the API.
    #[error("`{task_id}` cannot be a task id: it must be neither empty nor `.` nor `..`")]
    TaskId {
        /// The id as given.
        task_id: String,
    },
    /// The request could not be written as JSON.
    #[error("write the request for {url} as JSON")]
    Encode {
        /// The URL that was to be called.
        url: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// No connection could be made. The source is the innermost cause alone, as `Connection refused`: the layers around it
    /// only repeat that connecting failed.
    #[error("cannot reach the rollout server at {url}; check the address, and that `gsj serve` runs there")]
    Unreachable {
        /// The URL that was called.
        url: String,
        /// The cause.
        #[source]
        source: ConnectError,
    },
    /// The connection broke before the whole answer had arrived; whether the server acted is unknown.
    #[error("the connection to {url} broke before the whole answer had arrived")]
    Interrupted {
        /// The URL that was called.
        url: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// One call took longer than the client allows for a call.
    #[error("{url} did not answer within {after:?}")]
    Slow {
        /// The URL that was called.
        url: String,
        /// The time allowed.
        after: Duration,
    },
    /// The answer is larger than the client accepts.
    #[error("the answer of {url} is larger than {limit} bytes; raise `ClientOptions::max_answer_bytes`")]
    TooLarge {
        /// The URL that was called.
        url: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The server knows no such task (404).
    #[error("the rollout server knows no task `{task_id}` ({url} answered 404)")]
    TaskNotFound {
        /// The id asked for.
        task_id: String,
        /// The URL that was called.
        url: String,
    },
    /// The server refused fields of the request (422).
    #[error("{url} refused the request: {}", join(.details))]
    Invalid {
        /// The URL that was called.
        url: String,
        /// One entry per field.
        details: Vec<FieldError>,
    },
    /// Any other status that is not a success, 409 among them: another body was sent for a task that runs.
    #[error("{url} answered {status}: {detail}")]
    Status {
        /// The URL that was called.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The server's `detail` (or `error`) text, else the beginning of the body.
        detail: String,
    },
    /// The answer is not what the API promises.
    #[error("the answer of {url} cannot be read: {reason}")]
    Malformed {
        /// The URL that was called.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The task did not end in the time given to [`crate::Client::wait`].
    #[error("task `{task_id}` did not end within {after:?}; last seen: {last}")]
    Deadline {
        /// The task.
        task_id: String,
        /// The time that was given.
        after: Duration,
        /// The last state seen, or the last error.
        last: String,
    },
    /// The pins cannot be used, so nothing was judged.
    #[error("judge the results of task `{task_id}`")]
    Pins {
        /// The task.
        task_id: String,
        /// The fault, naming file and key.
        #[source]
        source: gsj_pins::PinsError,
    },
    /// A blocking call was made on a thread that drives an async runtime.
    #[error("a blocking call inside an async runtime would stop it; use `gsj_client::Client` there")]
    InsideRuntime,
    /// The runtime of the blocking client could not be started.
    #[error("start the runtime of the blocking client")]
    Runtime(#[source] std::io::Error),
}

impl ClientError {
    /// Whether the same call may succeed later without anybody changing anything: the server is away, slow, or says
    /// that it is overloaded or restarting.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } | Self::Slow { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502..=504),
            _ => false,
        }
    }
}

/// Why no connection could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ConnectError {
    reason: String,
}

impl ConnectError {
    /// Keeps the innermost cause of an error.
    pub(crate) fn innermost(error: &dyn std::error::Error) -> Self {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self { reason: cause.to_string() }
    }
}

/// One field that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field, as `agent.settings.timestep`; empty when the server named none.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
    /// The server's name for the kind of error, as `missing`.
    pub kind: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

fn join(details: &[FieldError]) -> String {
    details.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Reads the `detail` of a 422 answer: a list of `{loc, msg, type}`, or a text.
pub(crate) fn field_errors(detail: &serde_json::Value) -> Vec<FieldError> {
    let Some(list) = detail.as_array() else {
        return vec![FieldError { path: String::new(), message: text(detail), kind: String::new() }];
    };
    list.iter()
        .map(|entry| {
            let mut path: Vec<String> =
                entry["loc"].as_array().map(|loc| loc.iter().map(text).collect()).unwrap_or_default();
            if path.len() > 1 && path[0] == "body" {
                path.remove(0);
            }
            FieldError {
                path: path.join("."),
                message: entry.get("msg").map_or_else(|| text(entry), text),
                kind: entry["type"].as_str().unwrap_or_default().to_owned(),
            }
        })
        .collect()
}

/// A JSON value as a person reads it: strings without quotes.
pub(crate) fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
