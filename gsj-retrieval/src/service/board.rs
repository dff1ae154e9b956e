//! What is served, and which index run goes on.

use crate::Library;
use crate::progress::Progress;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What came of asking for an index run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reindex {
    /// A run begins now.
    Started,
    /// A run goes on; one more will begin when it is over.
    Queued,
    /// The service is being stopped.
    Stopping,
    /// There is nothing to read anew: the library was given as it is.
    Fixed,
}

/// Changes in one step each; nothing waits while it is locked.
#[derive(Default)]
pub(super) struct Board(RwLock<State>);

#[derive(Default)]
struct State {
    /// None until a first library is there.
    library: Option<Arc<Library>>,
    /// The run that goes on, or was asked for and is about to begin.
    running: Option<Arc<Progress>>,
    /// Whether one more run was asked for meanwhile; however often, it is one.
    queued: bool,
    /// Why the last run that ended failed, in words for operators.
    failed: Option<String>,
    /// Whether somebody carries runs out.
    indexed: bool,
    closed: bool,
}

/// How things are at one moment.
pub(super) struct Standing {
    pub(super) state: &'static str,
    pub(super) library: Option<Arc<Library>>,
    pub(super) running: Option<Arc<Progress>>,
    pub(super) failed: Option<String>,
}

impl Board {
    pub(super) fn library(&self) -> Option<Arc<Library>> {
        self.read().library.clone()
    }

    pub(super) fn publish(&self, library: Library) {
        let library = Some(Arc::new(library));
        // The old one is dropped after the lock: that may unmap a thousand files.
        let _old = std::mem::replace(&mut self.write().library, library);
    }

    pub(super) fn standing(&self) -> Standing {
        let state = self.read();
        Standing {
            state: match &*state {
                State { running: Some(_), .. } => "indexing",
                State { library: Some(_), .. } => "ready",
                State { failed: Some(_), .. } => "error",
                State { .. } => "indexing",
            },
            library: state.library.clone(),
            running: state.running.clone(),
            failed: state.failed.clone(),
        }
    }

    /// Somebody carries out the runs from now on.
    pub(super) fn attach(&self) {
        self.write().indexed = true;
    }

    /// Asks for a run; the state has changed when this returns.
    pub(super) fn ask(&self) -> Reindex {
        let mut state = self.write();
        match &*state {
            State { indexed: false, .. } => Reindex::Fixed,
            State { closed: true, .. } => Reindex::Stopping,
            State { running: Some(_), .. } => {
                state.queued = true;
                Reindex::Queued
            }
            State { .. } => {
                state.running = Some(Arc::default());
                Reindex::Started
            }
        }
    }

    /// The run that is to be carried out, if there is one.
    pub(super) fn running(&self) -> Option<Arc<Progress>> {
        self.read().running.clone()
    }

    /// The run is over; one that was asked for meanwhile takes its place at once.
    pub(super) fn end(&self, failed: Option<String>) {
        let mut state = self.write();
        state.failed = failed;
        state.running = (std::mem::take(&mut state.queued) && !state.closed).then(Arc::default);
    }

    /// No further run begins, and the one that goes on is told to end.
    pub(super) fn close(&self) {
        let mut state = self.write();
        state.closed = true;
        state.queued = false;
        if let Some(progress) = &state.running {
            progress.stop();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.read().closed
    }

    // Every change above is whole before anything could panic, so a poisoned lock still guards a whole value.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_often_it_is_asked_during_a_run_one_more_follows() {
        let board = Board::default();
        assert_eq!(board.ask(), Reindex::Fixed);
        board.attach();
        assert_eq!(board.ask(), Reindex::Started);
        let first = board.running().expect("it goes on");
        assert_eq!([board.ask(), board.ask()], [Reindex::Queued; 2]);
        board.end(None);
        let second = board.running().expect("the one that was queued");
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(board.standing().state, "indexing", "nobody sees a moment between the two");
        board.end(None);
        assert!(board.running().is_none());
    }

    #[test]
    fn closing_stops_the_run_and_forgets_the_queued_one() {
        let board = Board::default();
        board.attach();
        board.ask();
        board.ask();
        let run = board.running().expect("it goes on");
        board.close();
        assert!(run.is_stopped());
        board.end(Some("stopped".into()));
        assert!(board.running().is_none());
        assert_eq!(board.ask(), Reindex::Stopping);
    }
}
