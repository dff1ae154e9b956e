//! A repository that is only read: its branches and its objects.

use crate::error::CutoffError;
use crate::objects::Source;
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::hash::Kind as HashKind;
use gix::refs::TargetRef;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The longest text file of a repository that is read, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;
/// The most symbolic refs that are followed from one to the next.
const MOST_HOPS: usize = 5;

/// A repository of this machine, bare or with a working tree.
///
/// Of its configuration only the object format and the ref format are looked at; nothing else in it has a meaning
/// here, so no include, filter, monitor or hook of it is ever followed or run.
pub(crate) struct SourceRepository {
    path: PathBuf,
    git_dir: PathBuf,
    refs: gix::refs::file::Store,
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
        let config = text(&git_dir.join("config"))?.unwrap_or_default();
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
        let refs = gix::refs::file::Store::at(git_dir.clone(), HashKind::Sha1);
        Ok(Self { path: path.to_owned(), git_dir, refs })
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
            // A name that cannot be a ref's is no branch; and the lookup would try other folders for a part of a name.
            if gix::validate::reference::name(name.as_bytes().as_bstr()).is_err() {
                return Ok(None);
            }
            let found = self.refs.try_find(name.as_str()).map_err(|error| fault(format!("{branch}: {error}")))?;
            let Some(reference) = found.filter(|found| found.name.as_bstr() == name.as_bytes()) else {
                return Ok(None);
            };
            match reference.target.to_ref() {
                TargetRef::Object(id) => return Ok(Some(id.to_owned())),
                TargetRef::Symbolic(next) => name = next.as_bstr().to_string(),
            }
        }
        Err(fault(format!("{branch}: it is a symbolic ref of more than {MOST_HOPS} steps")))
    }

    /// The branch that HEAD names.
    #[cfg(feature = "git")]
    pub(crate) fn head_branch(&self) -> Result<String, CutoffError> {
        let head = text(&self.git_dir.join("HEAD"))?.unwrap_or_default();
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
        let lines = text(&self.git_dir.join("shallow"))?.unwrap_or_default();
        Ok(lines.lines().filter_map(|line| ObjectId::from_hex(line).ok()).collect())
    }

    pub(crate) fn objects(&self) -> Result<Source, CutoffError> {
        Source::at(&self.git_dir.join("objects"))
    }

    /// The first branches, for a message.
    fn branches(&self) -> String {
        const SHOWN: usize = 20;
        let mut names = Vec::new();
        if let Ok(platform) = self.refs.iter()
            && let Ok(all) = platform.all()
        {
            let short = |name: gix::refs::FullName| {
                Some(name.as_bstr().strip_prefix(b"refs/heads/")?.to_str_lossy().into_owned())
            };
            names.extend(all.filter_map(Result::ok).filter_map(|found| short(found.name)).take(SHOWN + 1));
        }
        match names.len() {
            0 => "none".to_owned(),
            count if count > SHOWN => format!("{}, ...", names[..SHOWN].join(", ")),
            _ => names.join(", "),
        }
    }
}

/// The bytes of a regular file; `None` when there is none. What is longer than any honest one is cut off.
fn text(path: &Path) -> Result<Option<Vec<u8>>, CutoffError> {
    let fault = |error| CutoffError::file("read", path, error);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(fault(io::Error::other("it is no regular file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
    }
    let mut content = Vec::new();
    fs::File::open(path).and_then(|file| file.take(LONGEST_TEXT).read_to_end(&mut content)).map_err(fault)?;
    Ok(Some(content))
}
