//! What is known about a sandbox: measured inside, or read from the backend.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::Backend;

/// The sandbox as trace metadata states it (`gsj_sandbox` of the API): each value measured, none assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// `bwrap` or `none`.
    pub backend: Backend,
    /// The backend program's version; for `none` the version of this crate.
    pub backend_version: String,
    /// `none` when the init saw no interface but the loopback, `host` otherwise.
    pub network: String,
    /// The user that the command runs as.
    pub uid: u32,
    /// Limits in force inside: rlimits by their name (`nproc`, `nofile`, `fsize`, `data`, `core`, `cpu`), and the size of
    /// each tmpfs as `tmpfs:<target>`; bytes, seconds or counts.
    pub limits: BTreeMap<String, u64>,
    /// Whether a system call filter was in force when the command was started.
    pub seccomp: bool,
}

/// What the init read about itself, as the last thing before it became the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// The process id, in the sandbox's own numbering.
    pub pid: u32,
    /// Effective capabilities, as `/proc/self/status` shows them.
    pub capabilities: u64,
    /// Whether `no_new_privs` is set.
    pub no_new_privs: bool,
    /// The seccomp mode: 0 off, 1 strict, 2 filter.
    pub seccomp: u32,
    /// Names of the network interfaces that exist.
    pub interfaces: Vec<String>,
    /// Soft rlimits by name; what is unlimited is absent.
    pub limits: BTreeMap<String, u64>,
}

/// A backend that works on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackendInfo {
    /// Which one.
    pub backend: Backend,
    /// Its version.
    pub version: String,
    /// The program; absent for `none`.
    pub program: Option<PathBuf>,
}

/// How the command ended.
///
/// bubblewrap reports a command that a signal ended as exit code 128 + n, as a shell does; `signal` is set where the
/// process that was waited for was itself ended by one. Both are absent when the end could not be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The exit code.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// Returns whether the command ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (_, Some(signal)) => write!(f, "killed by signal {signal}"),
            (Some(code), None) if (129..=192).contains(&code) => {
                write!(f, "exit code {code} (128 + signal {})", code - 128)
            }
            (Some(code), None) => write!(f, "exit code {code}"),
            (None, None) => f.write_str("ended unobserved"),
        }
    }
}
