//! Why an episode is not served, and how that is said: a JSON-RPC error as 401 or 503 (retrieval.md section 2).

use crate::RetrievalError;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use gsj_cutoff::tokens::TokenError;
use serde_json::json;
use serde_json::value::RawValue;

/// The JSON-RPC code of every refusal.
const CODE: i64 = -32001;

#[derive(Debug)]
pub(super) enum Refusal {
    /// No library is served yet; holds the state.
    NotReady(&'static str),
    /// `/mcp` without more.
    MissingToken,
    /// The token is none, or its time is over.
    Token(TokenError),
    /// A good token, but of another session than this socket's.
    OtherSession,
    /// The case is not served, or has no such timestep.
    Scope(RetrievalError),
}

impl Refusal {
    pub(super) fn status(&self) -> StatusCode {
        if matches!(self, Self::NotReady(_)) { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::UNAUTHORIZED }
    }

    /// One word for logs and counters.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotReady(_) => "not_ready",
            Self::MissingToken => "missing",
            Self::Token(error) => error.reason().as_str(),
            Self::OtherSession => "other_session",
            Self::Scope(RetrievalError::UnknownCase { .. }) => "unknown_case",
            Self::Scope(_) => "bad_timestep",
        }
    }

    /// What the caller reads. Holds nothing of the token but what a verified one claims, and no number of pages.
    pub(super) fn message(&self) -> String {
        match self {
            Self::NotReady("error") => {
                "not ready: no index could be made (state=error); wait until /health says state=ready".into()
            }
            Self::NotReady(state) => format!("not ready: the service is {state}; wait until /health says state=ready"),
            Self::MissingToken => "unauthorized: missing token; the address is /mcp/TOKEN".into(),
            Self::Token(TokenError::Expired { .. }) => "unauthorized: the token has expired; mint a new one".into(),
            Self::Token(TokenError::TimestepRange { timestep }) => {
                format!("unauthorized: timestep {timestep} is outside 1.. and the last page")
            }
            Self::Token(error) => format!("unauthorized: token invalid: {error}"),
            Self::OtherSession => "unauthorized: the token belongs to another session".into(),
            Self::Scope(error) => format!("unauthorized: {}", error.for_episode()),
        }
    }

    /// Echoes the request's id, or null.
    pub(super) fn respond(&self, id: Option<&RawValue>) -> Response {
        let (id, error) = (id.map_or("null", RawValue::get), json!({"code": CODE, "message": self.message()}));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        (self.status(), [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}
