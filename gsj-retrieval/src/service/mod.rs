//! The service: the library behind HTTP, one token and one scope per request.
//!
//! A request passes in this order (retrieval.md section 2): readiness, token, scope, MCP. The claims and the library that
//! it was checked against travel with it, so that a library published meanwhile changes nothing for it.

mod admin;
mod board;
mod handler;
mod http;
mod indexer;
mod limits;
mod mcp;
mod message;
mod metrics;
mod near;
mod record;
mod refusal;

use crate::{Library, Tools};
use axum::Router;
use axum::http::HeaderMap;
use board::Board;
use gsj_cutoff::tokens::{self, Claims, Secret};
use handler::{Gate, Handler};
use http::Only;
use metrics::Metrics;
use refusal::Refusal;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

pub use board::Reindex;
pub use indexer::{IndexFault, IndexSource, Indexer};
pub use record::{CallOutcome, CallRecord, LogField};

/// The caller's clock: seconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Is told of each tool call when it has been answered. Called on a thread that must not wait for long.
pub type CallLog = Arc<dyn Fn(&CallRecord) + Send + Sync>;

/// How the service behaves. [`Options::new`] gives the defaults.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Tells the time, for tokens.
    pub clock: Clock,
    /// How late a token may be, in seconds (30).
    pub leeway_s: i64,
    /// The most hits that one search gives (20).
    pub max_k: u32,
    /// The hits of a search that names no number (5). What the declarations call the default is not changed by it.
    pub default_k: u32,
    /// The longest query, in characters (32,768).
    pub max_query_chars: usize,
    /// The most tool calls a second, all together (no limit). Each limit is a bucket of what one second brings.
    pub calls_per_second: Option<NonZeroU32>,
    /// The most tool calls a second of one episode (5,000).
    pub calls_per_second_per_episode: Option<NonZeroU32>,
    /// How many searches run at once; more wait (one for each processor).
    pub concurrent_searches: NonZeroUsize,
    /// How long a search waits for its turn before the tool answers that the service is busy (30 s).
    pub queue_timeout: Duration,
    /// How many searches may wait at once before the tool answers that the service is busy (1,024).
    pub max_waiting: usize,
    /// How long a request's body may take to arrive (30 s).
    pub body_timeout: Duration,
    /// The hosts by whose names the service is called, `NAME`, `NAME:PORT` or `NAME:*`; others are answered 421 but for
    /// `/health` and a session's own socket. Absent: any name.
    pub allowed_hosts: Option<Vec<String>>,
    /// Who is told of each tool call, beside the line that `tracing` gets.
    pub call_log: Option<CallLog>,
}

impl Options {
    /// The defaults, with the caller's clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            leeway_s: tokens::LEEWAY_S,
            max_k: 20,
            default_k: 5,
            max_query_chars: 32_768,
            calls_per_second: None,
            calls_per_second_per_episode: NonZeroU32::new(5_000),
            concurrent_searches: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            queue_timeout: Duration::from_secs(30),
            max_waiting: 1024,
            body_timeout: Duration::from_secs(30),
            allowed_hosts: None,
            call_log: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("leeway_s", &self.leeway_s)
            .field("max_k", &self.max_k)
            .field("concurrent_searches", &self.concurrent_searches)
            .field("queue_timeout", &self.queue_timeout)
            .field("body_timeout", &self.body_timeout)
            .field("calls_per_second_per_episode", &self.calls_per_second_per_episode)
            .field("allowed_hosts", &self.allowed_hosts)
            .finish_non_exhaustive()
    }
}

/// The scope of one session: what its token's claims must be on a socket of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The case.
    pub case_id: String,
    /// The timestep T.
    pub timestep: u32,
    /// The episode.
    pub episode_id: String,
}

impl Scope {
    fn admits(&self, claims: &Claims) -> bool {
        (&self.case_id, self.timestep, &self.episode_id) == (&claims.case_id, claims.timestep, &claims.episode_id)
    }
}

