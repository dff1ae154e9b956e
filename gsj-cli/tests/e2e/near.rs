//! Ranking by the vectors of an embeddings endpoint, as the commands offer it. The endpoint is a fake one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::{Estate, Process, fixture, gsj, output, text};

const KEY_ENV: &str = "GSJ_TEST_EMBEDDINGS_KEY";
const KEY: &str = "sk-canary-embeddings";

/// Counts letters: texts of the same letters point the same way.
struct Endpoint {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    fn start() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&asked));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! { _ = axum::serve(listener, router).into_future() => {}, _ = stopped => {} }
            });
        });
        Self { address, asked, stop: Some(stop), thread: Some(thread) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked for since the last look.
    fn asked(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn answer(
    State(asked): State<Arc<Mutex<Vec<Vec<String>>>>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
    let vector = |text: &String| {
        let count = |letter: char| text.to_lowercase().chars().filter(|c| *c == letter).count();
        ('a'..='z').map(count).chain([1]).collect::<Vec<_>>()
    };
    let entry = |(index, text)| json!({"index": index, "embedding": vector(text)});
    let data: Vec<Value> = texts.iter().enumerate().map(entry).collect();
    asked.lock().unwrap().push(texts);
    Json(json!({"data": data}))
}

fn search(action: &str, endpoint: &str, query: &str) -> std::process::Command {
    let mut command = gsj();
    command.args(["retrieval", action, "--case", "harbor-lease", "--timestep", "12", "--corpus"]);
    command.arg(fixture("corpus")).args(["--embeddings-url", endpoint, "--embeddings-model", "fake"]);
    command.args(["--embeddings-key-env", KEY_ENV, query]).env(KEY_ENV, KEY);
    command
}

#[test]
fn a_page_without_a_word_of_the_query_is_found_and_explained() {
    let endpoint = Endpoint::start();
    let found = output(search("search", &endpoint.url(), "zzyzx").args(["--format", "json"]));
    assert!(found.status.success(), "{}", text(&found));
    let hit: Value = serde_json::Deserializer::from_slice(&found.stdout).into_iter().next().unwrap().unwrap();
    assert!(hit["page"].as_u64().unwrap() <= 12, "{hit}");
    let asked = endpoint.asked();
    assert_eq!(asked.last().unwrap(), &["zzyzx"]);

    let why = output(search("explain", &endpoint.url(), "drying shed").args(["--format", "human"]));
    assert!(why.status.success(), "{}", text(&why));
    let said = String::from_utf8_lossy(&why.stdout);
    assert!(said.contains("rank by words 1 (counts 1.00)") && said.contains("nearest: "), "{said}");
    assert!(!text(&found).contains(KEY) && !text(&why).contains(KEY));
}

#[test]
fn what_is_missing_is_said_before_anything_is_asked() {
    let endpoint = Endpoint::start();
    let unset = output(search("search", &endpoint.url(), "shed").env_remove(KEY_ENV));
    assert_eq!(unset.status.code(), Some(2));
    assert!(text(&unset).contains(KEY_ENV), "{}", text(&unset));
    let mut command = gsj();
    command.args(["retrieval", "serve", "--index", "/nonexistent/index", "--corpus"]).arg(fixture("corpus"));
    let unlabelled = output(command.args(["--embeddings-url", &endpoint.url(), "--embeddings-model", "fake"]));
    assert_eq!(unlabelled.status.code(), Some(2));
    assert!(text(&unlabelled).contains("--embeddings-revision is missing"), "{}", text(&unlabelled));
    let bad = output(&mut search("search", "http://bob:hunter2@h", "shed"));
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad).contains("no base URL") && !text(&bad).contains("hunter2"), "{}", text(&bad));
    assert!(endpoint.asked().is_empty());
}

#[test]
fn a_server_keeps_the_vectors_of_its_cases_and_asks_for_none_twice() {
    let (endpoint, estate) = (Endpoint::start(), Estate::new());
    estate.install("light");
    let config = estate.configure("http://127.0.0.1:9", "light", |config| {
        config["retrieval"] = json!({"embeddings": {
            "base_url": endpoint.url(), "model": "fake", "revision": "1", "api_key_env": KEY_ENV,
        }});
    });
    let start = || Process::start(gsj().args(["serve", "--config"]).arg(&config).env(KEY_ENV, KEY));
    drop(start());
    let asked = endpoint.asked();
    assert!(!asked.is_empty());
    let files = std::fs::read_dir(estate.path("state/index")).unwrap();
    let names: Vec<String> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert_eq!(count(".gsjvec"), count(".gsjcase"), "{names:?}");
    drop(start());
    assert!(endpoint.asked().is_empty(), "what was embedded is used again");

    let unset = output(gsj().args(["serve", "--config"]).arg(&config).env_remove(KEY_ENV));
    assert_eq!(unset.status.code(), Some(2));
    assert!(text(&unset).contains("retrieval.embeddings.api_key_env"), "{}", text(&unset));
}
