//! The parent of the command under the `none` backend, where no pid namespace ends what the command leaves behind.
//!
//! It adopts every orphan below it, and ends all of them when the command has ended or when the launcher closes its end
//! of the pipe on standard output, which the kernel does for a launcher that dies.

use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};

use crate::processes;
use crate::wire;

/// Exit code of a supervisor that could not start the init.
const FAILED: i32 = 125;

/// How often orphans that ended are taken from the process table while the command runs.
const ROUND: Duration = Duration::from_secs(1);

/// How long killed processes may take to end; a process in uninterruptible sleep is left to the machine.
const KILLING: Duration = Duration::from_secs(5);

pub(crate) fn run() -> i32 {
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return FAILED;
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0(wire::INIT).args(std::env::args_os().skip(1)).env_clear();
    // The socket to the launcher is standard input and goes on to the init; the pipe must not.
    command.stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let Ok(mut child) = command.spawn() else { return FAILED };
    let status = watch(child.id().cast_signed()).then(|| child.wait());
    end_all();
    match status {
        Some(Ok(status)) => end_like(status),
        _ => FAILED,
    }
}

/// Waits for the command, and returns true, or for the launcher to let go.
fn watch(child: i32) -> bool {
    let Some(pid) = Pid::from_raw(child) else { return false };
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let launcher = rustix::stdio::stdout();
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(launcher, PollFlags::IN),
        ];
        match poll(&mut watched, Some(&processes::timespec(ROUND))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
        if !watched[0].revents().is_empty() {
            return true;
        }
        if !watched[1].revents().is_empty() {
            return false;
        }
        bury_all_but(Some(pid));
    }
}

/// Kills what is below this process, again and again, because a process may fork between being seen and being killed.
fn end_all() {
    let own = std::process::id().cast_signed();
    let deadline = Instant::now() + KILLING;
    loop {
        let below = processes::descendants(own);
        for entry in below.iter().filter(|entry| !entry.is_zombie()) {
            if let Some(handle) = processes::open(entry.key) {
                processes::kill(&handle);
                processes::ended_by(handle.as_fd(), deadline);
            }
        }
        bury_all_but(None);
        if below.is_empty() || Instant::now() > deadline {
            return;
        }
    }
}

/// Takes the status of children that ended, except that of the command, which is still to be asked for.
fn bury_all_but(command: Option<Pid>) {
    let own = std::process::id().cast_signed();
    for entry in processes::table() {
        let Some(pid) = Pid::from_raw(entry.key.pid) else { continue };
        if entry.parent == own && entry.is_zombie() && Some(pid) != command {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// Ends this process in the way in which the command ended.
fn end_like(status: ExitStatus) -> i32 {
    let Some(number) = status.signal() else { return status.code().unwrap_or(FAILED) };
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    // Still here: a signal that this program ignores or handles.
    128 + number
}
