//! Index runs: one at a time, beside the runtime's threads, while the library that is there goes on being served.

use super::{Reindex, Service, Shared};
use crate::{Library, Progress};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::{error, info};

/// Why an index could not be made, in whatever words its source has.
pub type IndexFault = Box<dyn Error + Send + Sync>;

/// Where a service's libraries come from. Closures that give a library are sources.
pub trait IndexSource: Send + 'static {
    /// Reads everything anew. Runs on a thread that may block, never twice at once.
    ///
    /// # Errors
    /// What is wrong, in words for operators: the text is shown to those with an admin token.
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault>;

    /// Makes the library that [`Self::index`] gave last the one that is served, by calling `publish`. Whoever keeps
    /// something in step with the library changes it here.
    fn switch(&mut self, publish: &mut dyn FnMut()) {
        publish();
    }
}

impl<F> IndexSource for F
where
    F: FnMut(&Progress) -> Result<Library, IndexFault> + Send + 'static,
{
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault> {
        self(progress)
    }
}

/// Carries out the index runs of a service. Dropping it ends them without waiting; [`Self::stop`] waits.
///
/// While a run goes on the library that is there is served; it is replaced in one step by a whole one. A run that fails
/// changes nothing but what `/health` says to operators, unless it was the first.
#[derive(Debug)]
pub struct Indexer {
    service: Service,
    bell: Arc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Starts to wait for requests; the first run begins when it is asked for.
    ///
    /// Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(service: &Service, source: impl IndexSource) -> Self {
        let bell = Arc::clone(&service.shared.bell);
        service.shared.board.attach();
        let task = tokio::spawn(carry_out(Arc::clone(&service.shared), Arc::new(Mutex::new(source))));
        Self { service: service.clone(), bell, task: Some(task) }
    }

    /// Asks for a run.
    pub fn reindex(&self) -> Reindex {
        self.service.reindex()
    }

    /// Ends the run that goes on before its next case, and waits for that.
    pub async fn stop(mut self) {
        self.close();
        if let Some(task) = self.task.take() {
            // A panic of the task is a run less, and was logged.
            let _ended = task.await;
        }
    }

    fn close(&self) {
        self.service.shared.board.close();
        self.bell.notify_one();
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.close();
            task.abort();
        }
    }
}

async fn carry_out(shared: Arc<Shared>, source: Arc<Mutex<impl IndexSource>>) {
    loop {
        while let Some(progress) = shared.board.running() {
            let (shared_too, source) = (Arc::clone(&shared), Arc::clone(&source));
            let run = tokio::task::spawn_blocking(move || one(&shared_too, &source, &progress));
            let failed = match run.await {
                Ok(failed) => failed,
                Err(_) => Some("the run broke off; the log says where".to_owned()),
            };
            shared.metrics.index_run(failed.is_none());
            if let Some(failed) = &failed {
                error!(target: "gsj_retrieval", event = "index", failed, "the index was not made anew");
            }
            shared.board.end(failed);
        }
        if shared.board.is_closed() {
            return;
        }
        shared.bell.notified().await;
    }
}

/// One run; gives why it failed.
fn one(shared: &Shared, source: &Mutex<impl IndexSource>, progress: &Progress) -> Option<String> {
    let started = Instant::now();
    // What a run that panicked left in a source is the source's to bear: it only reads.
    let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
    let library = match source.index(progress) {
        Ok(library) => library,
        Err(fault) => return Some(sentence(&*fault)),
    };
    log(&library, started.elapsed());
    let mut library = Some(library);
    source.switch(&mut || {
        if let Some(library) = library.take() {
            shared.board.publish(library);
        }
    });
    None
}

fn log(library: &Library, took: Duration) {
    let (built, reused) = library.opened().map_or((library.case_count(), 0), |opened| (opened.built, opened.reused));
    let stale = library.opened().and_then(|opened| opened.stale.as_deref());
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    info!(
        target: "gsj_retrieval",
        event = "index",
        built,
        reused,
        stale,
        took_ms,
        fingerprint = library.fingerprint(),
        "the index is ready"
    );
}

/// An error and its causes in one line.
fn sentence(fault: &dyn Error) -> String {
    let mut text = fault.to_string();
    let mut cause = fault.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
