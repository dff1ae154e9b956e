//! A folder of bare repositories: the embedded host.

use crate::error::EstateError;
use crate::files;
use crate::repository::{self, Wanted};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Folder<'a> {
    pub(crate) owner: &'a str,
    pub(crate) base: &'a Path,
}

impl Folder<'_> {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(self.owner).join(format!("{name}.git"))
    }

    pub(crate) fn put(&self, wanted: Wanted<'_>, dry_run: bool) -> Result<bool, EstateError> {
        repository::write(&self.path(&wanted.plan.name(&wanted.case.id)), wanted, dry_run)
    }

    pub(crate) fn fetch(&self, name: &str) -> Result<PathBuf, EstateError> {
        let path = self.path(name);
        match files::kind(&path) {
            Some(files::Kind::Directory) => Ok(path),
            Some(_) => Err(EstateError::repository(&path, "is no directory")),
            None => Err(EstateError::repository(&path, "is not there")),
        }
    }
}
