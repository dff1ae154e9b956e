//! What operators ask: `/health` and `/admin/reindex` (retrieval.md sections 9 and 10).

use super::{Reindex, Shared};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

/// Strangers learn the state and nothing else: pages and cutoffs of a case are what the wall is about.
pub(super) fn health(shared: &Shared, headers: &HeaderMap, own_socket: bool) -> Response {
    let body = match details(shared, headers).filter(|_| !own_socket) {
        Some(details) => Value::Object(details),
        None => json!({"state": shared.board.standing().state}),
    };
    json_text(StatusCode::OK, &body)
}

/// All that there is to say, to whoever holds an admin token.
pub(super) fn details(shared: &Shared, headers: &HeaderMap) -> Option<Map<String, Value>> {
    if !is_admin(shared, headers) {
        return None;
    }
    let standing = shared.board.standing();
    let mut body = Map::new();
    body.insert("state".into(), json!(standing.state));
    body.insert("uptime_s".into(), json!((shared.options.clock)().saturating_sub(shared.started)));
    body.insert("backend".into(), json!({"name": "gsj", "version": env!("CARGO_PKG_VERSION")}));
    if let Some(progress) = standing.running {
        body.insert("progress".into(), json!({"done": progress.done(), "total": progress.total()}));
    }
    if let Some(failed) = standing.failed {
        body.insert("error".into(), json!(failed));
    }
    if let Some(library) = standing.library {
        body.insert("cases".into(), json!(library.summary()));
        body.insert("decisions".into(), json!(library.decision_count()));
        body.insert("fingerprint".into(), json!(library.fingerprint()));
        body.insert("index_reused".into(), json!(library.opened().is_some_and(|opened| opened.built == 0)));
    }
    Some(body)
}

pub(super) fn reindex(shared: &Shared, method: &Method, headers: &HeaderMap) -> Response {
    if method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")], "method not allowed").into_response();
    }
    let Some(token) = bearer(headers) else {
        return refused(shared, "unauthorized: missing token; send Authorization: Bearer and an admin token");
    };
    if !shared.is_admin(token) {
        return refused(shared, "unauthorized: the token is no admin token, or its time is over");
    }
    // The state as it was when the run was asked for; a short one may be over by now.
    let accepted = |word: &str| json_text(StatusCode::ACCEPTED, &json!({"reindex": word, "state": "indexing"}));
    match shared.reindex() {
        Reindex::Started => accepted("started"),
        Reindex::Queued => accepted("queued"),
        Reindex::Stopping => json_text(StatusCode::SERVICE_UNAVAILABLE, &json!({"error": "the service is stopping"})),
        Reindex::Fixed => {
            json_text(StatusCode::NOT_FOUND, &json!({"error": "this service has no source to read anew"}))
        }
    }
}

pub(super) fn is_admin(shared: &Shared, headers: &HeaderMap) -> bool {
    bearer(headers).is_some_and(|token| shared.is_admin(token))
}

/// The counters, for whoever holds an admin token: they tell how many pages there are.
pub(super) fn metrics(shared: &Shared, method: &Method, headers: &HeaderMap) -> Response {
    if method != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET")], "method not allowed").into_response();
    }
    if !is_admin(shared, headers) {
        return refused(shared, "unauthorized: metrics are for those with an admin token");
    }
    let uptime = (shared.options.clock)().saturating_sub(shared.started);
    let text = shared.metrics.text(&shared.board.standing(), uptime);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

fn refused(shared: &Shared, error: &str) -> Response {
    shared.metrics.refused("admin");
    json_text(StatusCode::UNAUTHORIZED, &json!({"error": error}))
}

fn json_text(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// The token in `Authorization: Bearer`; the scheme's case and blanks around the token do not matter.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
