//! What can go wrong while cutting or auditing.

use std::io;
use std::path::{Path, PathBuf};

/// Why a checkout could not be made, or a folder not be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CutoffError {
    /// The source cannot be opened as a git repository.
    #[error("open repository `{}`: {reason}", path.display())]
    Source {
        /// The repository.
        path: PathBuf,
        /// What git's reader says.
        reason: String,
    },
    /// The source has no such branch.
    #[error("repository `{}` has no branch `{branch}`; it has: {available}", path.display())]
    BranchMissing {
        /// The repository.
        path: PathBuf,
        /// The branch asked for.
        branch: String,
        /// The first branches that are there.
        available: String,
    },
    /// Branch name and timestep of a request do not belong together.
    #[error("branch `{branch}` is not the branch of timestep {timestep}, which is `timestep-{timestep}`")]
    BranchTimestep {
        /// The branch asked for.
        branch: String,
        /// The timestep asked for.
        timestep: u32,
    },
    /// A timestep was to be cut with its past, which in a case repository is the whole document.
    #[error("timestep {timestep} cannot keep its history: what came before its commit holds the later pages")]
    HistoryOfTimestep {
        /// The timestep.
        timestep: u32,
    },
    /// A commit, or a patch, is not named by a whole id.
    #[error("`{text}` is no full id of 40 hex digits")]
    Id {
        /// What was given.
        text: String,
    },
    /// A date cannot be read.
    #[error("`{text}` is no date: give it with its offset, as 2026-01-31T12:00:00Z, or as @SECONDS")]
    Date {
        /// What was given.
        text: String,
    },
    /// Nothing on the branch is as old as the date.
    #[error(
        "branch `{branch}` has no commit at or before {seconds} (seconds since 1970); its first-parent line begins with \
         {id} at {first}"
    )]
    NothingBefore {
        /// The branch.
        branch: String,
        /// The date of the cut.
        seconds: i64,
        /// The date of the first commit on the line.
        first: i64,
        /// The first commit on the line.
        id: String,
    },
    /// What was denied is reached by the cut.
    #[error("the cut reaches {commit}, which is denied{}", patch.as_ref().map(|id| format!(" by its patch id {id}")).unwrap_or_default())]
    Denied {
        /// The commit that is reached.
        commit: String,
        /// The patch id that was denied, where it was not the commit itself.
        patch: Option<String>,
    },
    /// An object is missing, damaged, of the wrong kind or too large.
    #[error("object {id} {what}")]
    Object {
        /// The object's id in hex.
        id: String,
        /// What is wrong with it.
        what: String,
    },
    /// The tree holds something that is never written to a working tree.
    #[error("tree entry `{path}` is refused: {what}")]
    Refused {
        /// The entry's path, control characters escaped.
        path: String,
        /// Why.
        what: &'static str,
    },
    /// The branch does not hold exactly the pages up to its timestep.
    #[error("branch `{branch}` holds {found} instead of the pages 1..{timestep}")]
    Pages {
        /// The branch.
        branch: String,
        /// The timestep.
        timestep: u32,
        /// What was found.
        found: String,
    },
    /// The destination cannot take a checkout.
    #[error("destination `{}` {what}", path.display())]
    Destination {
        /// The destination.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// A remote is none that may be fetched.
    #[error("`{url}` is not fetched: {what}")]
    Url {
        /// The remote, without credentials.
        url: String,
        /// Why not.
        what: &'static str,
    },
    /// A remote could not be fetched.
    #[error("fetch `{url}`: {reason}")]
    Fetch {
        /// The remote, without credentials.
        url: String,
        /// Why, without credentials.
        reason: String,
    },
    /// A credential cannot be sent.
    #[error("the credential is empty or holds control characters")]
    Credential,
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
    /// A folder cannot be audited, since it has no readable tip.
    #[error("`{}` cannot be audited: {what}", path.display())]
    NotACheckout {
        /// The folder.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// The objects of a folder inflate to more than is read of something that nobody vouches for.
    #[error(
        "the objects in `{}` inflate to more than {most} bytes; if that is honest, say in `most_inflated` how much is",
        path.display()
    )]
    TooMuch {
        /// The folder of objects.
        path: PathBuf,
        /// How much was allowed.
        most: u64,
    },
    /// A checkout just made does not pass its own audit; it was taken away again.
    #[error("the checkout in `{}` fails its audit ({count} findings): {first}", path.display())]
    Leaks {
        /// The destination.
        path: PathBuf,
        /// How many findings there are.
        count: usize,
        /// The first one.
        first: String,
    },
}

impl CutoffError {
    pub(crate) fn file(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::File { action, path: path.as_ref().to_owned(), source }
    }

    pub(crate) fn object(id: impl ToString, what: impl Into<String>) -> Self {
        Self::Object { id: id.to_string(), what: what.into() }
    }
}
