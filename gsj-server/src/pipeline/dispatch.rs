//! Taking sessions from the store as there is room for them, and owning every task that drives one.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    Order,
    episode::{Admitted, Driver},
};
use crate::shared::Shared;

/// How often sandboxes that nobody owns any more are looked for.
const REAP_EVERY: Duration = Duration::from_secs(60);
/// How long to wait when the store does not answer.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the server drains or stops, and every session that was taken has ended.
pub(super) async fn dispatch(driver: Driver, mut orders: mpsc::Receiver<Order>) {
    let shared = Arc::clone(&driver.shared);
    let mut sessions = JoinSet::new();
    let mut reaping = interval(REAP_EVERY);
    reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Never dropped half-way: a session that the store has handed out must reach its driver.
    let mut next = Box::pin(next(Arc::clone(&shared)));
    let mut open = true;
    while open {
        tokio::select! {
            admitted = &mut next => match admitted {
                Some(admitted) => {
                    sessions.spawn(driver.clone().drive(admitted));
                    next.set(self::next(Arc::clone(&shared)));
                }
                None => open = false,
            },
            Some(order) = orders.recv() => carry_out(&driver, order, &mut sessions),
            Some(ended) = sessions.join_next() => log_panic(ended),
            _now = reaping.tick() => {
                let run = driver.equipment.places.run.clone();
                sessions.spawn(reap(run));
            }
        }
    }
    orders.close();
    while let Some(order) = orders.recv().await {
        carry_out(&driver, order, &mut sessions);
    }
    while let Some(ended) = sessions.join_next().await {
        log_panic(ended);
    }
}

/// Waits for room and for a session; `None` once no further one is to be started.
async fn next(shared: Arc<Shared>) -> Option<Admitted> {
    let room = async {
        let in_flight = Arc::clone(&shared.stages.in_flight).acquire_owned().await.ok()?;
        Some((in_flight, shared.stages.init.enter().await?))
    };
    let (in_flight, init) = tokio::select! {
        biased;
        () = shared.drained() => return None,
        room = room => room?,
    };
    loop {
        if shared.is_draining() {
            return None;
        }
        match shared.store.claim(shared.clock.seconds()).await {
            Ok(Some(row)) => return Some(Admitted { row, in_flight, init }),
            Ok(None) => tokio::select! {
                () = shared.bell.notified() => {}
                () = shared.drained() => return None,
            },
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "no session could be taken");
                tokio::select! {
                    () = sleep(STORE_PAUSE) => {}
                    () = shared.drained() => return None,
                }
            }
        }
    }
}

fn carry_out(driver: &Driver, order: Order, sessions: &mut JoinSet<()>) {
    let Order::Cancelled(rows) = order;
    let driver = driver.clone();
    sessions.spawn(async move {
        for row in rows {
            driver.clone().cancelled(row).await;
        }
    });
}

async fn reap(run: std::path::PathBuf) {
    match tokio::task::spawn_blocking(move || gsj_sandbox::reap(&run)).await {
        Ok(Ok(reaped)) => {
            for one in reaped {
                tracing::warn!(
                    session = one.label.session,
                    killed = one.killed,
                    "ended a sandbox that was left behind"
                );
            }
        }
        Ok(Err(error)) => tracing::warn!(error = &error as &dyn std::error::Error, "look for sandboxes left behind"),
        Err(panic) => tracing::error!(%panic, "look for sandboxes left behind"),
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a session's task panicked; the next start ends the session");
    }
}
