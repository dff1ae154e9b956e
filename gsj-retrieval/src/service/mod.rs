//! The service: the library behind HTTP, one token and one scope per request.
//!
//! A request passes in this order (retrieval.md section 2): readiness, token, scope, MCP. The claims and the library that
//! it was checked against travel with it, so that a library published meanwhile changes nothing for it.

mod admin;
mod board;
mod handler;
mod http;
mod indexer;
mod mcp;
mod near;
mod refusal;

use crate::{Library, Tools};
use axum::Router;
use axum::http::HeaderMap;
use board::Board;
use gsj_cutoff::tokens::{self, Claims, Secret};
use handler::{Handler, SearchGate};
use http::Only;
use refusal::Refusal;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

pub use board::Reindex;
pub use indexer::{IndexFault, IndexSource, Indexer};

/// The caller's clock: seconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

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
    /// How many searches run at once; more wait (one for each processor).
    pub concurrent_searches: NonZeroUsize,
    /// How long a search waits for its turn before the tool answers that the service is busy (30 s).
    pub queue_timeout: Duration,
    /// How long a request's body may take to arrive (30 s).
    pub body_timeout: Duration,
}

impl Options {
    /// The defaults, with the caller's clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            leeway_s: tokens::LEEWAY_S,
            max_k: 20,
            concurrent_searches: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            queue_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
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
        let gate = SearchGate::new(&options);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true);
        let rmcp = StreamableHttpService::new(
            move || Ok(Handler::new(gate.clone())),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let started = (options.clock)();
        let listing = tools.listing();
        let (board, bell) = (Board::default(), Arc::default());
        let shared = Shared { board, bell, listing, secrets, options, started, rmcp };
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

    /// The routes for everyone who holds a token: `/mcp/TOKEN`, `/admin/reindex` and `/health`.
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
