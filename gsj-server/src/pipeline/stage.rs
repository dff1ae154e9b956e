//! The three stages and how many sessions each holds at once.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::WorkersConfig;

/// The bounded stages of the pipeline.
#[derive(Debug)]
pub(crate) struct Stages {
    pub(crate) init: Stage,
    pub(crate) run: Stage,
    pub(crate) post: Stage,
    /// Sessions that have left the store's queue and not ended; bounds what waits between stages.
    pub(crate) in_flight: Arc<Semaphore>,
}

/// One stage: at most `limit` sessions at once, the others wait in order of arrival.
#[derive(Debug)]
pub(crate) struct Stage {
    limit: u32,
    places: Arc<Semaphore>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    queued: AtomicU64,
    running: AtomicU64,
}

/// A place in a stage; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    counts: Arc<Counts>,
    _permit: OwnedSemaphorePermit,
}

/// How full a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Load {
    pub(crate) queued: u64,
    pub(crate) running: u64,
    pub(crate) limit: u32,
}

impl Stages {
    pub(crate) fn new(workers: &WorkersConfig) -> Self {
        let total = [workers.init, workers.run, workers.post].iter().map(|limit| *limit as usize).sum();
        Self {
            init: Stage::new(workers.init),
            run: Stage::new(workers.run),
            post: Stage::new(workers.post),
            in_flight: Arc::new(Semaphore::new(total)),
        }
    }
}

impl Stage {
    fn new(limit: u32) -> Self {
        Self { limit, places: Arc::new(Semaphore::new(limit as usize)), counts: Arc::default() }
    }

    /// Waits for a place. `None` only when the semaphore was closed, which never happens here.
    pub(crate) async fn enter(&self) -> Option<Place> {
        let queued = Queued::new(&self.counts);
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        drop(queued);
        self.counts.running.fetch_add(1, Ordering::Relaxed);
        Some(Place { counts: Arc::clone(&self.counts), _permit: permit })
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            queued: self.counts.queued.load(Ordering::Relaxed),
            running: self.counts.running.load(Ordering::Relaxed),
            limit: self.limit,
        }
    }
}

/// Counts a waiting session for as long as it lives, also when its wait is cut short.
struct Queued<'a>(&'a Counts);

impl<'a> Queued<'a> {
    fn new(counts: &'a Counts) -> Self {
        counts.queued.fetch_add(1, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.counts.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_stage_queues_and_an_abandoned_wait_is_not_counted() {
        let stage = Stage::new(1);
        let first = stage.enter().await.expect("a place");
        let mut second = Box::pin(stage.enter());
        assert!(futures_util::poll!(&mut second).is_pending(), "one place, one holder");
        assert_eq!(stage.load(), Load { queued: 1, running: 1, limit: 1 });
        drop(second);
        assert_eq!(stage.load().queued, 0, "who stopped waiting is not queued");
        drop(first);
        assert_eq!(stage.load().running, 0);
        assert!(stage.enter().await.is_some(), "the place came back");
    }
}
