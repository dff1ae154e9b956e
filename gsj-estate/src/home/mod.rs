//! The folder of an estate that stands on this machine: its parts, who works on it, what was done to it.

mod claim;
mod process;
mod record;
mod standing;

use std::io;
use std::path::{Path, PathBuf};

pub use claim::Claim;
pub use process::{Guard, Serving};
pub use record::{BringUpRecord, EngineRecord, Record, what_changed};
pub use standing::{BankStanding, Standing, lock_digest, standing};

/// What can go wrong with the folder itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// The folder holds something, and not an estate.
    #[error("`{}` is not empty and no estate of ours (it has no {MARKER}); name another folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is a link, or no folder.
    #[error("`{}` is {what}, where the folder of an estate must be", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
        /// What stands there.
        what: &'static str,
    },
    /// Another command works on it.
    #[error("`{}` is being worked on by {holder}; wait for it, or stop it", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// Who that is, as far as it is known.
        holder: String,
    },
    /// A server of this folder runs already.
    #[error("a server of `{}` runs already", path.display())]
    Served {
        /// The folder.
        path: PathBuf,
    },
    /// A file of ours does not read as one.
    #[error("`{}` {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{doing} `{}`", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl HomeError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

/// The file that makes a folder an estate's, and holds what was done to it.
const MARKER: &str = "estate.json";
/// The file that is locked by whoever works on the folder.
const LOCK: &str = "up.lock";
/// The file that is locked by the running server, and the one that says which process it is.
const SERVER_LOCK: &str = "serve.lock";
const SERVER: &str = "serve.json";

/// Everything that may lie in such a folder, the marker apart.
const PARTS: [&str; 14] = [
    "repos",
    "pins",
    "bring-up",
    "rollout.yaml",
    "rollout.yaml.before",
    "secret",
    "state",
    "traces",
    "quarantine",
    "artifacts",
    "serve.log",
    SERVER,
    SERVER_LOCK,
    LOCK,
];

/// Where the parts of an estate lie. Making one touches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// An estate in this folder.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the folder is an estate's.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.marker().is_file()
    }

    fn marker(&self) -> PathBuf {
        self.root.join(MARKER)
    }

    /// The bare repositories, a folder for each owner.
    #[must_use]
    pub fn repos(&self) -> PathBuf {
        self.root.join("repos")
    }

    /// The approved sets, and the documents that they were derived from.
    #[must_use]
    pub fn pins_folder(&self) -> PathBuf {
        self.root.join("pins")
    }

    /// The pins file.
    #[must_use]
    pub fn pins(&self) -> PathBuf {
        self.pins_folder().join("pins.json")
    }

    /// What is kept of bring-up episodes.
    #[must_use]
    pub fn bring_up(&self) -> PathBuf {
        self.root.join("bring-up")
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join("rollout.yaml")
    }

    /// Where a configuration goes that somebody edited, when it is written anew.
    #[must_use]
    pub fn config_before(&self) -> PathBuf {
        self.root.join("rollout.yaml.before")
    }

    /// The secret that signs retrieval tokens; for its owner only.
    #[must_use]
    pub fn secret(&self) -> PathBuf {
        self.root.join("secret")
    }

    /// The server's state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Accepted results.
    #[must_use]
    pub fn traces(&self) -> PathBuf {
        self.root.join("traces")
    }

    /// Rejected results.
    #[must_use]
    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    /// Transcripts, logs and deliverables.
    #[must_use]
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// What the server says.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.root.join("serve.log")
    }
}
