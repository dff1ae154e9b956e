//! `POST /rollout/task/submit`.

use axum::{
    body::Bytes,
    extract::rejection::BytesRejection,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{State, answer};
use crate::{
    event::Event,
    id::SessionId,
    request::{Detail, Step},
    state::TaskState,
    store::{NewTask, Submitted},
};

pub(super) async fn submit(axum::extract::State(shared): State, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            return answer::detail(rejection.into_response().status(), "the body could not be read whole");
        }
    };
    let value: Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            let msg = format!("JSON decode error: {error}");
            let loc = vec![Step::Name("body".to_owned()), Step::Index(error.column())];
            return answer::unprocessable(&[Detail { loc, msg, kind: "json_invalid" }]);
        }
    };
    let request = match shared.read_request(&value) {
        Ok(request) => request,
        Err(details) => return answer::unprocessable(&details),
    };
    if let Some(refusal) = shared.refusal(&request) {
        return answer::unprocessable(&[refusal]);
    }
    if shared.is_draining() {
        return answer::detail(StatusCode::SERVICE_UNAVAILABLE, "the server is draining and takes no further task");
    }
    let sessions = match (0..request.samples).map(|_| SessionId::draw()).collect() {
        Ok(sessions) => sessions,
        Err(error) => {
            tracing::error!(%error, "the system gives no random bytes");
            return answer::detail(StatusCode::INTERNAL_SERVER_ERROR, "the system gives no random bytes");
        }
    };
    let new = NewTask {
        task: request.task.clone(),
        request: value,
        warnings: request.warnings.clone(),
        harness: request.harness,
        model: request.model,
        callback_url: request.callback_url,
        sessions,
    };
    let now = shared.clock.seconds();
    match shared.store.submit(new, now).await {
        Ok(Submitted::New(key)) => {
            let total = u64::try_from(request.samples).unwrap_or(u64::MAX);
            shared.events.publish(Event::task("task.created", now, &key.task, TaskState::Running, 0, total));
            shared.bell.notify_one();
        }
        Ok(Submitted::Same(_)) => {}
        Ok(Submitted::Conflict) => {
            let text = format!("task `{}` is running with another body", request.task);
            return answer::detail(StatusCode::CONFLICT, &text);
        }
        Err(error) => return answer::store_failed(&error),
    }
    let mut told = json!({"task_id": request.task, "status": TaskState::Running});
    if !request.warnings.is_empty() {
        told["warnings"] = Value::from(request.warnings);
    }
    answer::json_text(StatusCode::OK, told.to_string())
}
