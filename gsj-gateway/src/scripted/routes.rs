//! The endpoints.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{self, Said};
use super::codec::Codec;
use super::script::{Fault, Script};
use super::serve::Connection;
use super::template::{ChatTemplate, flat};
use super::{ScriptedOptions, script::Step};
use crate::engine::EngineKind;

/// Requests that `GET /requests` remembers.
const REMEMBERED: usize = 4096;
/// The largest request body.
const BODY_LIMIT: usize = 64 << 20;

pub(super) struct App {
    pub(super) options: ScriptedOptions,
    pub(super) codec: Codec,
    script: Script,
    template: ChatTemplate,
    answers: AtomicU64,
    seen: Mutex<VecDeque<Value>>,
}

impl App {
    pub(super) fn new(options: ScriptedOptions, script: Script, codec: Codec, template: ChatTemplate) -> Self {
        Self { options, codec, script, template, answers: AtomicU64::new(0), seen: Mutex::default() }
    }

    pub(super) fn next_answer(&self) -> u64 {
        self.answers.fetch_add(1, Ordering::Relaxed)
    }

    fn remember(&self, path: &str, headers: &HeaderMap, body: &Value) {
        let shown: serde_json::Map<String, Value> = headers
            .iter()
            .map(|(name, value)| {
                // A key is not for the request log.
                let secret = name == header::AUTHORIZATION;
                let text = if secret { "Bearer ***" } else { value.to_str().unwrap_or("") };
                (name.as_str().to_owned(), Value::from(text))
            })
            .collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(json!({"path": path, "headers": shown, "body": body}));
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, Box<Response>> {
        self.codec.encode(text).map_err(|reason| Box::new(bad_request(&reason)))
    }

    fn prompt(&self, request: &Value) -> Result<Vec<u32>, Box<Response>> {
        let text = self.template.render(request).map_err(|reason| Box::new(bad_request(&reason)))?;
        self.tokens(&text)
    }
}

pub(super) fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&app), require_key));
    Router::new()
        .merge(guarded)
        .route("/health", get(async || Json(json!({}))))
        .route("/ping", get(async || Json(json!({}))))
        .route("/version", get(version))
        .route("/requests", get(requests))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .fallback(async || error(StatusCode::NOT_FOUND, "not found", "NotFoundError"))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(app)
}

pub(super) fn error(status: StatusCode, message: &str, kind: &str) -> Response {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": status.as_u16()}});
    (status, Json(body)).into_response()
}

fn bad_request(message: &str) -> Response {
    error(StatusCode::BAD_REQUEST, message, "BadRequestError")
}

async fn require_key(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if let Some(key) = &app.options.api_key {
        let given = request.headers().get(header::AUTHORIZATION);
        if !given.is_some_and(|given| key.is_bearer(given)) {
            return error(StatusCode::UNAUTHORIZED, "Unauthorized", "AuthenticationError");
        }
    }
    next.run(request).await
}

async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    let model = &app.options.model;
    let entry = json!({"id": model, "object": "model", "created": 0, "owned_by": "scripted", "root": model, "max_model_len": app.options.n_ctx});
    Json(json!({"object": "list", "data": [entry]}))
}

async fn version() -> Json<Value> {
    Json(json!({"version": concat!("scripted ", env!("CARGO_PKG_VERSION"))}))
}

async fn requests(State(app): State<Arc<App>>) -> Json<Value> {
    let seen = app.seen.lock().unwrap_or_else(PoisonError::into_inner);
    Json(seen.iter().cloned().collect())
}

fn read(app: &App, path: &str, headers: &HeaderMap, body: &Bytes) -> Result<Value, Box<Response>> {
    let request = serde_json::from_slice(body).map_err(|e| Box::new(bad_request(&e.to_string())))?;
    app.remember(path, headers, &request);
    Ok(request)
}

/// Merges the two ways out of a handler.
fn either(answer: Result<Response, Box<Response>>) -> Response {
    answer.unwrap_or_else(|refusal| *refusal)
}

async fn tokenize(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = || {
        let request = read(&app, "/tokenize", &headers, &body)?;
        let ids = if request.get("messages").is_some() {
            app.prompt(&request)?
        } else {
            app.tokens(request.get("prompt").and_then(Value::as_str).unwrap_or(""))?
        };
        let body = json!({"tokens": ids, "count": ids.len(), "max_model_len": app.options.n_ctx});
        Ok(Json(body).into_response())
    };
    either(answer())
}

async fn detokenize(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = || {
        let request = read(&app, "/detokenize", &headers, &body)?;
        let ids = ids(request.get("tokens"))?;
        Ok(Json(json!({"prompt": app.codec.text(&ids)})).into_response())
    };
    either(answer())
}

fn ids(list: Option<&Value>) -> Result<Vec<u32>, Box<Response>> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| Box::new(bad_request("a token id is a number from 0 to 4294967295")))
}

