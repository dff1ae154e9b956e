//! Reading a corpus folder: no link is followed below its root.

use crate::error::EstateError;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// What a directory entry is, its own self and not what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    /// A socket, pipe or device.
    Special(&'static str),
}

impl Kind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Special("a pipe"),
            FileType::Socket => Self::Special("a socket"),
            _ => Self::Special("a device"),
        }
    }

    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Special(what) => what,
        }
    }
}

/// One entry of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The name; what is no UTF-8 in it is replaced, which no naming rule admits.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Lists a directory by code point.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    each_entry(directory, |name, kind| entries.push(Entry { name: name.into_owned(), kind }))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Goes over the entries of a directory, in the order of the file system.
pub(crate) fn each_entry(directory: &Path, mut take: impl FnMut(Cow<'_, str>, Kind)) -> io::Result<()> {
    let mut entries = Dir::new(open_directory(directory)?)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system tells.
            FileType::Unknown => {
                let found = rustix::fs::statat(entries.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        take(name.to_string_lossy(), Kind::of(kind));
    }
    Ok(())
}

/// Opens a directory, to list it or to open what is below it.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// What stands at a path, if anything that can be looked at.
pub(crate) fn kind(path: &Path) -> Option<Kind> {
    look(path).ok().flatten()
}

/// What stands at a path, if anything.
pub(crate) fn look(path: &Path) -> io::Result<Option<Kind>> {
    match rustix::fs::lstat(path) {
        Ok(found) => Ok(Some(Kind::of(FileType::from_raw_mode(found.st_mode)))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a regular file, not through a link.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, EstateError> {
    let fault = |error| EstateError::file("read", path, error);
    let mut content = Vec::new();
    open(path).map_err(fault)?.read_to_end(&mut content).map_err(fault)?;
    Ok(content)
}

/// Reads a regular file of at most `limit` bytes; `None` when it is longer.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, EstateError> {
    bounded(path, limit).map_err(|error| EstateError::file("read", path, error))
}

/// [`read_at_most`] for who has a place of his own for the error.
pub(crate) fn bounded(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

/// Opens a file, not through a link, and without waiting for whoever writes into a pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_at(CWD, path)
}

/// Opens a file below a directory, as all files of a corpus are opened.
pub(crate) fn open_at(directory: impl AsFd, path: impl rustix::path::Arg) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, path, flags, Mode::empty())?))
}

/// Fills a buffer from a file; gives how many bytes there were, fewer than it holds at the end only.
pub(crate) fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
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
