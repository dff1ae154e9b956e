//! Serving connections one by one, so that a fault can end one of them at will.

use std::io;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Ends the connection that a request came on, with a reset.
#[derive(Debug, Clone)]
pub(super) struct Connection(pub(super) CancellationToken);

pub(super) async fn serve(router: Router, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            Some(_) = connections.join_next() => continue,
            () = stop.cancelled() => return Ok(()),
        };
        let reset = CancellationToken::new();
        let service = router.clone().layer(Extension(Connection(reset.clone())));
        connections.spawn(async move {
            // Small events must not wait for more to come.
            if stream.set_nodelay(true).is_err() {
                return;
            }
            let mut connection =
                http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            tokio::select! {
                _ = &mut connection => {}
                () = reset.cancelled() => {
                    let stream = connection.into_parts().io.into_inner();
                    // Without linger the close is a reset; failing that it is a plain close.
                    let _closing = stream.set_zero_linger();
                }
            }
        });
    }
}
