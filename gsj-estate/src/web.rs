//! Small calls over http: a size limit, a deadline, and patience with what may be over in a moment.

use crate::error::EstateError;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The largest answer that is read, in bytes.
const MOST_ANSWER: usize = 256 << 20;
/// How long one call may take.
const ONE_CALL: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How much of what a server says is passed on, in characters.
const EXCERPT: usize = 200;

/// A client with a runtime of its own. Several threads may call at once.
pub(crate) struct Web {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    patience: Duration,
    /// When every call ends, whatever state it is in.
    deadline: Option<Instant>,
}

/// One call.
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: &'a str,
    /// The URL as it may be shown: without what is secret.
    pub(crate) shown: &'a str,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) accept: Option<&'static str>,
    pub(crate) body: Option<Value>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// What the server said, as a part of a sentence; empty when it said nothing.
    pub(crate) fn words(&self) -> String {
        let parsed = self.json();
        let message = parsed.as_ref().and_then(|body| body.get("message").or_else(|| body.get("error"))?.as_str());
        let text = message.map_or_else(|| String::from_utf8_lossy(&self.body).into_owned(), str::to_owned);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(EXCERPT).collect();
        if text.is_empty() { text } else { format!(" (it says: {text})") }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Web {
    pub(crate) fn new(base: &str, certificates: Option<&Path>, patience: Duration) -> Result<Self, EstateError> {
        // Another part of the process may have chosen a provider already; then that one is used.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let fault = |what: String| EstateError::Host { url: base.to_owned(), what };
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(fault("a call that blocks was made inside an async runtime".into()));
        }
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(ONE_CALL);
        if let Some(path) = certificates {
            let pem = std::fs::read(path).map_err(|error| EstateError::file("read", path, error))?;
            let roots = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|error| fault(format!("`{}` holds no certificates: {error}", path.display())))?;
            builder = builder.tls_certs_only(roots);
        } else if base.starts_with("http://") {
            // No certificate is ever looked at, so a machine without root certificates must do.
            builder = builder.tls_certs_only([]);
        }
        let client =
            builder.build().map_err(|error| fault(format!("no client can be made: {}", error.without_url())))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| fault(format!("no runtime can be started: {error}")))?;
        Ok(Self { runtime, client, patience, deadline: None })
    }

    /// Ends all calls at a moment, bodies and further tries included.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// Makes a call, again and again while the server cannot be reached or has trouble, until patience ends.
    pub(crate) fn call(&self, call: &Call<'_>) -> Result<Answer, EstateError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let done = self.runtime.block_on(self.in_time(call));
            let late = self.deadline.is_some_and(|deadline| Instant::now() + pause >= deadline);
            let last = late || started.elapsed() + pause > self.patience;
            match done {
                Ok(answer) if last || ![429, 500, 502, 503, 504].contains(&answer.status) => return Ok(answer),
                Err(what) if last => return Err(EstateError::Host { url: call.shown.to_owned(), what }),
                _ => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn in_time(&self, call: &Call<'_>) -> Result<Answer, String> {
        let Some(deadline) = self.deadline else { return self.once(call).await };
        let late = |_| Err("did not answer in the time that was left".to_owned());
        tokio::time::timeout_at(deadline.into(), self.once(call)).await.unwrap_or_else(late)
    }

    async fn once(&self, call: &Call<'_>) -> Result<Answer, String> {
        let method = reqwest::Method::from_bytes(call.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut request = self.client.request(method, call.url);
        for (name, value) in [("authorization", call.authorization), ("accept", call.accept)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let mut answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MOST_ANSWER {
                return Err(format!("its answer is longer than {} MiB", MOST_ANSWER >> 20));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    }
}

/// The innermost cause, which says most; without the URL, which may hold a token.
fn lost(error: reqwest::Error) -> String {
    let what = if error.is_connect() { "cannot be reached" } else { "did not answer" };
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("{what}: {cause}")
}
