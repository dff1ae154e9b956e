//! One session's model endpoints, and the record of what passed through them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::reconstruct;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, rfc3339};
use crate::engine::{Engine, Sampling};
use crate::failure::{FailureKind, SessionFailure};
use crate::log::Log;
use crate::merged::Merged;
use crate::{call, downstream};

/// The largest request body of an agent, in bytes.
const BODY_LIMIT: usize = 16 << 20;
/// What an agent is told once its session cannot go on. Agents judge errors by words and numbers
/// in the text (`agent.md` section 2): none of those that make them try again stand here.
const GONE: &str =
    r#"{"error":{"message":"This episode takes no more model calls.","type":"gone","param":null,"code":"gone"}}"#;

/// What one session may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Model calls. Calls whose answer the engine broke off do not count; those that the agent broke off do.
    pub max_turns: Option<u32>,
    /// Sampled tokens of all calls together; a call is refused once they reach this.
    pub max_tokens: Option<u64>,
}

/// How a [`Session`] is kept.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Names the session in its document.
    pub session_id: String,
    /// The file for the record; it must not exist yet. Made with mode 0600.
    pub log: PathBuf,
    /// An object: the metadata of each record and of the document.
    pub metadata: Value<'static>,
    /// What the session may ask for.
    pub limits: CallLimits,
    /// Sampling of this session instead of the engine's (a seed of its own, for example).
    pub sampling: Option<Sampling>,
    /// How long [`Session::finish`] waits for running calls before it breaks them off.
    pub finish_timeout: Duration,
    /// Where timestamps come from.
    pub clock: Clock,
    /// How the trajectory is built while the session runs; absent, or the reference's mode: it is not.
    pub builder: Option<reconstruct::Options>,
}

