//! Intents: one small file per sandbox, written before anything is started, so that a crash leaves names behind.
//!
//! Most crashes need no reaping: bubblewrap dies with the thread that started it, and the supervisor of the `none`
//! backend with the pipe that the launcher held. The files catch the rest and say which sessions were cut off.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::orphans;
use crate::processes::{self, ProcessKey};
use crate::spec::{Backend, Label};
use crate::tree::remove_tree;

/// How long [`reap`] waits for what it killed, all together.
const REAPING: Duration = Duration::from_secs(10);

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    label: Label,
    backend: Backend,
    /// Process numbers and start times mean nothing after another boot.
    boot: String,
    owner: ProcessKey,
    /// The outer process; absent until it was started.
    process: Option<ProcessKey>,
    /// The session (as the kernel counts them) of the command under the `none` backend.
    session: Option<i32>,
}

/// The file of one sandbox that is being started, or runs.
#[derive(Debug)]
pub(crate) struct Intent {
    file: PathBuf,
    record: Record,
}

impl Intent {
    /// Writes the intent.
    pub(crate) fn write(run_dir: &Path, label: &Label, backend: Backend) -> Result<Self, SandboxError> {
        let owner = own_key()?;
        let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let intent = Self {
            file: run_dir.join(format!("{}.{}.{number}.json", label.session, owner.pid)),
            record: Record { label: label.clone(), backend, boot: boot()?, owner, process: None, session: None },
        };
        intent.store()?;
        Ok(intent)
    }

    /// Adds what was started.
    pub(crate) fn started(&mut self, process: ProcessKey) -> Result<(), SandboxError> {
        self.record.process = Some(process);
        self.store()
    }

    /// Adds the session of the command.
    pub(crate) fn has_session(&mut self, session: i32) -> Result<(), SandboxError> {
        self.record.session = Some(session);
        self.store()
    }

    /// Where the host's stand-ins for folders in memory are kept, under the `none` backend.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.file.with_extension("scratch")
    }

    /// Removes the intent and its scratch folder: nothing of it runs any more.
    pub(crate) fn close(&self) {
        clear(&self.file);
    }

    fn store(&self) -> Result<(), SandboxError> {
        let doing = || format!("write `{}`", self.file.display());
        let bytes = serde_json::to_vec(&self.record).map_err(SandboxError::io(doing()))?;
        let fresh = self.file.with_extension("fresh");
        fs::write(&fresh, bytes).map_err(SandboxError::io(doing()))?;
        fs::rename(&fresh, &self.file).map_err(SandboxError::io(doing()))
    }
}

/// A sandbox that an earlier process left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reaped {
    /// Whose it was.
    pub label: Label,
    /// What held its walls.
    pub backend: Backend,
    /// How many processes were still running and were killed.
    pub killed: usize,
    /// Whether all of them have ended.
    pub ended: bool,
}

/// Ends what crashed launchers left in `run_dir`, and waits for it.
///
/// Sandboxes of launchers that still live, this process included, are left alone. Processes are told apart by number
/// and start time, never by number alone. Blocks for up to ten seconds when something has to be killed. Returns the
/// sandboxes that were cut off, in the order of their files' names.
pub fn reap(run_dir: &Path) -> Result<Vec<Reaped>, SandboxError> {
    let boot = boot()?;
    let deadline = Instant::now() + REAPING;
    let mut files: Vec<PathBuf> = match fs::read_dir(run_dir) {
        Ok(folder) => folder.flatten().map(|item| item.path()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(SandboxError::io(format!("read `{}`", run_dir.display()))(error)),
    };
    files.sort();
    let mut reaped = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let Ok(bytes) = fs::read(file) else { continue };
        let Ok(record) = serde_json::from_slice::<Record>(&bytes) else {
            tracing::warn!(file = %file.display(), "not an intent of a sandbox, left alone");
            continue;
        };
        if record.boot == boot && processes::is_alive(record.owner) {
            continue;
        }
        let (killed, ended) = if record.boot == boot { end(&record, deadline) } else { (0, true) };
        if ended {
            clear(file);
        }
        reaped.push(Reaped { label: record.label, backend: record.backend, killed, ended });
    }
    // Written but never renamed: the file of that name without it speaks for the sandbox, or nothing had begun.
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "fresh")) {
        if !written_by_the_living(file) {
            let _ = fs::remove_file(file);
        }
    }
    orphans::sweep();
    Ok(reaped)
}

/// Kills the processes of a record; returns how many there were, and whether they have ended.
fn end(record: &Record, deadline: Instant) -> (usize, bool) {
    let mut keys: Vec<ProcessKey> = Vec::new();
    if let Some(process) = record.process.filter(|process| processes::is_alive(*process)) {
        keys.extend(processes::descendants(process.pid).into_iter().map(|entry| entry.key));
        keys.push(process);
    }
    if let (Some(session), Some(process)) = (record.session, record.process) {
        keys.extend(session_members(session, process));
    }
    keys.sort_unstable();
    keys.dedup();
    let handles: Vec<_> = keys.into_iter().filter_map(processes::open).collect();
    handles.iter().for_each(processes::kill);
    let mut ended = true;
    for handle in &handles {
        ended &= processes::ended_by(handle.as_fd(), deadline);
        processes::bury(handle);
    }
    (handles.len(), ended)
}

/// Returns the living processes of a kernel session that began after `leader` was started.
pub(crate) fn session_members(session: i32, leader: ProcessKey) -> Vec<ProcessKey> {
    let members = processes::table().into_iter();
    members
        .filter(|entry| entry.session == session && entry.key.started >= leader.started && !entry.is_zombie())
        .map(|entry| entry.key)
        .collect()
}

fn clear(file: &Path) {
    let scratch = file.with_extension("scratch");
    let gone = |result: io::Result<()>, what: &Path| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %what.display(), %error, "could not be removed");
        }
        _ => {}
    };
    gone(remove_tree(&scratch), &scratch);
    gone(fs::remove_file(file), file);
}

/// The owner's number is the second part of a file's name from behind.
fn written_by_the_living(file: &Path) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let owner = name.rsplit('.').nth(1).and_then(|number| number.parse().ok());
    owner.and_then(processes::key).is_some()
}

fn own_key() -> Result<ProcessKey, SandboxError> {
    let pid = std::process::id().cast_signed();
    processes::key(pid).ok_or_else(|| SandboxError::Io {
        doing: "read /proc/self/stat".to_owned(),
        source: io::ErrorKind::NotFound.into(),
    })
}

fn boot() -> Result<String, SandboxError> {
    let file = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(file).map_err(SandboxError::io(format!("read {file}")))?;
    Ok(text.trim().to_owned())
}
