//! Serving a router on a listener until told to stop, with a deadline on each request's head.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

/// How long connections may go on after the stop before they are cut.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait when the system has no descriptor left for a connection.
const BREATHER: Duration = Duration::from_millis(50);

/// Serves until `stop`; then accepts nothing more, lets open requests end for a moment, and cuts the rest.
///
/// At most `most` connections are open at once; further ones wait in the listener's backlog. `head` is how
/// long a client may take to send a request's head, and so also how long a connection may lie idle.
pub async fn serve(listener: TcpListener, router: Router, most: usize, head: Duration, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
            Some(_ended) = connections.join_next() => continue,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(BREATHER).await;
                continue;
            }
        };
        // Small frames of a streamed answer must not wait for the next ones.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "set TCP_NODELAY");
        }
        let service = TowerToHyperService::new(router.clone());
        let stop = stop.clone();
        connections.spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head)
                .serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            tokio::select! {
                // How a connection ends is the client's affair.
                _ended = &mut connection => {}
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ended = tokio::time::timeout(GRACE, connection).await;
                }
            }
            drop(place);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _address) = listener.accept().await?;
    Ok((stream, place))
}
