//! The asynchronous client.

use std::time::Duration;

use bytes::Bytes;
use gsj_checks::Policy;
use gsj_pins::Pins;
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::collect::Collected;
use crate::error::ClientError;
use crate::http::{ClientOptions, Http};
use crate::task::{ServerStatus, SessionSummary, SubmitAnswer, TaskStatus};

/// The shortest pause between two questions, so that a poll time of zero does not become a busy loop.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause before trying to reach a server again that was away.
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// A connection to one rollout server. Cheap to clone; clones share the connection pool.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http,
}

impl Client {
    /// A client of the server at `base_url`, as `http://127.0.0.1:8080`, with the default limits.
    ///
    /// No connection is made yet. Proxies of the environment are not used and redirects are not followed.
    ///
    /// # Errors
    /// [`ClientError::BaseUrl`] or [`ClientError::Setup`].
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Self::with_options(base_url, ClientOptions::default())
    }

    /// As [`Client::new`], with limits of your own.
    ///
    /// # Errors
    /// [`ClientError::BaseUrl`] or [`ClientError::Setup`].
    pub fn with_options(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self { http: Http::new(base_url, options)? })
    }

    /// The server's URL, without credentials.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.http.base()
    }

    /// Whether the server answers.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] and the other errors of a call.
    pub async fn health(&self) -> Result<(), ClientError> {
        self.http.call(Method::GET, self.http.url(&["health"]), None).await.map(drop)
    }

    /// Submits a task: a [`crate::TaskRequest`], or any value of your own that serialises to one.
    ///
    /// It is sent once. While the task runs, submitting the same body again is answered with the same task, so a
    /// caller that saw [`ClientError::Interrupted`] may submit again at once.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] with the path of each field that the server refused; [`ClientError::Status`] with 409
    /// when another task of that id runs; the errors of a call.
    pub async fn submit<T: Serialize + ?Sized>(&self, task: &T) -> Result<SubmitAnswer, ClientError> {
        let segments = ["rollout", "task", "submit"];
        let body =
            serde_json::to_vec(task).map_err(|source| ClientError::Encode { url: self.name(&segments), source })?;
        self.read(Method::POST, &segments, Some(body)).await
    }

    /// The state of a task and the results that it has so far.
    ///
    /// # Errors
    /// [`ClientError::TaskNotFound`]; the errors of a call.
    pub async fn status(&self, task_id: &str) -> Result<TaskStatus, ClientError> {
        self.task_status(Method::GET, task_id).await
    }

    /// Cancels what of a task has not ended, and gives its state.
    ///
    /// # Errors
    /// [`ClientError::TaskNotFound`]; the errors of a call.
    pub async fn cancel(&self, task_id: &str) -> Result<TaskStatus, ClientError> {
        self.task_status(Method::DELETE, task_id).await
    }

    /// The sessions of a task, each with its state.
    ///
    /// # Errors
    /// [`ClientError::TaskNotFound`]; the errors of a call.
    pub async fn sessions(&self, task_id: &str) -> Result<Vec<SessionSummary>, ClientError> {
        #[derive(serde::Deserialize)]
        struct Answer {
            sessions: Vec<SessionSummary>,
        }
        check_id(task_id)?;
        let answer: Result<Answer, _> = self.read(Method::GET, &["tasks", task_id, "sessions"], None).await;
        answer.map(|a| a.sessions).map_err(|e| not_found(e, task_id))
    }

    /// The state of the whole server: tasks, pipeline, nodes.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn status_all(&self) -> Result<ServerStatus, ClientError> {
        self.read(Method::GET, &["rollout", "status"], None).await
    }

    /// Asks every `poll` for a task until it has ended, at most for `deadline`.
    ///
    /// A server that is away, restarting or overloaded is asked again with growing pauses of at most ten seconds, so a
    /// restart in mid-task is survived; only the deadline ends that. Each question fetches the results so far: for
    /// tasks with many large results choose a `poll` of several seconds.
    ///
    /// # Errors
    /// [`ClientError::Deadline`], whose message says what was seen last; [`ClientError::TaskNotFound`]; any error that
    /// waiting does not mend.
    pub async fn wait(&self, task_id: &str, poll: Duration, deadline: Duration) -> Result<TaskStatus, ClientError> {
        let started = Instant::now();
        let poll = poll.max(MIN_PAUSE);
        let mut backoff = MIN_PAUSE;
        let mut last = "nothing yet".to_owned();
        loop {
            let left = deadline.saturating_sub(started.elapsed());
            if left.is_zero() {
                // Asked for explicitly: a timer may let an answer through that comes within its resolution.
                return Err(ClientError::Deadline { task_id: task_id.to_owned(), after: deadline, last });
            }
            let pause = match tokio::time::timeout(left, self.status(task_id)).await {
                Ok(Ok(task)) if task.status.is_terminal() => return Ok(task),
                Ok(Ok(task)) => {
                    backoff = MIN_PAUSE;
                    last = format!(
                        "{}, {} of {} sessions ended",
                        task.status, task.completed_sessions, task.total_sessions
                    );
                    poll
                }
                Ok(Err(error)) if error.is_transient() => {
                    tracing::debug!(task_id, %error, "asking again");
                    last = error.to_string();
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                    backoff
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => continue,
            };
            tokio::time::sleep(pause.min(deadline.saturating_sub(started.elapsed()))).await;
        }
    }

    /// Fetches the results of a task and judges each of them anew, from the bytes in which it arrived.
    ///
    /// Does not wait: results that are not there yet are counted in [`Collected::missing`].
    ///
    /// # Errors
    /// [`ClientError::Pins`] when the pins cannot be used; [`ClientError::TaskNotFound`]; the errors of a call. What is
    /// wrong with a result is never an error.
    pub async fn collect(&self, task_id: &str, pins: &Pins, policy: &Policy) -> Result<Collected, ClientError> {
        let status = self.status(task_id).await?;
        Collected::judge(&status, pins, policy)
    }

    async fn task_status(&self, method: Method, task_id: &str) -> Result<TaskStatus, ClientError> {
        check_id(task_id)?;
        let segments = ["rollout", "task", task_id];
        let body = self.bytes(method, &segments, None).await.map_err(|e| not_found(e, task_id))?;
        TaskStatus::from_bytes(body).map_err(|reason| ClientError::Malformed { url: self.name(&segments), reason })
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        segments: &[&str],
        body: Option<Vec<u8>>,
    ) -> Result<T, ClientError> {
        let bytes = self.bytes(method, segments, body).await?;
        serde_json::from_slice(&bytes)
            .map_err(|e| ClientError::Malformed { url: self.name(segments), reason: e.to_string() })
    }

    async fn bytes(&self, method: Method, segments: &[&str], body: Option<Vec<u8>>) -> Result<Bytes, ClientError> {
        self.http.call(method, self.http.url(segments), body).await
    }

    fn name(&self, segments: &[&str]) -> String {
        self.http.name(segments)
    }
}

/// A URL library drops these segments, so that another resource would be asked.
fn check_id(task_id: &str) -> Result<(), ClientError> {
    if matches!(task_id, "" | "." | "..") { Err(ClientError::TaskId { task_id: task_id.to_owned() }) } else { Ok(()) }
}

fn not_found(error: ClientError, task_id: &str) -> ClientError {
    match error {
        ClientError::Status { url, status: 404, detail } if detail == "Task not found" => {
            ClientError::TaskNotFound { task_id: task_id.to_owned(), url }
        }
        other => other,
    }
}
