//! A fake embeddings endpoint: words to directions by a hash, some other words for the same thing, and faults on demand.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use gsj_retrieval::{EmbedKey, EmbedOptions, Embedder};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

pub(crate) const KEY: &str = "sk-canary-of-the-tests";
const DIMENSION: usize = 64;

/// What one request gets instead of its vectors.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    Status(u16),
    /// These vectors as they stand.
    Data(Value),
    /// No answer before the time.
    Late(Duration),
    /// Text that is no answer.
    Text(&'static str),
}

#[derive(Default)]
struct Seen {
    requests: Vec<Vec<String>>,
    faults: VecDeque<Fault>,
    /// Whether a vector also depends on what it is asked for with, as padding makes it.
    noisy: bool,
    dimension: usize,
    under_way: usize,
    most_under_way: usize,
}

/// Stops when it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        let seen = Arc::new(Mutex::new(Seen { dimension: DIMENSION, ..Seen::default() }));
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&seen));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let server = axum::serve(listener, router).into_future();
                tokio::select! { _ = server => {}, _ = stopped => {} }
            });
        });
        Self { address, seen, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it is asked in these tests: quick to try again, and to give up.
    pub(crate) fn options(&self) -> EmbedOptions {
        let mut options = EmbedOptions::new(self.url(), "fake", "1");
        options.key = Some(EmbedKey::new(KEY).expect("a key"));
        options.backoff = Duration::from_millis(1);
        options
    }

    pub(crate) fn embedder(&self) -> Arc<Embedder> {
        Arc::new(Embedder::new(self.options()).expect("usable"))
    }

    /// What was asked for since the last look, each request with its texts.
    pub(crate) fn requests(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.seen.lock().expect("whole").requests)
    }

    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.seen.lock().expect("whole").faults.extend(faults);
    }

    /// Takes back the faults that are left.
    pub(crate) fn heal(&self) {
        self.seen.lock().expect("whole").faults.clear();
    }

    pub(crate) fn make_noisy(&self) {
        self.seen.lock().expect("whole").noisy = true;
    }

    pub(crate) fn serve_dimension(&self, dimension: usize) {
        self.seen.lock().expect("whole").dimension = dimension;
    }

    /// How many requests were under way at once at most.
    pub(crate) fn most_under_way(&self) -> usize {
        self.seen.lock().expect("whole").most_under_way
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}

async fn answer(State(seen): State<Arc<Mutex<Seen>>>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.get("authorization").is_none_or(|given| given != format!("Bearer {KEY}").as_str()) {
        return (StatusCode::UNAUTHORIZED, r#"{"error": {"message": "the key is another one"}}"#).into_response();
    }
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).expect("texts");
    assert!(texts.iter().all(|text| !text.trim().is_empty()), "an empty text is refused by real endpoints: {texts:?}");
    let (fault, dimension, noise) = {
        let mut seen = seen.lock().expect("whole");
        seen.requests.push(texts.clone());
        seen.under_way += 1;
        seen.most_under_way = seen.most_under_way.max(seen.under_way);
        let noise = if seen.noisy { hash(&texts) } else { 0 };
        (seen.faults.pop_front(), seen.dimension, noise)
    };
    // Long enough for another request to come in beside it.
    tokio::time::sleep(Duration::from_millis(2)).await;
    let response = match fault {
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).expect("a status");
            // An endpoint that tells what it was shown.
            (status, format!(r#"{{"error": {{"message": "not now, {KEY}"}}}}"#)).into_response()
        }
        Some(Fault::Data(data)) => json!({"object": "list", "data": data}).to_string().into_response(),
        Some(Fault::Text(text)) => text.into_response(),
        Some(Fault::Late(time)) => {
            tokio::time::sleep(time).await;
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        None => {
            let entry =
                |(index, text): (usize, &String)| json!({"index": index, "embedding": vector(text, dimension, noise)});
            let data: Vec<Value> = texts.iter().enumerate().map(entry).collect();
            json!({"object": "list", "data": data, "model": body["model"]}).to_string().into_response()
        }
    };
    seen.lock().expect("whole").under_way -= 1;
    response
}

/// The sum of the directions of a text's words.
fn vector(text: &str, dimension: usize, noise: u64) -> Vec<f32> {
    let mut sum = vec![0.0_f32; dimension];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        for (at, number) in sum.iter_mut().enumerate() {
            *number += fraction(hash(&(meaning(&word.to_lowercase()), at)));
        }
    }
    for (at, number) in sum.iter_mut().enumerate() {
        *number += if noise == 0 { 0.0 } else { fraction(hash(&(noise, at))) / 4.0 };
    }
    sum
}

/// Other words for the same thing.
fn meaning(word: &str) -> &str {
    match word {
        "licence" => "permit",
        "bird" => "heron",
        "cash" => "marks",
        other => other,
    }
}

fn hash(of: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// -1 to 1.
fn fraction(of: u64) -> f32 {
    (of % 2001) as f32 / 1000.0 - 1.0
}
