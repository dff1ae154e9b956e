//! Where repositories go: a folder, or a git host (`corpus.md` section 8).

mod folder;
#[cfg(feature = "remote")]
mod forge;
#[cfg(feature = "remote")]
mod git;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "remote")]
mod scratch;

#[cfg(feature = "remote")]
pub use remote::{Api, Remote, Token};

use crate::error::EstateError;
use crate::repository::Wanted;
use std::path::{Path, PathBuf};

/// A place that holds bare repositories by owner.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Host {
    /// A folder that holds a folder for each owner: `FOLDER/OWNER/CASE.git`.
    Folder(PathBuf),
    /// A git host that is pushed to.
    #[cfg(feature = "remote")]
    Remote(Remote),
}

impl Host {
    /// Makes ready to work for one owner.
    pub(crate) fn open<'a>(&'a self, owner: &'a str) -> Result<Session<'a>, EstateError> {
        match self {
            Self::Folder(base) => Ok(Session::Folder(folder::Folder { owner, base })),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.open(owner).map(|session| Session::Remote(Box::new(session))),
        }
    }
}

/// The name of the environment variable that holds an owner's credential: `GSJ_FORGEJO_TOKEN_` and the owner in capitals,
/// with an underscore for a dash or dot.
#[must_use]
pub fn credential_variable(owner: &str) -> String {
    format!("GSJ_FORGEJO_TOKEN_{}", owner.to_uppercase().replace(['-', '.'], "_"))
}

/// A host as one owner uses it.
#[derive(Debug)]
pub(crate) enum Session<'a> {
    Folder(folder::Folder<'a>),
    #[cfg(feature = "remote")]
    Remote(Box<remote::Session<'a>>),
}

/// A bare repository to read from, for as long as this lives.
#[derive(Debug)]
pub(crate) enum Fetched {
    InPlace(PathBuf),
    #[cfg(feature = "remote")]
    Copy(scratch::Scratch),
}

impl Fetched {
    /// Whether it is the host's own, which nobody has read yet; git itself has made the others.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::InPlace(path) => path,
            #[cfg(feature = "remote")]
            Self::Copy(scratch) => scratch.path(),
        }
    }
}

impl Session<'_> {
    pub(crate) fn owner(&self) -> &str {
        match self {
            Self::Folder(folder) => folder.owner,
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.owner(),
        }
    }

    /// How many repositories are worked on at once.
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Folder(_) => crate::parallel::threads(),
            #[cfg(feature = "remote")]
            Self::Remote(_) => remote::AT_ONCE,
        }
    }

    /// A repository's URL without credentials.
    pub(crate) fn url(&self, name: &str) -> String {
        match self {
            Self::Folder(folder) => format!("file://{}", folder.path(name).display()),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.url(name),
        }
    }

    /// The folder of the owner's repositories, where the host is one.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder.base.join(folder.owner)),
            #[cfg(feature = "remote")]
            Self::Remote(_) => None,
        }
    }

    /// A repository's folder, where the host is one.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => Some(folder.path(name)),
            #[cfg(feature = "remote")]
            Self::Remote(_) => None,
        }
    }

    /// Brings a repository to what is wanted; tells whether anything had to be done.
    pub(crate) fn put(&self, wanted: Wanted<'_>, dry_run: bool) -> Result<bool, EstateError> {
        match self {
            Self::Folder(folder) => folder.put(wanted, dry_run),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.put(wanted, dry_run),
        }
    }

    /// A repository as whoever clones it would get it.
    pub(crate) fn fetch(&self, name: &str) -> Result<Fetched, EstateError> {
        match self {
            Self::Folder(folder) => folder.fetch(name).map(Fetched::InPlace),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.fetch(name).map(Fetched::Copy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::credential_variable;

    #[test]
    fn the_variable_is_derived_from_any_owner() {
        assert_eq!(credential_variable("gsj-staging"), "GSJ_FORGEJO_TOKEN_GSJ_STAGING");
        assert_eq!(credential_variable("Team.b_2"), "GSJ_FORGEJO_TOKEN_TEAM_B_2");
    }
}
