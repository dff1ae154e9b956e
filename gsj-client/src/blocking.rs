//! The same client for programs without an async runtime.

use std::time::Duration;

use gsj_checks::Policy;
use gsj_pins::Pins;
use serde::Serialize;

use crate::collect::Collected;
use crate::error::ClientError;
use crate::http::ClientOptions;
use crate::task::{ServerStatus, SessionSummary, SubmitAnswer, TaskStatus};

/// A connection to one rollout server whose calls block until they are answered.
///
/// Each method is the one of [`crate::Client`] with the same name. A call from inside an async runtime gives
/// [`ClientError::InsideRuntime`] instead of stopping that runtime.
#[derive(Debug)]
pub struct Client {
    inner: crate::Client,
    /// Taken only when dropped.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Client {
    /// A client of the server at `base_url`, with a runtime of its own on the calling thread.
    ///
    /// # Errors
    /// [`ClientError::Runtime`] and those of [`crate::Client::new`].
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Self::with_options(base_url, ClientOptions::default())
    }

    /// As [`Client::new`], with limits of your own.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_options(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let inner = crate::Client::with_options(base_url, options)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Runtime)?;
        Ok(Self { inner, runtime: Some(runtime) })
    }

    /// The server's URL, without credentials.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.inner.base_url()
    }

    /// See [`crate::Client::health`].
    ///
    /// # Errors
    /// As there.
    pub fn health(&self) -> Result<(), ClientError> {
        self.block(self.inner.health())
    }

    /// See [`crate::Client::submit`].
    ///
    /// # Errors
    /// As there.
    pub fn submit<T: Serialize + ?Sized>(&self, task: &T) -> Result<SubmitAnswer, ClientError> {
        self.block(self.inner.submit(task))
    }

    /// See [`crate::Client::status`].
    ///
    /// # Errors
    /// As there.
    pub fn status(&self, task_id: &str) -> Result<TaskStatus, ClientError> {
        self.block(self.inner.status(task_id))
    }

    /// See [`crate::Client::cancel`].
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&self, task_id: &str) -> Result<TaskStatus, ClientError> {
        self.block(self.inner.cancel(task_id))
    }

    /// See [`crate::Client::sessions`].
    ///
    /// # Errors
    /// As there.
    pub fn sessions(&self, task_id: &str) -> Result<Vec<SessionSummary>, ClientError> {
        self.block(self.inner.sessions(task_id))
    }

    /// See [`crate::Client::status_all`].
    ///
    /// # Errors
    /// As there.
    pub fn status_all(&self) -> Result<ServerStatus, ClientError> {
        self.block(self.inner.status_all())
    }

    /// See [`crate::Client::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&self, task_id: &str, poll: Duration, deadline: Duration) -> Result<TaskStatus, ClientError> {
        self.block(self.inner.wait(task_id, poll, deadline))
    }

    /// See [`crate::Client::collect`].
    ///
    /// # Errors
    /// As there.
    pub fn collect(&self, task_id: &str, pins: &Pins, policy: &Policy) -> Result<Collected, ClientError> {
        self.block(self.inner.collect(task_id, pins, policy))
    }

    fn block<T>(&self, call: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        match &self.runtime {
            Some(runtime) if tokio::runtime::Handle::try_current().is_err() => runtime.block_on(call),
            _ => Err(ClientError::InsideRuntime),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A plain drop waits, which a runtime around us answers with a panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
