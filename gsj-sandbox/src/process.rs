//! The processes of one sandbox, from outside: waiting for them, and ending every one of them.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::SandboxError;
use crate::info::Exit;
use crate::ledger::{self, Intent};
use crate::orphans;
use crate::processes::{self, ProcessKey};
use crate::spec::Backend;

/// How long the outer process may take to end once what it waits for was killed; then it is killed itself. Longer than
/// the supervisor of the `none` backend allows itself.
const FOLLOWING: Duration = Duration::from_secs(6);

/// How long killed processes may take to end.
const KILLING: Duration = Duration::from_secs(10);

/// The processes of one sandbox. Dropping it kills them and waits.
#[derive(Debug)]
pub(crate) struct Process {
    backend: Backend,
    /// bubblewrap, or the supervisor.
    child: Child,
    handle: OwnedFd,
    key: ProcessKey,
    /// Process 1 of the sandbox: when it ends, the kernel has ended all others before.
    first: Option<OwnedFd>,
    command: Option<OwnedFd>,
    /// The kernel session of the command under the `none` backend.
    session: Option<i32>,
    /// The pipe whose closing tells the supervisor to end everything.
    hold: Option<OwnedFd>,
    /// What was found below bubblewrap when it had to be killed before the init had reported.
    stragglers: Vec<OwnedFd>,
    intent: Intent,
    exit: Option<Exit>,
    settled: bool,
}

impl Process {
    pub(crate) fn new(
        backend: Backend,
        mut child: Child,
        intent: Intent,
        hold: Option<OwnedFd>,
    ) -> Result<Self, SandboxError> {
        let number = child.id().cast_signed();
        // Not waited for yet, so that the number is still its own.
        let handle =
            Pid::from_raw(number).ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match (handle, processes::key(number)) {
            (Ok(handle), Some(key)) => {
                let mut process = Self {
                    backend,
                    child,
                    handle,
                    key,
                    first: None,
                    command: None,
                    session: None,
                    hold,
                    stragglers: Vec::new(),
                    intent,
                    exit: None,
                    settled: false,
                };
                process.intent.started(key)?;
                Ok(process)
            }
            (handle, _) => {
                let _ = child.kill();
                let _ = child.wait();
                orphans::forget(child.id());
                intent.close();
                let source = handle.err().map_or_else(|| io::ErrorKind::NotFound.into(), io::Error::from);
                Err(SandboxError::Io { doing: "open a handle on the sandbox".to_owned(), source })
            }
        }
    }

    /// Takes what the init handed out.
    pub(crate) fn inside(&mut self, first: Option<OwnedFd>, command: OwnedFd, pid: u32) -> Result<(), SandboxError> {
        self.first = first;
        self.command = Some(command);
        if self.backend == Backend::None {
            self.session = Some(pid.cast_signed());
            self.intent.has_session(pid.cast_signed())?;
        }
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command has ended, ends what it left, and returns how it ended.
    pub(crate) async fn wait(&mut self) -> Exit {
        if !self.settled {
            if let Err(error) = readable(self.handle.as_fd()).await {
                tracing::error!(%error, "a sandbox cannot be waited for and is killed");
                self.kill();
            }
            self.follow().await;
        }
        self.exit()
    }

    /// Asks the command to end, gives it time, then ends everything.
    pub(crate) async fn terminate(&mut self, grace: Duration) -> Exit {
        if !self.settled {
            if let Some(command) = &self.command {
                // A command that has ended by itself needs no signal.
                let _ = pidfd_send_signal(command, Signal::TERM);
                let _ = tokio::time::timeout(grace, readable(self.handle.as_fd())).await;
            }
            self.kill();
            self.follow().await;
        }
        self.exit()
    }

    fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit { code: None, signal: None })
    }

    /// Waits without blocking the runtime for what is ending, then settles.
    async fn follow(&mut self) {
        if tokio::time::timeout(FOLLOWING, readable(self.handle.as_fd())).await.is_err() {
            self.kill_hard();
        }
        let _ = tokio::time::timeout(KILLING, async {
            let _ = readable(self.handle.as_fd()).await;
            for inner in self.first.iter().chain(&self.stragglers) {
                processes::kill(inner);
                let _ = readable(inner.as_fd()).await;
            }
        })
        .await;
        self.settle();
    }

    /// Kills at the root of the tree, so that the outer process can still take the status of the inner one.
    fn kill(&mut self) {
        match (self.backend, &self.first) {
            (Backend::Bwrap, Some(first)) => processes::kill(first),
            (Backend::Bwrap, None) => self.kill_hard(),
            (Backend::None, _) => self.hold = None,
        }
    }

    /// Kills everything that can be found.
    fn kill_hard(&mut self) {
        self.hold = None;
        let below = processes::descendants(self.key.pid).into_iter().map(|entry| entry.key);
        let family = self.session.map(|session| ledger::session_members(session, self.key)).unwrap_or_default();
        let found: Vec<OwnedFd> = below.chain(family).filter_map(processes::open).collect();
        self.stragglers.extend(found);
        processes::kill(&self.handle);
        self.stragglers.iter().chain(&self.first).for_each(processes::kill);
    }

    /// Takes every status, removes the intent. Waits only for what did not end in time before.
    fn settle(&mut self) {
        let deadline = Instant::now() + KILLING;
        let mut ended = processes::ended_by(self.handle.as_fd(), deadline);
        if ended {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.exit = Some(Exit { code: status.code(), signal: status.signal() });
            }
            orphans::forget(self.child.id());
        }
        if let Some(session) = self.session {
            // The supervisor leaves none, unless it was killed itself.
            let left = ledger::session_members(session, self.key);
            self.stragglers.extend(left.into_iter().filter_map(processes::open));
        }
        for inner in self.first.iter().chain(&self.stragglers) {
            processes::kill(inner);
            ended &= processes::ended_by(inner.as_fd(), deadline);
            processes::bury(inner);
        }
        if self.first.is_none() && self.backend == Backend::Bwrap {
            orphans::sweep();
        }
        if ended {
            self.intent.close();
        } else {
            tracing::error!(process = self.key.pid, "a sandbox did not end within its time; its intent is kept");
        }
        self.settled = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.kill();
        if !processes::ended_by(self.handle.as_fd(), Instant::now() + FOLLOWING) {
            self.kill_hard();
        }
        self.settle();
    }
}

/// Waits until the process behind a handle has ended.
async fn readable(handle: BorrowedFd<'_>) -> io::Result<()> {
    #[expect(unsafe_code, reason = "tokio's safe constructor is deprecated: it cannot demand what is true here")]
    // SAFETY: the handle is borrowed for as long as the registration lives, so it stays open and the same.
    let watched = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }?;
    watched.readable().await?.retain_ready();
    Ok(())
}
