//! A sandbox in which the command has begun.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use crate::info::{Exit, Measured, SandboxInfo};
use crate::launcher::Shared;
use crate::process::Process;

/// A running sandbox. Dropping it kills everything inside and blocks until the kernel has ended it, which takes a few
/// milliseconds; [`Running::terminate`] does the same without blocking.
#[derive(Debug)]
pub struct Running {
    /// The listening sockets, in the order of [`crate::Spec::ports`], set to non-blocking as tokio wants them. Whoever
    /// connects to these ports inside arrives here and nowhere else: the socket is the session's identity.
    pub listeners: Vec<TcpListener>,
    /// What trace metadata says about it.
    pub info: SandboxInfo,
    /// What the init measured.
    pub measured: Measured,
    process: Process,
    /// Keeps the thread alive that started it: with that thread bubblewrap would end. Dropped after the process.
    _launcher: Arc<Shared>,
}

impl Running {
    pub(crate) fn new(
        process: Process,
        listeners: Vec<TcpListener>,
        info: SandboxInfo,
        measured: Measured,
        launcher: Arc<Shared>,
    ) -> Self {
        Self { listeners, info, measured, process, _launcher: launcher }
    }

    /// Returns the process id of the outermost process, on the host.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the command has ended, ends whatever it left running, and returns how it ended.
    ///
    /// May be dropped and called again, and returns the same once more when called later.
    pub async fn wait(&mut self) -> Exit {
        self.process.wait().await
    }

    /// Sends SIGTERM to the command, waits for it at most `grace`, then kills everything inside; returns how it ended.
    pub async fn terminate(&mut self, grace: Duration) -> Exit {
        self.process.terminate(grace).await
    }
}
