//! Embedding the pages of cases while their index is built, from threads that may wait.

use super::client::Client;
use super::{EmbedError, EmbedOptions, Embedder};
use crate::RetrievalError;
use crate::progress::Progress;
use crate::vectors::{self, Digest, Known, Rows, Vector};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

/// How often a run that waits for the endpoint looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A runtime and connections of its own, shared by the threads that build.
pub(crate) struct Session<'a> {
    embedder: &'a Embedder,
    /// Taken only when the session ends.
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    options: EmbedOptions,
    gate: Arc<Semaphore>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Waits for nothing, so it may be dropped anywhere; no request is under way any more.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(embedder: &'a Embedder) -> Result<Self, EmbedError> {
        let options = embedder.options.clone();
        let client = embedder.client.again(&options)?;
        let gate = Arc::clone(&embedder.gate);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| EmbedError::Client { problem: error.to_string() })?;
        Ok(Self { embedder, runtime: Some(runtime), shared: Arc::new(Shared { client, options, gate }) })
    }

    pub(crate) fn identity(&self) -> Digest {
        self.embedder.identity
    }

    fn runtime(&self) -> Result<&Runtime, EmbedError> {
        if Handle::try_current().is_ok() {
            let problem = "a call that waits was made on a thread of an asynchronous runtime".to_owned();
            return Err(EmbedError::Client { problem });
        }
        self.runtime.as_ref().ok_or(EmbedError::Stopped)
    }

    pub(super) fn query(&self, text: &str) -> Result<Option<Arc<Vector>>, EmbedError> {
        let spoken = vectors::spoken(text);
        if !vectors::has_words(&spoken) {
            return Ok(None);
        }
        let made = self.runtime()?.block_on(self.shared.embed(vec![spoken]))?;
        Ok(made.into_iter().next().map(Arc::new))
    }

    /// The vectors of pages 1..N of a case: known ones as they are, the others from the endpoint. `rows` holds those of the
    /// first pages, also when an error ends it.
    pub(crate) fn pages(
        &self,
        pages: &[String],
        known: &Known,
        rows: &mut Rows,
        progress: &Progress,
    ) -> Result<(), RetrievalError> {
        let runtime = self.runtime()?;
        let ahead = self.shared.options.concurrency.get();
        let mut asked = std::collections::VecDeque::new();
        let mut next = rows.page_count();
        while rows.page_count() < pages.len() {
            // As many pages are under way as there may be requests, taken up in their order.
            while let Some(page) = pages.get(next).filter(|_| asked.len() < ahead) {
                let digest = vectors::digest_of(page);
                let work = if known.has(&digest) { None } else { Some(self.start(runtime, page)) };
                asked.push_back((digest, work));
                next += 1;
            }
            let Some((digest, work)) = asked.pop_front() else { break };
            let added = match work {
                None => rows.copy(digest, known).map(|_| ()),
                Some((pieces, made)) => {
                    let made = runtime.block_on(unless_stopped(made, progress))?;
                    rows.push(digest, &pieces, &made)
                }
            };
            added.map_err(|other| {
                let problem = format!(
                    "a vector has {} numbers, those before have {}; give another `revision` with another model",
                    other.found, other.expected
                );
                self.shared.client.unusable(problem)
            })?;
        }
        Ok(())
    }

    /// Has one page embedded: where its pieces stand, and their vectors when they come.
    fn start(&self, runtime: &Runtime, page: &str) -> (Vec<Range<usize>>, Asked) {
        let pieces = vectors::pieces(page);
        let texts: Vec<String> = (0..pieces.len()).map(|at| vectors::spoken_among(page, &pieces, at)).collect();
        let shared = Arc::clone(&self.shared);
        let asked = runtime.spawn(async move { shared.embed(texts).await });
        (pieces, Asked(asked))
    }
}

/// A page that is being embedded; dropped, it is no more.
struct Asked(tokio::task::JoinHandle<Result<Vec<Vector>, EmbedError>>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn unless_stopped(mut asked: Asked, progress: &Progress) -> Result<Vec<Vector>, RetrievalError> {
    loop {
        if progress.is_stopped() {
            return Err(RetrievalError::Stopped);
        }
        if let Ok(done) = tokio::time::timeout(LOOK, &mut asked.0).await {
            let done = done.unwrap_or_else(|error| Err(EmbedError::Client { problem: error.to_string() }));
            return Ok(done?);
        }
    }
}

impl Shared {
    /// The vectors of the sentences of one page, in requests of at most a batch, one after another.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vector>, EmbedError> {
        let mut made = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.options.batch.get()) {
            // Never closed.
            let _permit = self.gate.acquire().await.ok();
            made.extend(self.client.embed(&self.options, batch).await?);
        }
        Ok(made)
    }
}