async fn completions(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = || {
        let request = read(&app, "/v1/completions", &headers, &body)?;
        check_model(&app, &request)?;
        let prompt = match request.get("prompt") {
            Some(Value::String(text)) => app.tokens(text)?,
            list => ids(list)?,
        };
        let limit = request.get("max_tokens").and_then(Value::as_u64).unwrap_or(16);
        let mut new = app.tokens("Done.")?;
        new.push(app.codec.end_of_turn());
        let whole = new.len() as u64 <= limit;
        new.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let echo = request.get("echo").and_then(Value::as_bool).unwrap_or(false);
        let mut shown = if echo { prompt.clone() } else { Vec::new() };
        let mut logprobs: Vec<Option<f64>> =
            (0..shown.len()).map(|i| (i > 0).then(|| app.codec.logprob(i, shown[i]))).collect();
        logprobs.extend(app.codec.logprobs(prompt.len(), &new).into_iter().map(Some));
        shown.extend_from_slice(&new);
        let tokens: Vec<String> = shown.iter().map(|id| app.codec.text(&[*id])).collect();
        let usage = json!({"prompt_tokens": prompt.len(), "completion_tokens": new.len(), "total_tokens": prompt.len() + new.len()});
        let choice = json!({"index": 0, "text": app.codec.text(&shown), "finish_reason": if whole { "stop" } else { "length" },
            "token_ids": new, "prompt_token_ids": prompt,
            "logprobs": {"tokens": tokens, "token_ids": shown, "token_logprobs": logprobs}});
        let body = json!({"id": format!("cmpl-scripted-{:08x}", app.next_answer()), "object": "text_completion", "created": 0,
            "model": app.options.model, "choices": [choice], "usage": usage});
        Ok(Json(body).into_response())
    };
    either(answer())
}

fn check_model(app: &App, request: &Value) -> Result<(), Box<Response>> {
    match request.get("model") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(name)) if *name == app.options.model => Ok(()),
        Some(other) => {
            let name = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            let message = format!("The model `{name}` does not exist.");
            Err(Box::new(error(StatusCode::NOT_FOUND, &message, "NotFoundError")))
        }
    }
}

async fn chat(
    State(app): State<Arc<App>>,
    connection: Option<Extension<Connection>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = match read(&app, "/v1/chat/completions", &headers, &body) {
        Ok(request) => request,
        Err(refusal) => return *refusal,
    };
    drop(body);
    if let Err(refusal) = check_model(&app, &request) {
        return *refusal;
    }
    let (step, fault) = app.script.step(&user_prompt(&request), turn(&request));
    match fault {
        Some(Fault::Http429) => {
            let refusal = error(StatusCode::TOO_MANY_REQUESTS, "rate limited", "RateLimitError");
            return ([(header::RETRY_AFTER, "1")], refusal).into_response();
        }
        Some(Fault::Http500) => {
            return error(StatusCode::INTERNAL_SERVER_ERROR, "engine failure", "InternalServerError");
        }
        Some(Fault::Reset) => {
            let Some(Extension(Connection(reset))) = connection else {
                return Response::new(Body::from_stream(futures_util::stream::iter([answer::cut()])));
            };
            reset.cancel();
            std::future::pending::<()>().await;
        }
        Some(Fault::Stall) => tokio::time::sleep(std::time::Duration::from_secs(3600)).await,
        _ => {}
    }
    if !app.options.latency.is_zero() {
        tokio::time::sleep(app.options.latency).await;
    }
    either(say(&app, &request, &step, fault))
}

fn say(app: &App, request: &Value, step: &Step, fault: Option<Fault>) -> Result<Response, Box<Response>> {
    let prompt = app.prompt(request)?;
    let room = app.options.n_ctx;
    if prompt.len() + 8 >= room {
        let message = format!("This model's maximum context length is {room} tokens, the prompt has {}", prompt.len());
        return Err(Box::new(bad_request(&message)));
    }
    let asked =
        ["max_completion_tokens", "max_tokens"].iter().find_map(|key| request.get(key)?.as_u64()).filter(|n| *n > 0);
    let room = room - prompt.len() - 4;
    let limit = asked.and_then(|n| usize::try_from(n).ok()).map_or(room, |n| n.min(room));
    let mut ids = app.tokens(&step.text())?;
    let mut finish =
        step.finish_reason.clone().unwrap_or_else(|| if step.calls_tools() { "tool_calls" } else { "stop" }.to_owned());
    if finish != "length" && finish != "abort" {
        ids.push(app.codec.end_of_turn());
    }
    if ids.len() > limit {
        ids.truncate(limit);
        "length".clone_into(&mut finish);
    }
    let said = Said::new(app, prompt, ids, finish, fault);
    Ok(if request.get("stream").and_then(Value::as_bool).unwrap_or(false) {
        answer::streamed(app, request, &said)
    } else {
        answer::whole(app, request, &said)
    })
}

/// The turn that a request asks for: assistant messages so far.
fn turn(request: &Value) -> usize {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter(|m| m.get("role").and_then(Value::as_str) == Some("assistant")).count()
}

fn user_prompt(request: &Value) -> String {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let first = messages.iter().find(|m| m.get("role").and_then(Value::as_str) == Some("user"));
    flat(first.and_then(|m| m.get("content")))
}

pub(super) fn is_vllm(app: &App) -> bool {
    app.options.dialect == EngineKind::Vllm
}
