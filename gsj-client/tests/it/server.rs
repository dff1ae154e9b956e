//! Servers for tests, each on a port of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A server that gives the same answer to everything and remembers what it was asked.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

struct Shared {
    status: StatusCode,
    body: Vec<u8>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn answering(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let status = StatusCode::from_u16(status).expect("a status");
        let shared = Arc::new(Shared { status, body: body.into(), seen: Arc::clone(&seen) });
        let app = Router::new().fallback(answer).with_state(shared);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { url, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no test panics with it").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Bytes) -> (StatusCode, Vec<u8>) {
    let body = String::from_utf8_lossy(&body).into_owned();
    let seen = Seen { method: method.to_string(), path: uri.to_string(), body };
    shared.seen.lock().expect("no test panics with it").push(seen);
    (shared.status, shared.body.clone())
}

/// What a [`Flaky`] server does with one connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Closes it without a word.
    Drop,
    /// Answers.
    Reply(u16, String),
    /// Promises more bytes than it sends.
    Cut(String),
    /// Never answers.
    Stall,
}

/// A server that does one thing per connection, in order; when nothing is left it stalls.
pub(crate) struct Flaky {
    pub(crate) url: String,
    left: Arc<Mutex<VecDeque<Act>>>,
    task: JoinHandle<()>,
}

impl Flaky {
    pub(crate) async fn doing(acts: impl IntoIterator<Item = Act>) -> Self {
        let left = Arc::new(Mutex::new(acts.into_iter().collect::<VecDeque<_>>()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let acts = Arc::clone(&left);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let act = acts.lock().expect("no test panics with it").pop_front();
                let (status, body, length) = match act {
                    Some(Act::Drop) => continue,
                    Some(Act::Reply(status, body)) => (status, body.clone(), body.len()),
                    Some(Act::Cut(body)) => (200, body.clone(), body.len() + 10),
                    Some(Act::Stall) | None => {
                        held.push(stream);
                        continue;
                    }
                };
                // The head of a request without a body fits into one read here.
                let _ = stream.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        Self { url, left, task }
    }

    /// How many acts have not been played.
    pub(crate) fn left(&self) -> usize {
        self.left.lock().expect("no test panics with it").len()
    }
}

impl Drop for Flaky {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The URL of a port on which nobody listens.
pub(crate) fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}
