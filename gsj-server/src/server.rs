//! Starting and stopping a server.

use std::{fmt, fs::File, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use gsj_retrieval::Indexer;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    agent::Agents,
    api,
    clock::Clock,
    config::{Config, ProfileName, SandboxBackendName},
    error::ServerError,
    pipeline::{Pipeline, callback_client},
    preflight::{self, Purpose, Ready, seconds},
    serve::serve,
    shared::Shared,
    store::{Store, StoreThread},
};

/// Most API connections at once; a thousand sessions' clients share one server.
const API_CONNECTIONS: usize = 1024;
/// How long an API client may take to send a request's head, or keep an idle connection.
const API_HEAD: Duration = Duration::from_secs(90);
/// How many orders may wait for the dispatcher.
const ORDERS: usize = 64;

/// Looks up an environment variable; libraries do not read the environment themselves.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a server is given beside its configuration.
#[derive(Clone)]
pub struct Context {
    /// The program that becomes the init of each sandbox; `gsj` passes itself.
    pub init: PathBuf,
    /// The arguments with which that program calls [`gsj_sandbox::init_main`]; seen inside the sandbox.
    pub init_args: Vec<String>,
    /// The wall clock.
    pub clock: Clock,
    /// Where secrets are looked up by the names that the configuration gives.
    pub environment: Environment,
    /// The agents that are known, beside those of `harness.agents_dir`.
    pub agents: Agents,
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Context").field("init", &self.init).finish_non_exhaustive()
    }
}

/// A rollout server.
#[derive(Debug)]
pub struct Server;

/// A server that runs. Dropping it ends everything at once, as a crash would.
#[derive(Debug)]
pub struct Running {
    /// The address on which the API answers.
    pub api_addr: SocketAddr,
    shared: Arc<Shared>,
    pipeline: Pipeline,
    api_stop: CancellationToken,
    api: Option<JoinHandle<()>>,
    indexer: Option<Indexer>,
    store: Option<StoreThread>,
    _lock: File,
}

impl Server {
    /// Checks everything that a session will need, ends what an earlier life left unfinished, and starts.
    ///
    /// Makes this process the one that adopts its orphans, see [`gsj_sandbox::become_subreaper`].
    ///
    /// # Errors
    /// [`ServerError`] names the path or key and the cure; nothing runs then.
    pub async fn start(mut config: Config, context: Context) -> Result<Running, ServerError> {
        // Whoever was first decides; every client here works with any provider.
        let _first = rustls::crypto::ring::default_provider().install_default();
        let (checked, context) = tokio::task::spawn_blocking(move || {
            let ready = preflight::check(&mut config, &context, Purpose::Serve);
            (ready.map(|ready| (config, ready)), context)
        })
        .await
        .map_err(|panic| ServerError::Io {
            doing: "check",
            path: PathBuf::from("configuration"),
            source: std::io::Error::other(panic),
        })?;
        let (config, Ready { equipment, reading, agents, installed, split_wall, lock }) = checked?;
        let listen = config.server.listen.clone();
        let listen_failed = |source| ServerError::Listen { listen: listen.clone(), source };
        let listener = TcpListener::bind(&listen).await.map_err(listen_failed)?;
        let api_addr = listener.local_addr().map_err(listen_failed)?;
        let client = callback_client(seconds(config.server.callback.timeout_s)).map_err(ServerError::Client)?;

        let sandbox = |source| ServerError::Sandbox { cure: "see the reason below".to_owned(), source };
        gsj_sandbox::become_subreaper().map_err(sandbox)?;
        for left in gsj_sandbox::reap(&equipment.places.run).map_err(sandbox)? {
            tracing::info!(
                session = left.label.session,
                killed = left.killed,
                "ended a sandbox that a crash left behind"
            );
        }
        if config.sandbox.backend == SandboxBackendName::None {
            tracing::warn!(
                "sandbox.backend is `none`: agents see this machine's files and network; no pins approve such a trace"
            );
        }
        let (store, thread) = Store::open(&equipment.places.state.join("gsj.sqlite"))?;
        let (orders, queue) = mpsc::channel(ORDERS);
        let retrieval = equipment.retrieval.clone();
        let shared = Arc::new(Shared::new(config, context.clock, store, agents, installed, split_wall, orders));
        let pipeline = Pipeline::start(Arc::clone(&shared), Arc::new(equipment), client, queue).await?;
        let api_stop = CancellationToken::new();
        let indexer = Indexer::start(&retrieval, reading);
        let router = api::router(Arc::clone(&shared), &retrieval);
        let api = tokio::spawn(serve(listener, router, API_CONNECTIONS, API_HEAD, api_stop.clone()));
        tracing::info!(
            api = %api_addr,
            state = %shared.config.server.state_dir.as_deref().unwrap_or_else(|| "".as_ref()).display(),
            agent = shared.config.harness.agent,
            profile = match shared.config.checks.profile {
                ProfileName::Strict => "strict",
                ProfileName::Reference => "reference",
            },
            "gsj serves"
        );
        Ok(Running {
            api_addr,
            shared,
            pipeline,
            api_stop,
            api: Some(api),
            indexer: Some(indexer),
            store: Some(thread),
            _lock: lock,
        })
    }
}

impl Running {
    /// Starts no further session, waits for those that run, and stops. What waits stays stored for the next start.
    ///
    /// The API answers meanwhile; it takes no further task. Dropping the future ends everything at once.
    pub async fn drain(mut self) {
        self.shared.drain();
        self.close().await;
    }

    /// Ends what runs now, each with a result that says so, and stops.
    pub async fn stop(mut self) {
        self.shared.drain();
        self.shared.stopping.cancel();
        self.close().await;
    }

    /// Says whether [`Self::drain`] or [`Self::stop`] was called.
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining()
    }

    async fn close(&mut self) {
        self.pipeline.ended().await;
        // Event streams end with this as well.
        self.shared.stopping.cancel();
        self.api_stop.cancel();
        if let Some(api) = self.api.take() {
            let _ended = api.await;
        }
        if let Some(indexer) = self.indexer.take() {
            indexer.stop().await;
        }
        if let Some(thread) = self.store.take() {
            thread.close(&self.shared.store).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(api) = &self.api {
            api.abort();
        }
    }
}
