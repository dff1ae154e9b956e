//! What the server must not forget: tasks, their runs, and how far each session came.
//!
//! One thread owns the SQLite connection; everybody else sends it work over a bounded channel and
//! awaits the answer. That keeps blocking calls off the runtime's threads, makes each request one
//! transaction in a fixed order, and lets no lock be held across an await.
//! Every statement lives below this module, so that another database can take its place.

mod rows;
mod schema;
mod sessions;
mod tasks;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    thread,
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

pub(crate) use rows::{
    Cancelled, Ended, Finished, NewTask, PendingCallback, RunKey, SessionRow, StoredResult, Submitted, TaskFilter,
    TaskRow, TaskSummary,
};

/// How many requests may wait for the owner thread before a caller waits for room.
const QUEUE: usize = 256;

/// A piece of work for the owner thread; `None` asks it to close the database and end.
type Job = Option<Box<dyn FnOnce(&mut Connection) + Send>>;

/// Why the state could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database file cannot be opened or made.
    #[error("open the state store `{path}`: make the folder writable, or name another `state_dir`")]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer gsj wrote this file.
    #[error(
        "the state store `{path}` has schema {found}, this gsj knows up to {known}: run the gsj that wrote it, or name another `state_dir`"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The version that the file states.
        found: i64,
        /// The newest version that this program can read.
        known: i64,
    },
    /// The owner thread could not be started.
    #[error("start the thread that owns the state store")]
    Thread(#[source] io::Error),
    /// A statement failed.
    #[error("{doing} in the state store")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A row holds what this program never writes.
    #[error("the state store holds an unreadable {what}: {value}")]
    Row {
        /// Which column.
        what: &'static str,
        /// What stands there.
        value: String,
    },
    /// The owner thread has ended.
    #[error("the state store is closed")]
    Closed,
}

/// The handle to the state; cheap to clone, all clones speak to one thread.
#[derive(Clone)]
pub(crate) struct Store {
    jobs: mpsc::Sender<Job>,
}

/// The owner thread, to be ended in good order.
#[derive(Debug)]
pub(crate) struct StoreThread(thread::JoinHandle<()>);

impl Store {
    /// Opens (or makes) the database and starts its owner thread.
    pub(crate) fn open(path: &Path) -> Result<(Self, StoreThread), StoreError> {
        let mut connection = schema::open(path)?;
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let thread = thread::Builder::new()
            .name("gsj-store".to_owned())
            .spawn(move || {
                while let Some(Some(job)) = queue.blocking_recv() {
                    job(&mut connection);
                }
            })
            .map_err(StoreError::Thread)?;
        Ok((Self { jobs }, StoreThread(thread)))
    }

    /// A store that keeps nothing: whatever is asked of it is answered with [`StoreError::Closed`].
    pub(crate) fn closed() -> Self {
        Self { jobs: mpsc::channel(1).0 }
    }

    /// Runs one piece of work on the owner thread and awaits its answer.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, wait) = oneshot::channel();
        let job: Job = Some(Box::new(move |connection| {
            // A caller that went away does not undo what it asked for.
            let _gone = answer.send(work(connection));
        }));
        self.jobs.send(job).await.map_err(|_closed| StoreError::Closed)?;
        wait.await.map_err(|_dropped| StoreError::Closed)?
    }
}

impl StoreThread {
    /// Lets the thread finish what was asked of it, close the database, and end. Later requests are refused.
    pub(crate) async fn close(self, store: &Store) {
        // An error means that it has ended already.
        let _ended = store.jobs.send(None).await;
        let joined = tokio::task::spawn_blocking(move || self.0.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the thread that owns the state store panicked");
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Store")
    }
}

/// Names what was being done when a statement failed.
fn doing(what: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |source| StoreError::Statement { doing: what, source }
}

#[cfg(test)]
mod tests;
