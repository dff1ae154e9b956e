//! A repository that is only read: its branches and its objects.

use crate::audit::walk::{self, EntryKind};
use crate::error::CutoffError;
use crate::names;
use crate::objects::Source;
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The longest HEAD, ref or configuration that is read, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;
/// The longest table of packed refs or of shallow commits that is read, in bytes.
const LONGEST_TABLE: u64 = 64 << 20;
/// The most symbolic refs that are followed from one to the next.
const MOST_HOPS: usize = 5;

/// A repository of this machine, bare or with a working tree.
///
/// Of its configuration only the object format and the ref format are looked at; nothing else in it has a meaning
/// here, so no include, filter, monitor or hook of it is ever followed or run.
pub(crate) struct SourceRepository {
    path: PathBuf,
    git_dir: PathBuf,
}

impl SourceRepository {
    pub(crate) fn open(path: &Path) -> Result<Self, CutoffError> {
        let fault = |reason: &str| CutoffError::Source { path: path.to_owned(), reason: reason.to_owned() };
        let inner = path.join(".git");
        let git_dir = match fs::symlink_metadata(&inner) {
            Ok(found) if found.is_dir() => inner,
            Ok(found) if found.is_symlink() => return Err(fault("its `.git` is a symbolic link")),
            Ok(_) => return Err(fault("its `.git` is a file that points elsewhere")),
            Err(_) => path.to_owned(),
        };
        let there = |name: &str| fs::symlink_metadata(git_dir.join(name)).is_ok();
        if !there("HEAD") || !git_dir.join("objects").is_dir() {
            return Err(fault("it is no git repository"));
        }
        if there("commondir") {
            return Err(fault("it is a second working tree of another repository"));
        }
        let config = text(&git_dir.join("config"), LONGEST_TEXT)?.unwrap_or_default();
        let origin = gix::config::file::Metadata::from(gix::config::Source::Local);
        let config = gix::config::File::from_bytes_no_includes(&config, origin, Default::default())
            .map_err(|_| fault("its configuration cannot be read"))?;
        let stated = |key: &str| config.string(key).map(|value| value.to_string().to_lowercase());
        if stated("extensions.objectformat").is_some_and(|format| format != "sha1") {
            return Err(fault("its object format is not SHA-1"));
        }
        if stated("extensions.refstorage").is_some_and(|format| format != "files") {
            return Err(fault("its refs are not kept in files"));
        }
        Ok(Self { path: path.to_owned(), git_dir })
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
        let fault = |reason: String| CutoffError::Source { path: self.path.clone(), reason };
        let mut name = format!("refs/heads/{branch}");
        for _ in 0..MOST_HOPS {
            // A name that cannot be a ref's is no branch, and may not become a path.
            if !name.starts_with("refs/") || gix::validate::reference::name(name.as_bytes().as_bstr()).is_err() {
                return Ok(None);
            }
            let Some(content) = self.ref_file(&name)? else { return self.packed(&name) };
            let content = String::from_utf8_lossy(&content);
            match content.strip_prefix("ref:") {
                Some(next) => name = next.trim().to_owned(),
                None => match ObjectId::from_hex(content.trim_end().as_bytes()) {
                    Ok(id) => return Ok(Some(id)),
                    Err(_) => return Err(fault(format!("its ref {name} names no object"))),
                },
            }
        }
        Err(fault(format!("{branch}: it is a symbolic ref of more than {MOST_HOPS} steps")))
    }

    /// What the file of a ref says; `None` when there is none. Neither it nor a folder above it may be a link.
    fn ref_file(&self, name: &str) -> Result<Option<Vec<u8>>, CutoffError> {
        for (at, _) in name.match_indices('/') {
            let folder = self.git_dir.join(&name[..at]);
            match fs::symlink_metadata(&folder) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    let fault = io::Error::other("it is a symbolic link");
                    return Err(CutoffError::file("read", &folder, fault));
                }
                // A branch of that name, or nothing.
                _ => return Ok(None),
            }
        }
        let path = self.git_dir.join(name);
        match fs::symlink_metadata(&path) {
            // What is left of branches whose names went on.
            Ok(found) if found.is_dir() => Ok(None),
            _ => text(&path, LONGEST_TEXT),
        }
    }

    /// The object that the table of packed refs has for a name.
    fn packed(&self, name: &str) -> Result<Option<ObjectId>, CutoffError> {
        let table = text(&self.git_dir.join("packed-refs"), LONGEST_TABLE)?.unwrap_or_default();
        let line = table.split(|byte| *byte == b'\n').find(|line| line.get(41..) == Some(name.as_bytes()));
        Ok(line.and_then(|line| ObjectId::from_hex(&line[..40]).ok()))
    }

    /// The branch that HEAD names.
    #[cfg(feature = "git")]
    pub(crate) fn head_branch(&self) -> Result<String, CutoffError> {
        let head = text(&self.git_dir.join("HEAD"), LONGEST_TEXT)?.unwrap_or_default();
        let head = String::from_utf8_lossy(&head);
        match head.trim_end().strip_prefix("ref: refs/heads/") {
            Some(branch) => Ok(branch.to_owned()),
            None => Err(CutoffError::Source {
                path: self.path.clone(),
                reason: "its HEAD names no branch, so the branch must be named".into(),
            }),
        }
    }

    /// The commits whose parents the repository says it does not have.
    #[cfg(feature = "git")]
    pub(crate) fn shallow(&self) -> Result<BTreeSet<ObjectId>, CutoffError> {
        let lines = text(&self.git_dir.join("shallow"), LONGEST_TABLE)?.unwrap_or_default();
        Ok(lines.lines().filter_map(|line| ObjectId::from_hex(line).ok()).collect())
    }

    pub(crate) fn objects(&self) -> Result<Source, CutoffError> {
        Source::at(&self.git_dir.join("objects"))
    }

    /// The first branches, for a message.
    fn branches(&self) -> String {
        const SHOWN: usize = 20;
        let table = text(&self.git_dir.join("packed-refs"), LONGEST_TABLE).ok().flatten().unwrap_or_default();
        let mut names: BTreeSet<String> = table
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.get(41..)?.strip_prefix(b"refs/heads/"))
            .map(names::shown)
            .collect();
        // A folder of refs that cannot be listed has none to offer.
        for entry in walk::list(&self.git_dir.join("refs/heads"), &[]).unwrap_or_default() {
            if matches!(entry.kind, EntryKind::File { .. }) {
                names.insert(names::shown(&entry.path));
            }
        }
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        match names.len() {
            0 => "none".to_owned(),
            _ => names.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ") + more,
        }
    }
}

/// The bytes of a regular file; `None` when there is none.
fn text(path: &Path, longest: u64) -> Result<Option<Vec<u8>>, CutoffError> {
    let fault = |error| CutoffError::file("read", path, error);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(fault(io::Error::other("it is no regular file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
    }
    match walk::read(path, longest)? {
        Some(content) => Ok(Some(content)),
        None => Err(fault(io::Error::other(format!("it is longer than {longest} bytes")))),
    }
}
