//! The one async runtime of the command, sockets and signals.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, Kind};

/// Most connections at once; further ones wait for one to end.
const CONNECTIONS: usize = 4096;
/// How long a client may take to send a request's head, or keep an idle connection.
const HEAD: Duration = Duration::from_secs(90);

/// Runs a future on a runtime of its own and waits for what it left to end, for a moment.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Kind::Failed, format!("start the runtime: {error}")))?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    result
}

/// Binds an address and says which one it became.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    let fault = |error: std::io::Error| {
        CliError::usage(format!("listen on {address}: {error}")).hint("another port: --port N, or 0 for a free one")
    };
    let listener = TcpListener::bind(address).await.map_err(fault)?;
    let bound = listener.local_addr().map_err(fault)?;
    Ok((listener, bound))
}

/// Serves until SIGTERM or Ctrl-C; no client can hold the end up for longer than a moment.
pub(crate) async fn serve_until_signal(listener: TcpListener, router: axum::Router) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let serving = gsj_server::serve(listener, router, CONNECTIONS, HEAD, stop.clone());
    let stopping = async {
        signals.next().await;
        stop.cancel();
    };
    tokio::join!(serving, stopping);
    Ok(())
}

/// SIGTERM and SIGINT, as they come.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let fault = |error: std::io::Error| CliError::new(Kind::Failed, format!("listen for signals: {error}"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(fault)?,
            interrupt: signal(SignalKind::interrupt()).map_err(fault)?,
        })
    }

    /// Whether one of the two comes before this time is over.
    pub(crate) async fn within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_ok()
    }

    /// The next of the two.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
