//! The shapes of refusals, made in one place.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde_json::json;

use crate::{
    request::{Detail, Step},
    store::StoreError,
};

/// `{"detail": "..."}` with a status.
pub(crate) fn detail(status: StatusCode, text: &str) -> Response {
    json_text(status, json!({"detail": text}).to_string())
}

/// The 422 of a body or query that will not do.
pub(crate) fn unprocessable(details: &[Detail]) -> Response {
    json_text(StatusCode::UNPROCESSABLE_ENTITY, json!({"detail": details}).to_string())
}

/// One problem of a query parameter.
pub(crate) fn bad_query(name: &str, msg: &str, kind: &'static str) -> Response {
    let loc = vec![Step::Name("query".to_owned()), Step::Name(name.to_owned())];
    unprocessable(&[Detail { loc, msg: msg.to_owned(), kind }])
}

/// JSON that is text already.
pub(crate) fn json_text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A store that fails is the server's fault; the reason goes to the log, not to the caller.
pub(crate) fn store_failed(error: &StoreError) -> Response {
    tracing::error!(error = error as &dyn std::error::Error, "the state store failed");
    detail(StatusCode::INTERNAL_SERVER_ERROR, "the server's state store failed; its log says why")
}
