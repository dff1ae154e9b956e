//! The agent's side of one call: what the call's task hands over, as an HTTP answer.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces that wait for a slow agent before the engine has to wait too.
const WAITING: usize = 32;

/// A piece of an answer.
#[derive(Debug)]
enum Part {
    /// A whole answer.
    Whole { status: StatusCode, body: Bytes },
    /// Events of a streamed one.
    Events(Bytes),
    /// The end of a streamed one. Without it the connection is broken off.
    End,
}

/// Where a call's task puts the answer.
#[derive(Debug)]
pub(crate) struct ToAgent {
    parts: mpsc::Sender<Part>,
    patience: Duration,
    begun: bool,
}

/// The agent is not there any more, or does not take what it asked for.
#[derive(Debug)]
pub(crate) struct Gone;

pub(crate) fn channel(patience: Duration) -> (ToAgent, FromTask) {
    let (parts, receiver) = mpsc::channel(WAITING);
    (ToAgent { parts, patience, begun: false }, FromTask(receiver))
}

impl ToAgent {
    /// Whether any part of an answer was handed over.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(crate) async fn whole(&mut self, status: StatusCode, body: impl Into<Bytes>) -> Result<(), Gone> {
        self.send(Part::Whole { status, body: body.into() }).await
    }

    pub(crate) async fn events(&mut self, events: impl Into<Bytes>) -> Result<(), Gone> {
        self.send(Part::Events(events.into())).await
    }

    pub(crate) async fn end(&mut self) -> Result<(), Gone> {
        self.send(Part::End).await
    }

    /// Resolves when the agent's connection is gone; holds no borrow, so that it can be awaited
    /// beside the work.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let parts = self.parts.clone();
        async move { parts.closed().await }
    }

    async fn send(&mut self, part: Part) -> Result<(), Gone> {
        self.begun = true;
        self.parts.send_timeout(part, self.patience).await.map_err(|_| Gone)
    }
}

/// The handler's end.
#[derive(Debug)]
pub(crate) struct FromTask(mpsc::Receiver<Part>);

impl FromTask {
    /// Waits for the beginning of the answer; the rest streams.
    pub(crate) async fn respond(mut self) -> Response {
        match self.0.recv().await {
            Some(Part::Whole { status, body }) => json(status, body),
            Some(Part::Events(first)) => {
                let mut response = Response::new(stream(first, self.0));
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                response
            }
            // A body that fails is how a handler breaks the connection off.
            Some(Part::End) | None => Response::new(stream(Bytes::new(), self.0)),
        }
    }
}

pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn stream(first: Bytes, parts: mpsc::Receiver<Part>) -> Body {
    let begin = (Some(first).filter(|bytes| !bytes.is_empty()), Some(parts));
    Body::from_stream(futures_util::stream::unfold(begin, async |(first, parts)| {
        let mut parts = parts?;
        if let Some(first) = first {
            return Some((Ok(first), (None, Some(parts))));
        }
        match parts.recv().await {
            Some(Part::Events(bytes)) => Some((Ok(bytes), (None, Some(parts)))),
            Some(Part::End) => None,
            Some(Part::Whole { .. }) | None => {
                Some((Err(io::Error::from(io::ErrorKind::ConnectionAborted)), (None, None)))
            }
        }
    }))
}
