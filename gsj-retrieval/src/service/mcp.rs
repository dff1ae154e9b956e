//! MCP over POST: the rows of retrieval.md section 3.
//!
//! rmcp's stateless streamable HTTP runs the methods; this layer meets the rows that it does otherwise (statuses of bad
//! requests, `*/*`, batches, the event's framing, unknown methods, declarations as data) and hands it only requests that
//! are whole.

use super::Episode;
use super::http::{BodyFault, Front, read_body};
use super::message;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tracing::error;

/// The largest request body.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The revisions that `initialize` may settle on.
pub(super) const PROTOCOL_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// What rmcp may be asked. `tools/list` is answered here; anything else does not exist.
const METHODS: [&str; 8] = [
    "initialize",
    "ping",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
];

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// What one POST carries.
enum Incoming {
    Request {
        id: Value,
        method: String,
    },
    Notification,
    /// An answer to a request that this server never makes.
    Answer,
}

pub(super) async fn post(front: &Front, episode: Episode, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        return (StatusCode::BAD_REQUEST, "Content-Type must be application/json").into_response();
    }
    if !accepts_both(&parts.headers) {
        let message = "Accept must list application/json and text/event-stream";
        return refuse(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, message, &Value::Null);
    }
    let bytes = match read_body(body, MAX_BODY, front.shared.options.body_timeout).await {
        Ok(bytes) => bytes,
        Err(BodyFault::TooLarge) => return (StatusCode::PAYLOAD_TOO_LARGE, "body over 4 MiB").into_response(),
        Err(BodyFault::TooSlow) => return (StatusCode::REQUEST_TIMEOUT, "body did not arrive in time").into_response(),
        Err(BodyFault::Broken) => return (StatusCode::BAD_REQUEST, "body could not be read").into_response(),
    };
    let Some(message) = message::read(&bytes) else {
        return refuse(StatusCode::BAD_REQUEST, PARSE_ERROR, "body is not JSON", &Value::Null);
    };
    drop(bytes);
    let Some(incoming) = classify(&message) else {
        let id = message.get("id").filter(|id| is_id(id)).unwrap_or(&Value::Null);
        let problem = "body is not one JSON-RPC 2.0 message";
        return refuse(StatusCode::BAD_REQUEST, INVALID_PARAMS, problem, id);
    };
    // `initialize` settles the version in its body, so a client may well announce there what is not known here.
    let settles_version = matches!(&incoming, Incoming::Request { method, .. } if method == "initialize");
    let version = parts.headers.get(PROTOCOL_VERSION).filter(|_| !settles_version);
    if version.is_some_and(|version| !PROTOCOL_VERSIONS.iter().any(|known| version == known)) {
        let id = message.get("id").unwrap_or(&Value::Null);
        let problem = format!("MCP-Protocol-Version is unknown; there are {}", PROTOCOL_VERSIONS.join(", "));
        return refuse(StatusCode::BAD_REQUEST, INVALID_REQUEST, &problem, id);
    }
    match incoming {
        Incoming::Notification | Incoming::Answer => StatusCode::ACCEPTED.into_response(),
        Incoming::Request { id, method } if method == "tools/list" => {
            event(json!({"jsonrpc": "2.0", "id": id, "result": front.shared.listing}).to_string().as_bytes())
        }
        Incoming::Request { id, method } if !METHODS.contains(&method.as_str()) => {
            let problem = json!({"code": METHOD_NOT_FOUND, "message": "Method not found", "data": method});
            event(json!({"jsonrpc": "2.0", "id": id, "error": problem}).to_string().as_bytes())
        }
        Incoming::Request { id, .. } => {
            // What was read here, spelled anew: rmcp reads nothing else, and means by it what was meant above.
            forward(front, episode, version, message.to_string().into(), &id).await
        }
    }
}

/// Hands a whole request to rmcp and frames its answer.
async fn forward(front: &Front, episode: Episode, version: Option<&HeaderValue>, body: Bytes, id: &Value) -> Response {
    // A request of its own: the token stands in the outer one's path and goes no further.
    let mut inner = Request::new(Full::new(body));
    *inner.method_mut() = axum::http::Method::POST;
    *inner.uri_mut() = axum::http::Uri::from_static("/mcp");
    let headers = inner.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if let Some(version) = version {
        headers.insert(PROTOCOL_VERSION, version.clone());
    }
    inner.extensions_mut().insert(episode);
    let answer = front.shared.rmcp.handle(inner).await;
    let status = answer.status();
    let json = answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let bytes = match answer.into_body().collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    };
    if json && status == StatusCode::OK {
        return event(&bytes);
    }
    if json && status.is_client_error() {
        return (status, [(CONTENT_TYPE, "application/json")], bytes).into_response();
    }
    error!(target: "gsj_retrieval", %status, "the transport gave no JSON-RPC answer");
    refuse(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "the request could not be answered", id)
}

/// One message as a stream of one event.
fn event(message: &[u8]) -> Response {
    let mut body = Vec::with_capacity(message.len() + 32);
    body.extend_from_slice(b"event: message\r\ndata: ");
    body.extend_from_slice(message);
    body.extend_from_slice(b"\r\n\r\n");
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

fn refuse(status: StatusCode, code: i64, message: &str, id: &Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn classify(message: &Value) -> Option<Incoming> {
    let object = message.as_object()?;
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    let Some(method) = object.get("method") else {
        let answers = object.contains_key("result") != object.contains_key("error");
        return (answers && object.get("id").is_some_and(is_id)).then_some(Incoming::Answer);
    };
    let method = method.as_str()?;
    if !has_plain_params(object) {
        return None;
    }
    match object.get("id") {
        None => Some(Incoming::Notification),
        Some(id) if is_id(id) => Some(Incoming::Request { id: id.clone(), method: method.to_owned() }),
        Some(_) => None,
    }
}

fn has_plain_params(object: &Map<String, Value>) -> bool {
    object.get("params").is_none_or(|params| params.is_object() || params.is_null())
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    essence(kind).eq_ignore_ascii_case("application/json")
}

fn accepts_both(headers: &HeaderMap) -> bool {
    let (mut json, mut stream) = (false, false);
    let lists = headers.get_all(ACCEPT).iter().filter_map(|list| list.to_str().ok());
    for kind in lists.flat_map(|list| list.split(',')).map(|entry| essence(entry).to_ascii_lowercase()) {
        json |= matches!(kind.as_str(), "*/*" | "application/*" | "application/json");
        stream |= matches!(kind.as_str(), "*/*" | "text/*" | "text/event-stream");
    }
    json && stream
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or("").trim()
}
