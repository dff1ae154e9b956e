//! Delivering results to where a task's submitter asked for them: at least once, within bounds.
//!
//! What is owed stands in the store, so nothing is lost with the process and nothing queues in memory.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use reqwest::{Client, header, redirect};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{id::SessionId, result::read_stored, shared::Shared, store::PendingCallback};

/// Deliveries at once.
const AT_ONCE: usize = 8;
/// The wait after a first failed attempt; it doubles up to the second value.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Tells the deliverer that something new is owed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Callbacks(Arc<Notify>);

impl Callbacks {
    pub(crate) fn ring(&self) {
        self.0.notify_one();
    }

    /// Delivers what is owed until `finish`, then what is still owed once, within `grace`.
    pub(super) async fn deliver(self, shared: Arc<Shared>, client: Client, finish: CancellationToken, grace: Duration) {
        let mut running = JoinSet::new();
        let mut busy = BTreeSet::new();
        loop {
            self.start(&shared, &client, &mut running, &mut busy).await;
            tokio::select! {
                () = finish.cancelled() => break,
                () = self.0.notified() => {}
                Some(done) = running.join_next() => forget(done, &mut busy),
            }
        }
        let rest = async {
            loop {
                self.start(&shared, &client, &mut running, &mut busy).await;
                match running.join_next().await {
                    Some(done) => forget(done, &mut busy),
                    None => break,
                }
            }
        };
        if timeout(grace, rest).await.is_err() {
            tracing::warn!("callbacks are still owed; they are delivered after the next start");
        }
        running.shutdown().await;
    }

    /// Starts as many deliveries as there is room for.
    async fn start(
        &self,
        shared: &Arc<Shared>,
        client: &Client,
        running: &mut JoinSet<SessionId>,
        busy: &mut BTreeSet<SessionId>,
    ) {
        if running.len() >= AT_ONCE {
            return;
        }
        let owed = match shared.store.pending_callbacks().await {
            Ok(owed) => owed,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "look for owed callbacks");
                return;
            }
        };
        for callback in owed {
            if running.len() >= AT_ONCE {
                break;
            }
            if busy.insert(callback.session.clone()) {
                running.spawn(attempt_all(Arc::clone(shared), client.clone(), callback));
            }
        }
    }
}

/// The client for callbacks: it goes where it was told and nowhere else.
pub(super) fn client(limit: Duration) -> reqwest::Result<Client> {
    Client::builder().redirect(redirect::Policy::none()).no_proxy().timeout(limit).build()
}

fn forget(done: Result<SessionId, tokio::task::JoinError>, busy: &mut BTreeSet<SessionId>) {
    match done {
        Ok(session) => {
            busy.remove(&session);
        }
        Err(error) => tracing::error!(%error, "a callback's task failed"),
    }
}

async fn attempt_all(shared: Arc<Shared>, client: Client, callback: PendingCallback) -> SessionId {
    let PendingCallback { session, url, result } = callback;
    let attempts = shared.config.server.callback.attempts.max(1);
    let mut wait = FIRST_WAIT;
    let mut delivered = false;
    for attempt in 1..=attempts {
        // Read anew each time, so that a waiting delivery holds no result in memory.
        let body = match read_stored(&result).await {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%session, path = %result.path.display(), %error, "the result of a callback is gone");
                break;
            }
        };
        match attempt_once(&client, &url, body).await {
            Ok(()) => {
                delivered = true;
                break;
            }
            Err(reason) => tracing::warn!(%session, attempt, attempts, reason, "the callback was not taken"),
        }
        if attempt < attempts {
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
    if let Err(error) = shared.store.callback_done(session.clone(), delivered).await {
        tracing::error!(%session, error = &error as &dyn std::error::Error, "record a callback");
    }
    session
}

async fn attempt_once(client: &Client, url: &str, body: Vec<u8>) -> Result<(), String> {
    let sent = client.post(url).header(header::CONTENT_TYPE, "application/json").body(body).send().await;
    // The URL may hold a secret of the submitter, so it stays out of the log.
    let answer = sent.map_err(|error| error.without_url().to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("answered {}", answer.status())) }
}
