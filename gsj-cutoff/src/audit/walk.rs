//! Listing a folder without following anything.

use crate::closure::joined;
use crate::error::CutoffError;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The most entries of a folder that are listed; more is taken for an attack.
const MOST_ENTRIES: usize = 1_000_000;
/// What the paths of all entries may take together, in bytes.
const MOST_PATHS: usize = 64 << 20;

/// What an entry is, its own self and not what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File {
        executable: bool,
        size: u64,
    },
    Directory,
    Link,
    /// A socket, pipe or device.
    Other,
}

/// One entry below the folder that was walked.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path from the folder, parts divided by `/`.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: EntryKind,
}

/// Lists everything below `root`, sorted by path, without entering links or the top-level names in `skip`.
pub(crate) fn list(root: &Path, skip: &[&[u8]]) -> Result<Vec<Entry>, CutoffError> {
    let mut entries = Vec::new();
    let mut pending = vec![Vec::new()];
    let mut paths = 0_usize;
    while let Some(directory) = pending.pop() {
        let path = root.join(OsStr::from_bytes(&directory));
        let fault = |error| CutoffError::file("list", &path, error);
        for entry in fs::read_dir(&path).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name();
            if directory.is_empty() && skip.contains(&name.as_bytes()) {
                continue;
            }
            let relative = joined(&directory, name.as_bytes());
            let found = fs::symlink_metadata(entry.path()).map_err(fault)?;
            let kind = if found.is_dir() {
                pending.push(relative.clone());
                EntryKind::Directory
            } else if found.is_symlink() {
                EntryKind::Link
            } else if found.is_file() {
                EntryKind::File { executable: found.mode() & 0o111 != 0, size: found.len() }
            } else {
                EntryKind::Other
            };
            paths += relative.len();
            entries.push(Entry { path: relative, kind });
            if entries.len() > MOST_ENTRIES || paths > MOST_PATHS {
                return Err(CutoffError::NotACheckout {
                    path: root.to_owned(),
                    what: "it holds too many files".into(),
                });
            }
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Reads a regular file of at most `limit` bytes, not through a link in its last part; `None` when it is longer.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, CutoffError> {
    let fault = |error| CutoffError::file("read", path, error);
    let file = open(path)?;
    let length = file.metadata().map_err(fault)?.len();
    if length > limit {
        return Ok(None);
    }
    // One byte more, so that the end is found without growing.
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(limit + 1).read_to_end(&mut content).map_err(fault)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

/// Opens a regular file, not through a link in its last part.
pub(crate) fn open(path: &Path) -> Result<fs::File, CutoffError> {
    let fault = |error| CutoffError::file("read", path, error);
    // The entry may have been swapped since it was listed: for a link, or for a pipe that would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| fault(error.into()))?;
    let file = fs::File::from(file);
    if file.metadata().map_err(fault)?.is_file() {
        return Ok(file);
    }
    Err(fault(std::io::Error::other("it is no regular file")))
}
