//! What can go wrong beside a corpus that does not pass.

use crate::lock::LOCK_FILE;
use crate::report::Report;
use std::io;
use std::path::{Path, PathBuf};

/// Why a corpus could not be read or an estate not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstateError {
    /// The corpus does not pass validation.
    #[error("corpus `{}` does not pass: {failed} findings, the first is {first}; run `gsj estate validate --corpus {}`", root.display(), root.display())]
    Invalid {
        /// The corpus folder.
        root: PathBuf,
        /// How many findings fail.
        failed: usize,
        /// The first failing finding.
        first: String,
        /// All findings.
        report: Box<Report>,
    },
    /// The corpus folder is not there.
    #[error("corpus `{}` is not a folder", root.display())]
    NoCorpus {
        /// The folder asked for.
        root: PathBuf,
    },
    /// A case that was asked for is not in the corpus.
    #[error("corpus `{}` has no case {}", root.display(), cases.join(", "))]
    UnknownCases {
        /// The corpus folder.
        root: PathBuf,
        /// The cases that are not there.
        cases: Vec<String>,
    },
    /// A file changed between validation and reading.
    #[error("file `{}` changed while the corpus was being read; run again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The owner that overrides the corpus's is no owner name.
    #[error("owner `{owner}` is no owner name: letters, digits, dot, underscore and dash, the first a letter or digit")]
    Owner {
        /// The owner asked for.
        owner: String,
    },
    /// The lock cannot be understood.
    #[error("lock `{}` {what}; restore it from version control, or delete it and name the repositories' recipe (--recipe)", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What holds for all cases has changed, and only some are to be built.
    #[error("`{key}` of corpus.yaml is not what the lock `{}` has for the other cases: build all, without --only", path.display())]
    PartialChange {
        /// The lock file.
        path: PathBuf,
        /// The key of `corpus.yaml`.
        key: &'static str,
    },
    /// There is no lock yet.
    #[error("`{}` has no {LOCK_FILE}; `gsj estate scaffold` writes it", root.display())]
    NoLock {
        /// The corpus folder, or the one that the lock is kept in.
        root: PathBuf,
    },
    /// The lock is of another state of the corpus.
    #[error("lock `{}` is of another state of the corpus: {}; `gsj estate scaffold` brings it up to date", path.display(), differences.join("; "))]
    LockBehind {
        /// The lock file.
        path: PathBuf,
        /// How it differs, one sentence each.
        differences: Vec<String>,
    },
    /// The task bank of one split would make the corpus folder invalid.
    #[error("write the bank of one split to `{}`: in the corpus folder only the whole bank may stand", path.display())]
    PartialBank {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// A file that is no bank stands where a bank is to be written.
    #[cfg(feature = "taskbank")]
    #[error("`{}` is there and is no Parquet file; name another file, or remove it", path.display())]
    NotABank {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// The task bank cannot be written or read.
    #[cfg(feature = "taskbank")]
    #[error("task bank `{}`", path.display())]
    Bank {
        /// The bank.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: gsj_tables::TableError,
    },
    /// A repository of the estate cannot be written or read.
    #[error("repository `{}`: {what}", path.display())]
    Repository {
        /// The repository.
        path: PathBuf,
        /// What failed.
        what: String,
    },
    /// An address is none that can be used.
    #[error("`{url}` {what}")]
    BaseUrl {
        /// The address, or dots where it may hold a secret.
        url: String,
        /// What is wrong with it.
        what: String,
    },
    /// A credential is missing or somebody else's.
    #[error("the credential in {variable} {what}")]
    Credential {
        /// The environment variable that should hold it.
        variable: String,
        /// What is wrong with it.
        what: String,
    },
    /// A git host refused, failed, or could not be reached.
    #[error("host `{url}`: {what}")]
    Host {
        /// The repository or the host, without credentials.
        url: String,
        /// What it said, without credentials.
        what: String,
    },
    /// The retrieval service refused, failed, or could not be reached.
    #[error("retrieval service `{url}`: {what}")]
    Service {
        /// The service's URL.
        url: String,
        /// What it said.
        what: String,
    },
    /// Reading or writing a file failed.
    #[error("{action} `{}`", path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl EstateError {
    /// Whether another machine refused, failed or could not be reached, which is told by an exit code of its own.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Host { .. } | Self::Service { .. })
    }

    pub(crate) fn file(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::File { action, path: path.as_ref().to_owned(), source }
    }

    pub(crate) fn repository(path: &Path, what: impl ToString) -> Self {
        Self::Repository { path: path.to_owned(), what: what.to_string() }
    }
}
