//! Sessions from the store's queue to their stored results.

mod stage;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

pub(crate) use stage::Stages;

use crate::{id::SessionId, store::SessionRow};

/// What the dispatcher is asked to do beside taking sessions from the store.
#[derive(Debug)]
pub(crate) enum Order {
    /// These sessions were cancelled before any worker had them: write their results.
    Cancelled(Vec<SessionRow>),
}

/// The sessions that a worker has, and the token that ends each.
#[derive(Debug, Default)]
pub(crate) struct ActiveSessions(Mutex<BTreeMap<SessionId, CancellationToken>>);

impl ActiveSessions {
    /// Ends a session at its next step; one that is not active has ended already.
    pub(crate) fn cancel(&self, session: &SessionId) {
        if let Some(token) = self.lock().get(session) {
            token.cancel();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn insert(&self, session: SessionId) -> CancellationToken {
        let token = CancellationToken::new();
        self.lock().insert(session, token.clone());
        token
    }

    pub(crate) fn remove(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    // A map of tokens is whole after any panic, so a poisoned lock is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