/// The retrieval service. Cloning gives another handle on the same one.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    board: Board,
    /// Rung when an index run is asked for, or none is wanted any more.
    bell: Arc<Notify>,
    metrics: Arc<Metrics>,
    listing: serde_json::Value,
    secrets: Vec<Secret>,
    options: Options,
    started: i64,
    rmcp: StreamableHttpService<Handler, NeverSessionManager>,
}

impl Service {
    /// A service that answers from `library` at once.
    #[must_use]
    pub fn new(library: Library, tools: Tools, secrets: Vec<Secret>, options: Options) -> Self {
        let service = Self::starting(tools, secrets, options);
        service.publish(library);
        service
    }

    /// A service without a library yet: every episode is answered 503 until [`Self::publish`].
    #[must_use]
    pub fn starting(tools: Tools, secrets: Vec<Secret>, options: Options) -> Self {
        let metrics = Arc::new(Metrics::default());
        let gate = Arc::new(Gate::new(&options, Arc::clone(&metrics)));
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            // Bodies are whole and bounded before they come here.
            .with_max_request_body_bytes(usize::MAX);
        let rmcp = StreamableHttpService::new(
            move || Ok(Handler::new(Arc::clone(&gate))),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let started = (options.clock)();
        let listing = tools.listing();
        let (board, bell) = (Board::default(), Arc::default());
        let shared = Shared { board, bell, metrics, listing, secrets, options, started, rmcp };
        Self { shared: Arc::new(shared) }
    }

    /// Answers from `library` from now on. Requests that are being served end with the one they began with.
    pub fn publish(&self, library: Library) {
        self.shared.board.publish(library);
    }

    /// Asks for an index run, for whoever need not show a token; see [`Indexer`].
    pub fn reindex(&self) -> Reindex {
        self.shared.reindex()
    }

    /// What `/health` says to whoever holds an admin token; nothing for everybody else.
    #[must_use]
    pub fn details(&self, headers: &HeaderMap) -> Option<serde_json::Map<String, serde_json::Value>> {
        admin::details(&self.shared, headers)
    }

    /// The routes for everyone who holds a token: `/mcp/TOKEN`, `/admin/reindex`, `/metrics` and `/health`.
    pub fn router(&self) -> Router {
        http::router(Arc::clone(&self.shared), None)
    }

    /// The routes for one session's own socket: a valid token whose claims are not exactly `scope` is refused too. The
    /// session keeps the library that is served now, whatever is published later.
    pub fn router_for(&self, scope: Scope) -> Router {
        let library = self.shared.board.library();
        http::router(Arc::clone(&self.shared), Some(Only { scope, library }))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// A request that may be served: verified claims, and the library they were checked against.
#[derive(Clone)]
struct Episode {
    claims: Claims,
    library: Arc<Library>,
}

impl Shared {
    /// Decides whether a token may be served at all, and on this socket.
    fn admit(&self, token: &str, only: Option<&Only>) -> Result<Episode, Refusal> {
        let kept = only.and_then(|only| only.library.clone());
        let Some(library) = kept.or_else(|| self.board.library()) else {
            return Err(Refusal::NotReady(self.board.standing().state));
        };
        if token.is_empty() {
            return Err(Refusal::MissingToken);
        }
        let claims = tokens::verify(token, &self.secrets, (self.options.clock)(), self.options.leeway_s)
            .map_err(Refusal::Token)?;
        if only.is_some_and(|only| !only.scope.admits(&claims)) {
            return Err(Refusal::OtherSession);
        }
        library.view(&claims.case_id, claims.timestep).map_err(Refusal::Scope)?;
        Ok(Episode { claims, library })
    }

    fn reindex(&self) -> Reindex {
        let asked = self.board.ask();
        if asked == Reindex::Started {
            self.bell.notify_one();
        }
        asked
    }

    fn is_admin(&self, token: &str) -> bool {
        tokens::verify_admin(token, &self.secrets, (self.options.clock)(), self.options.leeway_s).is_ok()
    }
}
