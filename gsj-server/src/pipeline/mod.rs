//! Sessions from the store's queue to their stored results.

mod bring_up;
mod build;
mod callback;
mod cases;
mod dispatch;
mod episode;
mod equipment;
mod estate;
mod harvest;
mod init;
mod leak;
mod output;
mod recover;
mod run;
mod stage;
mod verdict;
mod write;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use bring_up::{BringUp, BringUpError, BroughtUp, bring_up};
pub(crate) use cases::{Cases, Reading};
pub(crate) use equipment::{Equipment, Places};
pub(crate) use estate::Estate;
pub use estate::EstateError;
pub(crate) use leak::LeakScan;
pub(crate) use stage::Stages;

use crate::{
    id::SessionId,
    shared::Shared,
    store::{SessionRow, StoreError},
};
use callback::Callbacks;
use episode::Driver;

/// How long owed callbacks may hold up a drain.
const CALLBACK_GRACE: Duration = Duration::from_secs(30);

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

/// The pipeline's own tasks.
#[derive(Debug)]
pub(crate) struct Pipeline {
    dispatcher: Option<JoinHandle<()>>,
    deliverer: Option<JoinHandle<()>>,
    /// Tells the deliverer that nothing more will be owed.
    no_more: CancellationToken,
}

impl Pipeline {
    /// Ends what an earlier life left unfinished, then starts to take sessions.
    pub(crate) async fn start(
        shared: Arc<Shared>,
        equipment: Arc<Equipment>,
        client: reqwest::Client,
        orders: mpsc::Receiver<Order>,
    ) -> Result<Self, StoreError> {
        let callbacks = Callbacks::default();
        let driver = Driver { shared: Arc::clone(&shared), equipment, callbacks: callbacks.clone() };
        recover::recover(&driver).await?;
        let no_more = CancellationToken::new();
        let deliverer = tokio::spawn(callbacks.deliver(shared, client, no_more.clone(), CALLBACK_GRACE));
        let dispatcher = tokio::spawn(dispatch::dispatch(driver, orders));
        Ok(Self { dispatcher: Some(dispatcher), deliverer: Some(deliverer), no_more })
    }

    /// Waits until every session that was taken has ended, and what is owed is delivered.
    pub(crate) async fn ended(&mut self) {
        // Awaited in place: when this future is dropped half-way, the tasks are still here to be aborted.
        if let Some(dispatcher) = &mut self.dispatcher {
            let _ended = dispatcher.await;
        }
        self.dispatcher = None;
        self.no_more.cancel();
        if let Some(deliverer) = &mut self.deliverer {
            let _ended = deliverer.await;
        }
        self.deliverer = None;
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // Aborting the dispatcher drops every session's task, and with each its sandbox.
        for task in [&self.dispatcher, &self.deliverer].into_iter().flatten() {
            task.abort();
        }
    }
}

/// The client that delivers callbacks.
pub(crate) fn callback_client(limit: Duration) -> reqwest::Result<reqwest::Client> {
    callback::client(limit)
}
