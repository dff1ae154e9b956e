//! The bytes of files: still in memory, mapped, or read once.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Deref;
use std::path::Path;

/// Bytes that nobody changes any more.
pub(crate) enum Bytes {
    Owned(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl Bytes {
    /// Maps a file of the store.
    pub(crate) fn map(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        #[expect(
            unsafe_code,
            reason = "a mapping changes when its file does; index files are written once, renamed into place and only ever unlinked"
        )]
        // SAFETY: as said, the bytes do not change while they are mapped.
        let mapped = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(Self::Mapped(mapped))
    }
}

/// Opens a file for reading; anything else, as a pipe or a device, might never begin or never end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Looked at before it is opened, which for a pipe waits for whoever writes into it.
    plain(path)?;
    File::open(path)
}

/// Reads a whole file, as [`open`] does.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Fails with [`io::ErrorKind::InvalidInput`] for what is there and no file.
pub(crate) fn plain(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(bytes) => bytes,
        }
    }
}
