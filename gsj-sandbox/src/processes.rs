//! Reading the process table, and ending processes without ever hitting a stranger that took over a number.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};

/// A process by number and start time: together they are never used twice between two boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessKey {
    pub(crate) pid: i32,
    /// Clock ticks after boot.
    pub(crate) started: u64,
}

/// One line of the process table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: ProcessKey,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
}

impl Entry {
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Returns what `/proc/<pid>/stat` says; nothing when there is no such process.
pub(crate) fn entry(pid: i32) -> Option<Entry> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&line))
}

/// The name stands in parentheses and may itself hold spaces and parentheses.
fn parse(pid: i32, line: &str) -> Option<Entry> {
    let open = line.find('(')?;
    let close = line.rfind(')')?;
    let name = line.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = line.get(close + 1..)?.split_ascii_whitespace().collect();
    Some(Entry {
        key: ProcessKey { pid, started: fields.get(19)?.parse().ok()? },
        name,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
    })
}

/// Returns the key of a process that exists.
pub(crate) fn key(pid: i32) -> Option<ProcessKey> {
    entry(pid).map(|entry| entry.key)
}

/// Returns whether that very process exists and has not ended.
pub(crate) fn is_alive(key: ProcessKey) -> bool {
    entry(key.pid).is_some_and(|entry| entry.key == key && !entry.is_zombie())
}

/// Returns every process that this one can see.
pub(crate) fn table() -> Vec<Entry> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    folder.flatten().filter_map(|item| item.file_name().to_str()?.parse().ok()).filter_map(entry).collect()
}

/// Returns the processes below `root`, without it.
pub(crate) fn descendants(root: i32) -> Vec<Entry> {
    let mut rest = table();
    let mut family = BTreeSet::from([root]);
    let mut found = Vec::new();
    loop {
        let (below, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|entry| family.contains(&entry.parent));
        if below.is_empty() {
            return found;
        }
        family.extend(below.iter().map(|entry| entry.key.pid));
        found.extend(below);
        rest = others;
    }
}

/// Opens a process for signals and waiting, if it is still the one meant.
pub(crate) fn open(wanted: ProcessKey) -> Option<OwnedFd> {
    let handle = pidfd_open(Pid::from_raw(wanted.pid)?, PidfdFlags::empty()).ok()?;
    // The number was read before the handle was made: only now is it certain whose handle it is.
    (key(wanted.pid) == Some(wanted)).then_some(handle)
}

/// Sends SIGKILL; a process that is gone already is what was wanted.
pub(crate) fn kill(handle: &OwnedFd) {
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(%error, "a process of a sandbox could not be killed"),
    }
}

/// Waits until the process has ended, at most until `deadline`; returns whether it has.
pub(crate) fn ended_by(handle: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::from_borrowed_fd(handle, PollFlags::IN)];
        match poll(&mut watched, Some(&timespec(left))) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Takes the exit status of an orphan that this process has adopted, so that it does not stay in the process table.
pub(crate) fn bury(handle: &OwnedFd) {
    // ECHILD, when somebody else is its parent, is the usual answer where this process is no subreaper.
    let _ = waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c)) S 7 42 40 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0";
        let entry = parse(42, line).expect("a line of the kernel's form is read");
        assert_eq!((entry.name.as_str(), entry.state, entry.parent), ("a) b (c)", 'S', 7));
        assert_eq!((entry.session, entry.key.started), (40, 98765));
    }

    #[test]
    fn a_reused_number_is_not_opened() {
        let own = key(std::process::id().cast_signed()).expect("this process exists");
        assert!(open(own).is_some(), "the process itself can be opened");
        assert!(
            open(ProcessKey { started: own.started + 1, ..own }).is_none(),
            "another start time is another process"
        );
    }
}
