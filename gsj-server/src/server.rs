//! Starting and stopping a server.

use std::{fmt, io, net::SocketAddr, path::PathBuf, sync::Arc};

use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    agent::{AgentError, Agents},
    api,
    clock::Clock,
    config::Config,
    serve::serve,
    shared::Shared,
    store::{Store, StoreError, StoreThread},
};

/// Most API connections at once; a thousand sessions' clients share one server.
const API_CONNECTIONS: usize = 1024;
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
    /// The agents that are known.
    pub agents: Agents,
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Context").field("init", &self.init).finish_non_exhaustive()
    }
}

/// Why a server could not start. Nothing has been started when one of these is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration names no state folder.
    #[error("`server.state_dir` is not set: name a folder that the server may write to")]
    NoStateDir,
    /// A folder or file of the server cannot be made or read.
    #[error("{doing} `{path}`: make its folder writable for this user, or name another in the configuration")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The address of the API is taken or not this machine's.
    #[error("listen on {listen}: choose another `server.listen`, or stop what holds it")]
    Listen {
        /// The address.
        listen: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The state cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent of the configuration cannot run here.
    #[error("agent `{agent}` cannot run: run `gsj agent install {agent}`")]
    Agent {
        /// Its name.
        agent: String,
        /// What is wrong with it.
        #[source]
        source: AgentError,
    },
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
    api_stop: CancellationToken,
    api: Option<JoinHandle<()>>,
    store: Option<StoreThread>,
}

impl Server {
    /// Checks everything that a session will need, opens the state, and starts.
    ///
    /// # Errors
    /// [`ServerError`] names the path or key and the cure; nothing runs then.
    pub async fn start(config: Config, context: Context) -> Result<Running, ServerError> {
        let state_dir = config.server.state_dir.clone().ok_or(ServerError::NoStateDir)?;
        std::fs::create_dir_all(&state_dir).map_err(|source| ServerError::Io {
            doing: "make the state folder",
            path: state_dir.clone(),
            source,
        })?;
        let (store, thread) = Store::open(&state_dir.join("gsj.sqlite"))?;
        let listen = config.server.listen.clone();
        let listen_failed = |source| ServerError::Listen { listen: listen.clone(), source };
        let listener = TcpListener::bind(&listen).await.map_err(listen_failed)?;
        let api_addr = listener.local_addr().map_err(listen_failed)?;
        let (orders, _queue) = mpsc::channel(ORDERS);
        let shared = Arc::new(Shared::new(config, context.clock, store, context.agents, Default::default(), orders));
        let api_stop = CancellationToken::new();
        let api = tokio::spawn(serve(listener, api::router(Arc::clone(&shared)), API_CONNECTIONS, api_stop.clone()));
        Ok(Running { api_addr, shared, api_stop, api: Some(api), store: Some(thread) })
    }
}

impl Running {
    /// Starts no further session, waits for those that run, and stops. What waits stays stored for the next start.
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

    async fn close(&mut self) {
        self.shared.stopping.cancel();
        self.api_stop.cancel();
        if let Some(api) = self.api.take() {
            let _ended = api.await;
        }
        drop(self.store.take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(api) = &self.api {
            api.abort();
        }
    }
}
