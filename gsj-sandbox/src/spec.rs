//! What is to be run, and within which walls.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;

/// The user that a sandbox runs as when the launcher is root and the spec names none.
///
/// Outside of what distributions hand out (up to 60,000 for people, 61,184 and up for systemd's dynamic users).
pub const DEFAULT_UID: u32 = 64_200;

/// Most listening ports that one sandbox may have.
pub(crate) const MAX_PORTS: usize = 8;

/// What holds the walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// bubblewrap: own namespaces of every kind.
    Bwrap,
    /// No walls: for trusted development only. The command sees the host's files and network.
    None,
}

impl Backend {
    /// Returns the name as configuration and trace metadata spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose sandbox it is; written to the run folder before anything starts, so that a crash leaves a name behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The server run.
    pub run: String,
    /// The session.
    pub session: String,
}

/// A file or folder of the host that is seen inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path on the host; must be reachable for the sandbox's user.
    pub source: PathBuf,
    /// Absolute path inside.
    pub target: PathBuf,
    /// Whether the command may write to it. Read-only otherwise.
    pub writable: bool,
}

/// A folder in memory, empty at the start and gone at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tmpfs {
    /// Absolute path inside.
    pub target: PathBuf,
    /// Most bytes that it may hold.
    pub size: u64,
    /// Permission bits of the folder itself.
    pub mode: u32,
}

/// A read-only file that exists inside only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    /// Absolute path inside, not within a [`Mount`].
    pub target: PathBuf,
    /// Its bytes. `{port:N}` and `{path:TARGET}` are filled in as in [`Spec::command`].
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

/// Limits of one process inside, and of all of them together where said so. Cores are never written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most processes and threads in the whole sandbox. Not applied by the `none` backend, where the kernel would count
    /// every process that the user has on the machine.
    pub processes: Option<u64>,
    /// Most open descriptors in one process.
    pub open_files: Option<u64>,
    /// Largest file that can be written, bytes. Holds for standard output too, when that is a file.
    pub file_size: Option<u64>,
    /// Largest data segment of one process, bytes.
    pub data: Option<u64>,
    /// Most processor time of one process, seconds.
    pub cpu_seconds: Option<u64>,
    /// Size of `/dev/shm`, bytes.
    pub shared_memory: u64,
}

impl Default for Limits {
    /// 256 processes, 1,024 descriptors, files of 256 MiB, 2 GiB of data in a process, no limit of processor time,
    /// 64 MiB of shared memory.
    fn default() -> Self {
        Self {
            processes: Some(256),
            open_files: Some(1024),
            file_size: Some(256 << 20),
            data: Some(2 << 30),
            cpu_seconds: None,
            shared_memory: 64 << 20,
        }
    }
}

impl Limits {
    /// Returns the rlimits by the name that [`crate::SandboxInfo::limits`] uses.
    pub(crate) fn rlimits(&self, backend: Backend) -> Vec<(String, u64)> {
        let processes = match backend {
            Backend::Bwrap => self.processes,
            Backend::None => None,
        };
        [
            ("nproc", processes),
            ("nofile", self.open_files),
            ("fsize", self.file_size),
            ("data", self.data),
            ("core", Some(0)),
            ("cpu", self.cpu_seconds),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }
}

/// The program that becomes the sandbox's init by calling [`crate::init_main`].
///
/// It is opened by the launcher and executed through the open descriptor: it may lie below a folder that the sandbox's
/// user cannot enter, and no path of it is seen inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitProgram {
    /// The file.
    pub path: PathBuf,
    /// Its arguments; seen inside in the process list, so nothing secret.
    pub args: Vec<String>,
}

/// One command and its walls.
///
/// In `command`, `env` values, `cwd` and the content of `files`, `{port:0}`, `{port:1}`, .. stand for the ports and
/// `{path:TARGET}` for a path inside. With bubblewrap these are the ports and paths asked for; with the `none` backend
/// they are ports that were free and the host's paths.
pub struct Spec {
    /// What holds the walls.
    pub backend: Backend,
    /// Whose it is.
    pub label: Label,
    /// Program and arguments; a program without a slash is looked up in the `PATH` of `env`.
    pub command: Vec<String>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// Working directory, inside.
    pub cwd: PathBuf,
    /// Host name inside.
    pub hostname: String,
    /// What of the host is seen, `/usr` aside.
    pub mounts: Vec<Mount>,
    /// Files that exist inside only. `/etc/passwd`, `group`, `hosts` and `nsswitch.conf` are made in any case.
    pub files: Vec<SmallFile>,
    /// Folders in memory.
    pub tmpfs: Vec<Tmpfs>,
    /// Ports on 127.0.0.1 inside whose listening sockets are handed out.
    pub ports: Vec<u16>,
    /// Limits.
    pub limits: Limits,
    /// The user to run as; only root may name another than its own. Absent: [`DEFAULT_UID`] for root, else one's own.
    pub uid: Option<u32>,
    /// What the command reads on standard input.
    pub stdin: Vec<u8>,
    /// Where its standard output goes: a file, or the writing end of a pipe.
    pub stdout: File,
    /// Where its standard error goes.
    pub stderr: File,
    /// The init.
    pub init: InitProgram,
}

