//! Reading a corpus folder: no link is followed below its root.

use crate::error::EstateError;
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// What a directory entry is, its own self and not what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    /// A link, socket, pipe or device.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The name; what is no UTF-8 in it is replaced, which no naming rule admits.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Lists a directory by code point.
pub(crate) fn list(directory: &Path) -> Result<Vec<Entry>, EstateError> {
    let fault = |error| EstateError::file("list", directory, error);
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let kind = entry.file_type().map_err(fault)?;
        let kind = if kind.is_file() {
            Kind::File
        } else if kind.is_dir() {
            Kind::Directory
        } else {
            Kind::Other
        };
        entries.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// What stands at a path, if anything.
pub(crate) fn kind(path: &Path) -> Option<Kind> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(if found.is_file() {
        Kind::File
    } else if found.is_dir() {
        Kind::Directory
    } else {
        Kind::Other
    })
}

/// Reads a regular file, not through a link.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, EstateError> {
    let fault = |error| EstateError::file("read", path, error);
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content).map_err(fault)?;
    Ok(content)
}

/// Reads a regular file of at most `limit` bytes; `None` when it is longer.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, EstateError> {
    let mut content = Vec::new();
    let fault = |error| EstateError::file("read", path, error);
    open(path)?.take(limit + 1).read_to_end(&mut content).map_err(fault)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

fn open(path: &Path) -> Result<File, EstateError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| EstateError::file("read", path, error.into()))?;
    Ok(File::from(file))
}

/// Writes a file whole or not at all: into a file beside it, then by a rename.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), EstateError> {
    let beside = beside(path);
    let written = create(&beside).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&beside, path));
    if renamed.is_err() {
        // The failure to write is what matters; a left-over is overwritten by the next run.
        let _ = fs::remove_file(&beside);
    }
    renamed.map_err(|error| EstateError::file("write", path, error))
}

/// The file into which another is written before it takes its name. Hidden, so that what a killed run leaves in a
/// corpus or among refs is taken for nothing.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}

/// Creates a file that was not there, in the place of one that a killed run left; a link there is not followed.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Makes names given or taken in a directory last, whatever happens to the machine.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
