//! How the server is: `/health`, `/rollout/status`, `/events`.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{StreamExt as _, future};
use serde_json::{Map, Value, json};
use tokio_stream::wrappers::BroadcastStream;

use super::{State, answer};

/// How often a silent event stream says that it is alive.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// The same two members for everybody, and behind them what the retrieval service tells operators.
pub(super) fn health(retrieval: Option<Map<String, Value>>) -> Response {
    let mut told = Map::from_iter([("status".to_owned(), json!("ok")), ("nodes".to_owned(), json!(1))]);
    told.extend(retrieval.unwrap_or_default());
    answer::json_text(StatusCode::OK, Value::Object(told).to_string())
}

pub(super) async fn status(axum::extract::State(shared): State) -> Response {
    let asked = (shared.store.statuses().await, shared.store.waiting().await, shared.store.states().await);
    let (tasks, waiting, states) = match asked {
        (Ok(tasks), Ok(waiting), Ok(states)) => (tasks, waiting, states),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return answer::store_failed(&error),
    };
    let states: Map<String, Value> = states.into_iter().map(|(state, n)| (state, Value::from(n))).collect();
    let tasks: Map<String, Value> = tasks.into_iter().map(|(id, status)| (id, Value::from(status))).collect();
    let (mut init, run, post) = (shared.stages.init.load(), shared.stages.run.load(), shared.stages.post.load());
    // Sessions wait in the store, not in memory, until the first stage has room for them.
    init.queued += u64::try_from(waiting).unwrap_or(0);
    let node = json!({
        "node_id": shared.config.server.node_id,
        "healthy": true,
        "draining": shared.is_draining(),
        "running": shared.active.count(),
        "last_heartbeat": shared.clock.seconds(),
    });
    let told = json!({"tasks": tasks, "pipeline": {"init": init, "run": run, "post": post}, "nodes": [node],
        "sessions": states});
    answer::json_text(StatusCode::OK, told.to_string())
}

/// Changes as they are stored. A listener that falls too far behind loses the oldest of them.
pub(super) async fn events(axum::extract::State(shared): State) -> Response {
    let events = BroadcastStream::new(shared.events.subscribe())
        .filter_map(|event| {
            future::ready(event.ok().and_then(|event| {
                let data = serde_json::to_string(&*event).ok()?;
                Some(Ok::<_, Infallible>(Event::default().event(event.kind).data(data)))
            }))
        })
        .take_until(shared.stopping.clone().cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::new().interval(COMMENT_EVERY)).into_response()
}
