//! Reading, listing and cancelling tasks.

use std::collections::BTreeMap;

use axum::{
    body::{Body, Bytes},
    extract::{Path, Query, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{State, answer};
use crate::{
    id::TaskId,
    pipeline::Order,
    result::{missing_result, read_stored},
    shared::Shared,
    state::{SessionState, TaskState},
    store::{Cancelled, SessionRow, TaskFilter, TaskRow},
};

/// Tasks of one list when the caller states no limit, and at most.
const LIMIT: u32 = 100;
const MOST: u32 = 10_000;

type Params = Result<Query<BTreeMap<String, String>>, QueryRejection>;

/// `GET /rollout/task/{id}`, with `?run=N` for an earlier run.
pub(super) async fn one(axum::extract::State(shared): State, Path(id): Path<String>, params: Params) -> Response {
    match find_run(&shared, &id, params).await {
        Ok((task, sessions)) => task_status(&shared, &task, sessions),
        Err(refusal) => refusal,
    }
}

/// `DELETE /rollout/task/{id}`: ends what has not ended.
pub(super) async fn cancel(axum::extract::State(shared): State, Path(id): Path<String>) -> Response {
    let Some(task) = TaskId::new(&id) else { return not_found() };
    match shared.store.cancel(task, shared.clock.seconds()).await {
        Ok(None) => return not_found(),
        Ok(Some(Cancelled { key, first, waiting, active })) => {
            let open = (waiting.len(), active.len());
            for session in &active {
                shared.active.cancel(&session.session);
            }
            if !waiting.is_empty() && shared.orders.send(Order::Cancelled(waiting)).await.is_err() {
                return answer::detail(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
            }
            if first {
                tracing::info!(task = %key.task, run = key.run, waiting = open.0, active = open.1, "task cancelled");
            }
        }
        Err(error) => return answer::store_failed(&error),
    }
    match find(&shared, &id, None).await {
        Ok((task, sessions)) => task_status(&shared, &task, sessions),
        Err(refusal) => refusal,
    }
}

/// `GET /tasks/{id}/sessions`, with `?run=N` for an earlier run.
pub(super) async fn sessions(axum::extract::State(shared): State, Path(id): Path<String>, params: Params) -> Response {
    let (task, sessions) = match find_run(&shared, &id, params).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let sessions: Vec<Value> = sessions
        .into_iter()
        .map(|session| {
            json!({
                "session_id": session.session,
                "task_id": session.key.task,
                "status": session.state,
                "node_id": shared.config.server.node_id,
                "reward": null,
                "timing": timing(&session),
                "error": session.error,
            })
        })
        .collect();
    answer::json_text(StatusCode::OK, json!({"task_id": task.key.task, "sessions": sessions}).to_string())
}

/// `GET /tasks?status=&harness=&since=&limit=`.
pub(super) async fn list(axum::extract::State(shared): State, params: Params) -> Response {
    let params = params.map(|Query(params)| params).unwrap_or_default();
    // A parameter that is there but empty asks for nothing, as in `?status=&limit=5`.
    let given = |name: &str| params.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let mut filter = TaskFilter { limit: LIMIT, harness: given("harness").map(str::to_owned), ..TaskFilter::default() };
    if let Some(text) = given("status") {
        let Some(state) = TaskState::parse(text) else {
            return answer::bad_query("status", "Input should be 'running', 'completed' or 'failed'", "enum");
        };
        filter.status = Some(state);
    }
    if let Some(text) = given("since") {
        let Some(since) = text.parse::<f64>().ok().filter(|since| since.is_finite()) else {
            return answer::bad_query("since", "Input should be a number of seconds since 1970", "float_parsing");
        };
        filter.since = Some(since);
    }
    if let Some(text) = given("limit") {
        let Ok(limit) = text.parse::<u32>() else {
            return answer::bad_query("limit", "Input should be a valid integer", "int_parsing");
        };
        filter.limit = limit.min(MOST);
    }
    match shared.store.tasks(filter).await {
        Ok(tasks) => answer::json_text(StatusCode::OK, json!({"tasks": tasks}).to_string()),
        Err(error) => answer::store_failed(&error),
    }
}

/// Finds the run that a query asks for, the latest when it asks for none.
async fn find_run(shared: &Shared, id: &str, params: Params) -> Result<(TaskRow, Vec<SessionRow>), Response> {
    let params = params.map(|Query(params)| params).unwrap_or_default();
    let run = match params.get("run").map(|text| text.parse::<i64>()) {
        None => None,
        Some(Ok(run)) => Some(run),
        Some(Err(_)) => return Err(answer::bad_query("run", "Input should be a valid integer", "int_parsing")),
    };
    find(shared, id, run).await
}

async fn find(shared: &Shared, id: &str, run: Option<i64>) -> Result<(TaskRow, Vec<SessionRow>), Response> {
    let Some(task) = TaskId::new(id) else { return Err(not_found()) };
    match shared.store.task(task, run).await {
        Ok(found) => found.ok_or_else(not_found),
        Err(error) => Err(answer::store_failed(&error)),
    }
}

fn not_found() -> Response {
    answer::detail(StatusCode::NOT_FOUND, "Task not found")
}

fn timing(session: &SessionRow) -> Value {
    session.timing.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
}

/// A TaskStatus whose results are the stored bytes, read one at a time as the answer is sent.
fn task_status(shared: &Shared, task: &TaskRow, sessions: Vec<SessionRow>) -> Response {
    let completed = sessions.iter().filter(|session| session.state == SessionState::Completed).count();
    let paths: Vec<_> = sessions
        .iter()
        .filter_map(|session| session.result.as_ref())
        .map(|result| result.path.display().to_string())
        .collect();
    let mut head = json!({
        "task_id": task.key.task,
        "status": task.state,
        "total_sessions": sessions.len(),
        "completed_sessions": completed,
        "run": task.key.run,
        "result_paths": paths,
    })
    .to_string();
    // Warnings are stored as JSON text, so they are put in as they are.
    head.truncate(head.len().saturating_sub(1));
    head.push_str(",\"warnings\":");
    head.push_str(&task.warnings);
    head.push_str(",\"results\":[");
    let node = shared.config.server.node_id.clone();
    let ended: Vec<SessionRow> = sessions.into_iter().filter(|session| session.result.is_some()).collect();
    let results = stream::iter(ended.into_iter().enumerate()).then(move |(index, session)| {
        let node = node.clone();
        async move {
            let mut part = if index == 0 { Vec::new() } else { vec![b','] };
            match &session.result {
                Some(stored) => match read_stored(stored).await {
                    Ok(bytes) => part.extend_from_slice(&bytes),
                    Err(error) => part.extend_from_slice(missing_result(&session, &node, &error).as_bytes()),
                },
                None => part.extend_from_slice(b"null"),
            }
            Ok::<_, std::convert::Infallible>(Bytes::from(part))
        }
    });
    let head = stream::once(async move { Ok(Bytes::from(head)) });
    let tail = stream::once(async { Ok(Bytes::from_static(b"]}")) });
    let body = Body::from_stream(head.chain(results).chain(tail));
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
