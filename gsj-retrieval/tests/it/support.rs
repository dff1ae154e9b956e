//! A small corpus, tokens, and one request at a time through a router.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use gsj_cutoff::tokens::{Claims, Secret, mint};
use gsj_retrieval::{Library, Options, Service, Tools};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tower::ServiceExt as _;

pub(crate) const NOW: i64 = 1_790_000_000;
pub(crate) const SECRET: &[u8] = b"a-secret-of-the-tests-0123456789abcdef";

pub(crate) fn secret() -> Secret {
    Secret::new(SECRET.to_vec()).expect("long enough")
}

/// Case `alpha` has six pages, `beta` two. "heron" stands on pages 2 and 5 of alpha, "kestrel" only on page 6.
pub(crate) fn corpus() -> BTreeMap<String, Vec<String>> {
    let alpha = [
        "## Page 1\n\nThe lease of the mill was signed in April.",
        "## Page 2\r\n\r\nA heron was painted on the door. The permit is SN-0100031.",
        "## Page 3\n\nNo witness came. Der Zeuge Größmann fehlte.",
        "## Page 4\n\nThe miller paid 250 marks.",
        "## Page 5\n\nThe heron was covered with lime; the heron came through again.",
        "## Page 6\n\nA kestrel replaced the heron.",
    ];
    let beta = ["Beta begins with a ferry.", "Beta ends with a kestrel."];
    let owned = |pages: &[&str]| pages.iter().map(|page| (*page).to_owned()).collect();
    BTreeMap::from([("alpha".to_owned(), owned(&alpha)), ("beta".to_owned(), owned(&beta))])
}

pub(crate) fn library() -> Library {
    Library::from_pages(corpus()).expect("valid corpus")
}

pub(crate) fn options() -> Options {
    Options::new(Arc::new(|| NOW))
}

pub(crate) fn service_of(library: Library) -> Service {
    Service::new(library, Tools::builtin().expect("shipped"), vec![secret()], options())
}

pub(crate) fn router() -> Router {
    service_of(library()).router()
}

pub(crate) fn token(case_id: &str, timestep: u32) -> String {
    let claims = Claims { case_id: case_id.into(), timestep, episode_id: "ep-1".into(), exp: NOW + 60 };
    mint(&claims, &secret()).expect("valid claims")
}

/// One answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON body")
    }

    /// The one message of an event stream, whose framing is checked on the way.
    pub(crate) fn event(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        let data = self.body.strip_prefix("event: message\r\ndata: ").and_then(|rest| rest.strip_suffix("\r\n\r\n"));
        let data = data.expect("one event and no more");
        assert!(!data.contains(['\r', '\n']), "data must be one line");
        serde_json::from_str(data).expect("JSON message")
    }
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("whole body").to_bytes();
    let body = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    Answer { status: parts.status, headers: parts.headers, body }
}

pub(crate) fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .body(body.into())
        .expect("valid request")
}

/// Calls a tool and gives the result object.
pub(crate) async fn call(router: &Router, token: &str, tool: &str, arguments: Value) -> Value {
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let message = send(router, post(&format!("/mcp/{token}"), body.to_string())).await.event();
    assert_eq!(message["id"], 7);
    message["result"].clone()
}

/// The texts of a result's blocks.
pub(crate) fn texts(result: &Value) -> Vec<String> {
    let blocks = result["content"].as_array().expect("content");
    blocks.iter().map(|block| block["text"].as_str().expect("text block").to_owned()).collect()
}

/// A file below the shared folder, or nothing and a loud word.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let found = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("SKIPPED: {} is not there", found.display());
    None
}