impl Spec {
    /// Returns a spec with bubblewrap, a minimal environment, `/tmp` and `/home/agent` in memory (256 MiB each), no
    /// mounts, no ports, an empty standard input and the default limits.
    pub fn new(label: Label, command: Vec<String>, init: InitProgram, stdout: File, stderr: File) -> Self {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "{path:/home/agent}"), ("LANG", "C.UTF-8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            backend: Backend::Bwrap,
            label,
            command,
            env: BTreeMap::from(env),
            cwd: PathBuf::from("/home/agent"),
            hostname: "sandbox".to_owned(),
            mounts: Vec::new(),
            files: Vec::new(),
            tmpfs: vec![
                Tmpfs { target: PathBuf::from("/tmp"), size: 256 << 20, mode: 0o1777 },
                Tmpfs { target: PathBuf::from("/home/agent"), size: 256 << 20, mode: 0o700 },
            ],
            ports: Vec::new(),
            limits: Limits::default(),
            uid: None,
            stdin: Vec::new(),
            stdout,
            stderr,
            init,
        }
    }

    /// Checks what can be checked without touching the machine.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        let invalid = |what: String| Err(SandboxError::Invalid { what });
        for (field, value) in [("label.run", &self.label.run), ("label.session", &self.label.session)] {
            if !is_name(value) {
                return invalid(format!("{field}: `{value}` is not of the form [A-Za-z0-9][A-Za-z0-9_.-]{{0,127}}"));
            }
        }
        if self.command.first().is_none_or(String::is_empty) {
            return invalid("command: names no program".to_owned());
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return invalid("command: an argument holds a NUL byte".to_owned());
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return invalid(format!("env: `{}` cannot be set", name.escape_debug()));
            }
        }
        if self.hostname.is_empty() || self.hostname.len() > 64 || !is_name(&self.hostname) {
            return invalid("hostname: not a host name of up to 64 characters".to_owned());
        }
        if self.ports.len() > MAX_PORTS {
            return invalid(format!("ports: {} are asked for, {MAX_PORTS} are possible", self.ports.len()));
        }
        if self.ports.iter().any(|port| *port < 1024) {
            return invalid("ports: below 1024 cannot be bound without privileges".to_owned());
        }
        if (1..self.ports.len()).any(|at| self.ports[..at].contains(&self.ports[at])) {
            return invalid("ports: one is named twice".to_owned());
        }
        if self.uid == Some(0) {
            return invalid("uid: a sandbox never runs as root".to_owned());
        }
        check_path("cwd", &self.cwd)?;
        for mount in &self.mounts {
            check_path("mounts: source", &mount.source)?;
            check_target("mounts: target", &mount.target)?;
        }
        for tmpfs in &self.tmpfs {
            check_target("tmpfs: target", &tmpfs.target)?;
            if tmpfs.size == 0 || tmpfs.mode > 0o7777 {
                return invalid(format!("tmpfs: size or mode of `{}` is out of range", tmpfs.target.display()));
            }
        }
        for file in &self.files {
            check_target("files: target", &file.target)?;
            if file.mode > 0o7777 {
                return invalid(format!("files: mode of `{}` is out of range", file.target.display()));
            }
            if self.mounts.iter().any(|mount| file.target.starts_with(&mount.target)) {
                return invalid(format!("files: `{}` lies within a mount", file.target.display()));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Spec {
    /// Leaves out what may be secret: values of the environment, standard input, file contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("backend", &self.backend)
            .field("label", &self.label)
            .field("program", &self.command.first())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("mounts", &self.mounts)
            .field("ports", &self.ports)
            .field("limits", &self.limits)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= 128
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// A path must be absolute, plain and UTF-8: it is written into argument lists and JSON.
fn check_path(field: &str, path: &Path) -> Result<(), SandboxError> {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let text = path.to_str().filter(|text| !text.contains('\0'));
    if !path.is_absolute() || !plain || text.is_none() {
        return Err(SandboxError::invalid(format!(
            "{field}: `{}` is not an absolute UTF-8 path without `..`",
            path.display()
        )));
    }
    Ok(())
}

fn check_target(field: &str, path: &Path) -> Result<(), SandboxError> {
    check_path(field, path)?;
    if path.components().count() < 2 || path.starts_with("/proc") || path == Path::new("/dev") {
        return Err(SandboxError::invalid(format!("{field}: `{}` cannot be replaced", path.display())));
    }
    Ok(())
}
