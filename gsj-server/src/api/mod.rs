//! The rollout API: thin handlers over the store and the pipeline.

mod answer;
mod status;
mod submit;
mod tasks;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};

use gsj_retrieval::Service;

use crate::shared::Shared;

/// Largest request body, in bytes; an instruction of several hundred kilobytes must pass.
const BODY_LIMIT: usize = 16 << 20;

/// What every handler gets.
type State = axum::extract::State<Arc<Shared>>;

/// The routes, as `docs` and the table in the specification name them.
pub(crate) fn router(shared: Arc<Shared>, retrieval: &Service) -> Router {
    let (tools, operators) = (retrieval.router(), retrieval.clone());
    Router::new()
        .route("/health", get(async move |headers: HeaderMap| status::health(operators.details(&headers))))
        // The retrieval service for operators and for whoever holds an episode's token.
        .route_service("/admin/reindex", tools.clone())
        .route_service("/metrics", tools.clone())
        .route_service("/mcp", tools.clone())
        .route_service("/mcp/", tools.clone())
        .route_service("/mcp/{*token}", tools)
        .route("/rollout/task/submit", post(submit::submit))
        .route("/rollout/task/{id}", get(tasks::one).delete(tasks::cancel))
        .route("/rollout/status", get(status::status))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{id}/sessions", get(tasks::sessions))
        .route("/events", get(status::events))
        .fallback(async || answer::detail(StatusCode::NOT_FOUND, "Not Found"))
        .method_not_allowed_fallback(async || answer::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(shared)
}