impl SessionOptions {
    /// Options without metadata and limits, with the machine's clock and 5 s for running calls.
    pub fn new(session_id: impl Into<String>, log: impl Into<PathBuf>) -> Self {
        Self {
            session_id: session_id.into(),
            log: log.into(),
            metadata: Value::from(Object::new()),
            limits: CallLimits::default(),
            sampling: None,
            finish_timeout: Duration::from_secs(5),
            clock: Clock::system(),
            builder: None,
        }
    }
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The log cannot be made.
    #[error("make the session log `{path}`; it must be a new file in a writable folder")]
    Log {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The metadata is no object.
    #[error("open the session `{session_id}`: its metadata is not an object")]
    Metadata {
        /// The session.
        session_id: String,
    },
}

/// What a finished session leaves.
#[derive(Debug)]
pub struct Recorded {
    /// The completion session of `checks.md` section 10.1: completed calls in order of arrival, as
    /// kept in the log but without the raw answers. Without calls where `trajectory` is there.
    pub document: Value<'static>,
    /// The trajectory, when it was asked for and all calls came in order; what building one from
    /// the log would give.
    pub trajectory: Option<Value<'static>>,
    /// Why the session could not go on, if so.
    pub failure: Option<SessionFailure>,
    /// Completed calls.
    pub calls: usize,
    /// Calls whose answer broke off, on either side.
    pub aborted: usize,
    /// Tokens sampled in completed calls.
    pub tokens: u64,
    /// Time spent waiting for the engine, all calls together, in milliseconds.
    pub engine_ms: f64,
}

/// One session's gateway: serves the agent, keeps the record.
///
/// Dropping it breaks off what still runs; [`Session::finish`] waits first.
#[derive(Debug)]
pub struct Session {
    inner: Arc<Inner>,
}

impl Session {
    /// Opens the log; the session takes calls from then on.
    ///
    /// # Errors
    /// [`SessionError`]: the log exists or cannot be made, or the metadata is no object.
    pub fn open(engine: Arc<Engine>, options: SessionOptions) -> Result<Self, SessionError> {
        if options.metadata.as_object().is_none() {
            return Err(SessionError::Metadata { session_id: options.session_id });
        }
        let log =
            Log::create(&options.log).map_err(|source| SessionError::Log { path: options.log.clone(), source })?;
        let created_at = options.clock.now();
        let merged = Merged::new(options.builder.clone());
        let inner = Inner {
            engine,
            options,
            log,
            created_at,
            state: Mutex::default(),
            completed: AtomicUsize::new(0),
            failure: watch::Sender::new(None),
            calls: TaskTracker::new(),
            stop: CancellationToken::new(),
            merged,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The endpoints of the agent: `POST /v1/chat/completions` and `GET /v1/models`.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/models", get(models))
            .fallback(async || {
                downstream::json(StatusCode::NOT_FOUND, error_body("not_found", "There is no such endpoint."))
            })
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .with_state(Arc::clone(&self.inner))
    }

    /// Resolves when the session cannot go on, with the reason; never otherwise.
    pub fn failed(&self) -> impl Future<Output = SessionFailure> + Send + use<> {
        let mut failure = self.inner.failure.subscribe();
        async move {
            loop {
                if let Some(failure) = failure.borrow_and_update().clone() {
                    return failure;
                }
                if failure.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// How many calls are completed.
    pub fn calls(&self) -> usize {
        self.inner.completed.load(Ordering::Acquire)
    }

    /// Takes no more calls, waits for the running ones (then breaks them off), and reads the
    /// record back.
    ///
    /// A log that cannot be read back gives an empty document and a failure of kind
    /// [`FailureKind::Log`].
    pub async fn finish(&self) -> Recorded {
        let inner = &self.inner;
        inner.calls.close();
        // Past the deadline what still runs is cancelled, and ends at its next step.
        let _ended = tokio::time::timeout(inner.options.finish_timeout, inner.calls.wait()).await;
        inner.stop.cancel();
        let _ended = tokio::time::timeout(inner.options.finish_timeout, inner.calls.wait()).await;

        let calls = inner.completed.load(Ordering::Acquire);
        let header = inner.document(&inner.state(), Vec::new());
        if let Some(trajectory) = inner.merged.finish(calls, header.as_ref()) {
            return inner.recorded(header, calls, Some(trajectory));
        }
        let completions = inner.log.completions().await.unwrap_or_else(|error| {
            let message = format!("read back the session log `{}`: {error}", inner.log.path().display());
            inner.fail(SessionFailure::new(FailureKind::Log, message));
            Vec::new()
        });
        let calls = completions.len();
        let document = inner.document(&inner.state(), completions);
        inner.recorded(document, calls, None)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

/// What the session's calls share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: SessionOptions,
    pub(crate) log: Log,
    created_at: SystemTime,
    state: Mutex<Counts>,
    completed: AtomicUsize,
    failure: watch::Sender<Option<SessionFailure>>,
    calls: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) merged: Merged,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    arrivals: u64,
    turns: u32,
    aborted: usize,
    tokens: u64,
    engine_time: Duration,
    model_requested: Option<String>,
    model_used: Option<String>,
}

/// A call that was let in.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) sequence: u64,
    pub(crate) at: SystemTime,
    pub(crate) started: Instant,
    pub(crate) body: Bytes,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, Counts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sampling(&self) -> &Sampling {
        self.options.sampling.as_ref().unwrap_or(&self.engine.options().sampling)
    }

    /// Ends the session; the first reason stays.
    pub(crate) fn fail(&self, failure: SessionFailure) {
        let first = self.failure.send_if_modified(|slot| {
            let first = slot.is_none();
            slot.get_or_insert_with(|| failure.clone());
            first
        });
        if first {
            tracing::warn!(session = %self.options.session_id, kind = failure.kind.code(), "{failure}");
        }
    }

    /// Lets a call in, or says that the session is over.
    fn admit(&self, body: Bytes, started: Instant) -> Option<Arrival> {
        if self.stop.is_cancelled() || self.calls.is_closed() || self.failure.borrow().is_some() {
            return None;
        }
        let limits = self.options.limits;
        let mut state = self.state();
        let over = match limits {
            CallLimits { max_turns: Some(most), .. } if state.turns >= most => Some(("max_turns", u64::from(most))),
            CallLimits { max_tokens: Some(most), .. } if state.tokens >= most => Some(("max_tokens", most)),
            _ => None,
        };
        if let Some((name, value)) = over {
            drop(state);
            self.fail(SessionFailure::limit(name, value));
            return None;
        }
        state.arrivals += 1;
        state.turns += 1;
        Some(Arrival { sequence: state.arrivals, at: self.options.clock.now(), started, body })
    }

    /// A further attempt of a call is an arrival of its own for the record.
    pub(crate) fn next_sequence(&self) -> u64 {
        let mut state = self.state();
        state.arrivals += 1;
        state.arrivals
    }

    /// Starts a task that [`Session::finish`] waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.calls.spawn(task);
    }

    pub(crate) fn spent(&self, engine_time: Duration) {
        self.state().engine_time += engine_time;
    }

    pub(crate) fn count_completed(&self, tokens: usize, requested: Option<&str>, used: Option<&str>) {
        let mut state = self.state();
        state.tokens += tokens as u64;
        if state.model_requested.is_none() {
            state.model_requested = requested.map(str::to_owned);
        }
        if state.model_used.is_none() {
            state.model_used = used.map(str::to_owned);
        }
        self.completed.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn count_aborted(&self) {
        self.state().aborted += 1;
    }

    /// A call that ended without an answer was no turn.
    pub(crate) fn give_turn_back(&self) {
        let mut state = self.state();
        state.turns = state.turns.saturating_sub(1);
    }

    fn recorded(&self, document: Value<'static>, calls: usize, trajectory: Option<Value<'static>>) -> Recorded {
        let failure = self.failure.borrow().clone();
        let state = self.state();
        Recorded {
            document,
            trajectory,
            failure,
            calls,
            aborted: state.aborted,
            tokens: state.tokens,
            engine_ms: millis(state.engine_time),
        }
    }

    fn document(&self, state: &Counts, completions: Vec<Value<'static>>) -> Value<'static> {
        let options = &self.options;
        let task = options.metadata.get("task_id").and_then(ValueRef::as_str).map(str::to_owned);
        let mut out = Object::new();
        out.insert("session_id", options.session_id.clone());
        out.insert("created_at", rfc3339(self.created_at));
        out.insert("completion_count", completions.len());
        out.insert("task_id", task);
        out.insert("model_requested", state.model_requested.clone());
        out.insert("model_used", state.model_used.clone());
        out.insert("api_type", "openai_chat");
        out.insert("metadata", options.metadata.clone());
        out.insert("completions", completions);
        Value::from(out)
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

pub(crate) fn error_body(kind: &str, message: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": kind, "param": null, "code": kind}}).to_string()
}

pub(crate) fn gone_body() -> &'static str {
    GONE
}

async fn chat(State(session): State<Arc<Inner>>, body: Result<Bytes, BytesRejection>) -> Response {
    let started = Instant::now();
    let Ok(body) = body else {
        let message = format!("The request is larger than {} MB, or was cut short.", BODY_LIMIT >> 20);
        return downstream::json(StatusCode::PAYLOAD_TOO_LARGE, error_body("invalid_request", &message));
    };
    let Some(arrival) = session.admit(body, started) else {
        return downstream::json(StatusCode::GONE, GONE);
    };
    let (to_agent, answer) = downstream::channel(session.engine.options().read_timeout);
    // A task of its own, so that the call's end is recorded even when the connection is gone.
    session.spawn(call::run(Arc::clone(&session), arrival, to_agent));
    answer.respond().await
}

async fn models(State(session): State<Arc<Inner>>) -> Response {
    let engine = session.engine.options();
    let entry = serde_json::json!({"id": engine.model, "object": "model", "created": 0, "owned_by": engine.kind});
    downstream::json(StatusCode::OK, serde_json::json!({"object": "list", "data": [entry]}).to_string())
}
