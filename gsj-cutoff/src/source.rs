//! A repository that is only read: its branches and its objects.

use crate::error::CutoffError;
use crate::objects::Source;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use std::path::{Path, PathBuf};

/// A repository of this machine, opened without any configuration but its own.
pub(crate) struct SourceRepository {
    path: PathBuf,
    repository: gix::Repository,
}

impl SourceRepository {
    pub(crate) fn open(path: &Path) -> Result<Self, CutoffError> {
        let fault = |reason: String| CutoffError::Source { path: path.to_owned(), reason };
        let repository = gix::open_opts(path, gix::open::Options::isolated().open_path_as_is(true))
            .map_err(|error| fault(error.to_string()))?;
        if repository.object_hash() != HashKind::Sha1 {
            return Err(fault("its object format is not SHA-1".into()));
        }
        Ok(Self { path: path.to_owned(), repository })
    }

    /// The commit that a branch names.
    pub(crate) fn tip(&self, branch: &str) -> Result<ObjectId, CutoffError> {
        self.find(branch)?.ok_or_else(|| CutoffError::BranchMissing {
            path: self.path.clone(),
            branch: branch.to_owned(),
            available: self.branches(),
        })
    }

    /// The commit that a branch names, if there is such a branch.
    pub(crate) fn find(&self, branch: &str) -> Result<Option<ObjectId>, CutoffError> {
        let fault =
            |error: gix::Error| CutoffError::Source { path: self.path.clone(), reason: format!("{branch}: {error}") };
        let name = format!("refs/heads/{branch}");
        let Some(reference) = self.repository.try_find_reference(name.as_str()).map_err(fault)? else {
            return Ok(None);
        };
        Ok(Some(reference.into_fully_peeled_id().map_err(fault)?.detach()))
    }

    pub(crate) fn objects(&self) -> Result<Source, CutoffError> {
        Source::at(&self.repository.common_dir().join("objects"))
    }

    /// The first branches, for a message.
    fn branches(&self) -> String {
        const SHOWN: usize = 20;
        let mut names = Vec::new();
        if let Ok(platform) = self.repository.references()
            && let Ok(iter) = platform.local_branches()
        {
            names.extend(iter.take(SHOWN + 1).filter_map(Result::ok).map(|branch| branch.name().shorten().to_string()));
        }
        match names.len() {
            0 => "none".to_owned(),
            count if count > SHOWN => format!("{}, ...", names[..SHOWN].join(", ")),
            _ => names.join(", "),
        }
    }
}
