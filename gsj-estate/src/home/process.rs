//! The one server of an estate: which process it is, and how it is ended without ever hitting a stranger.

use super::{Home, HomeError, SERVER, SERVER_LOCK};
use crate::files;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest record of a server that is read, in bytes.
const LONGEST: u64 = 64 << 10;
/// How long a server that has just taken its lock may take to say which process it is.
const SAYS: Duration = Duration::from_secs(5);

/// Which process serves an estate, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serving {
    /// The process id.
    pub pid: i32,
    /// When it began, in clock ticks after the boot: with `boot` never that of another process of this number.
    pub started: u64,
    /// The boot that it belongs to.
    pub boot: String,
    /// Seconds since 1970 at which it began, for people.
    pub since: i64,
    /// The address and port of its configuration.
    pub listen: String,
    /// A digest of the configuration.
    pub config: String,
    /// A digest of what the pins approve.
    pub pins: String,
    /// The version of the program.
    pub version: String,
}

/// Held by a server for as long as it lives; the kernel lets go of it when it dies.
#[derive(Debug)]
pub struct Guard {
    _lock: File,
}

impl Guard {
    /// Makes this process the server of an estate, and writes down that it is. `told` gets number, start and boot.
    ///
    /// # Errors
    /// [`HomeError::Served`] when another one runs.
    pub fn take(home: &Home, told: impl FnOnce(i32, u64, String) -> Serving) -> Result<Self, HomeError> {
        let Some(lock) = lock(home)? else { return Err(HomeError::Served { path: home.root().to_owned() }) };
        let pid = std::process::id().cast_signed();
        let started = started(pid).unwrap_or_default();
        let path = home.root().join(SERVER);
        let text = serde_json::to_vec_pretty(&told(pid, started, boot())).map_err(|error| HomeError::Io {
            doing: "write",
            path: path.clone(),
            source: io::Error::other(error),
        })?;
        files::write_atomically(&path, &text).map_err(|error| match error {
            crate::EstateError::File { source, .. } => HomeError::Io { doing: "write", path: path.clone(), source },
            other => HomeError::Record { path: path.clone(), reason: other.to_string() },
        })?;
        Ok(Self { _lock: lock })
    }
}

impl Serving {
    /// The server that runs, if one does.
    ///
    /// # Errors
    /// A file cannot be read, or a server runs that does not say which process it is.
    pub fn find(home: &Home) -> Result<Option<Self>, HomeError> {
        let until = Instant::now() + SAYS;
        loop {
            if !home.root().join(SERVER_LOCK).exists() || lock(home)?.is_some() {
                return Ok(None);
            }
            let path = home.root().join(SERVER);
            let told = files::bounded(&path, LONGEST).ok().flatten();
            let told = told.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
            // The record may still be that of the server before.
            if let Some(told) = told.filter(Self::is_alive) {
                return Ok(Some(told));
            }
            if Instant::now() > until {
                let reason = "does not say which process the running server is; end that one by hand".to_owned();
                return Err(HomeError::Record { path, reason });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the last server wrote down, whether it runs or not.
    #[must_use]
    pub fn last(home: &Home) -> Option<Self> {
        let bytes = files::bounded(&home.root().join(SERVER), LONGEST).ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether that very process is there and has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && started(self.pid) == Some(self.started)
    }

    fn open(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Whose handle it is, is certain only now.
        self.is_alive().then_some(handle)
    }

    /// Asks the process to end; gives whether it was there.
    #[must_use]
    pub fn terminate(&self) -> bool {
        self.open().is_some_and(|handle| pidfd_send_signal(&handle, Signal::TERM).is_ok())
    }

    /// Ends the process at once.
    #[must_use]
    pub fn kill(&self) -> bool {
        self.open().is_some_and(|handle| pidfd_send_signal(&handle, Signal::KILL).is_ok())
    }

    /// Waits until the process has ended, for at most this long; gives whether it has.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        let Some(handle) = self.open() else { return true };
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return !self.is_alive(),
            }
        }
    }
}

/// The server's lock, unless a server has it.
fn lock(home: &Home) -> Result<Option<File>, HomeError> {
    let path: PathBuf = home.root().join(SERVER_LOCK);
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = File::options().create(true).append(true).mode(0o600).custom_flags(flags).open(&path);
    let file = file.map_err(HomeError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(HomeError::io("lock", &path)(source)),
    }
}

/// When a process began, by `/proc/PID/stat`; `None` when it is gone or has ended.
fn started(pid: i32) -> Option<u64> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let line = String::from_utf8_lossy(&line);
    // The name stands in parentheses and may hold spaces and parentheses itself.
    let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(pid: i32, started: u64, boot: String) -> Serving {
        let text = String::new;
        Serving { pid, started, boot, since: 0, listen: text(), config: text(), pins: text(), version: text() }
    }

    #[test]
    fn a_server_is_found_while_it_holds_its_lock_and_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        assert_eq!(Serving::find(&home).unwrap(), None);
        let guard = Guard::take(&home, serving).unwrap();
        let found = Serving::find(&home).unwrap().expect("this process");
        assert_eq!(found.pid, std::process::id().cast_signed());
        assert!(matches!(Guard::take(&home, serving), Err(HomeError::Served { .. })));
        drop(guard);
        assert_eq!(Serving::find(&home).unwrap(), None);
        assert!(Serving::last(&home).is_some());
    }

    #[test]
    fn a_number_that_is_another_process_now_is_not_touched() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id().cast_signed();
        let mut known = serving(pid, started(pid).unwrap(), boot());
        known.started += 1;
        assert!(!known.is_alive() && !known.terminate() && !known.kill());
        known.started -= 1;
        known.boot = "another".into();
        assert!(!known.kill(), "the same number and time of another boot");
        known.boot = boot();
        assert!(!known.wait(Duration::from_millis(1)) && known.kill());
        child.wait().unwrap();
        assert!(!known.is_alive() && known.wait(Duration::ZERO));
    }
}
