//! How far an index run is, and whether it is still wanted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How far an index run is, shared between the run and those who watch or stop it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
    total: AtomicUsize,
    stopped: AtomicBool,
}

impl Progress {
    /// Cases that are ready.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// All cases of the run; 0 until they are counted.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Tells the run to end before the next case, with [`crate::RetrievalError::Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the run was told to end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, total: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, cases: usize) {
        self.done.fetch_add(cases, Ordering::Relaxed);
    }
}
