//! The bytes of a file of ours: still in memory, or mapped.

use std::fs::File;
use std::io;
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
        let file = File::open(path)?;
        #[expect(
            unsafe_code,
            reason = "a mapping changes when its file does; index files are written once, renamed into place and only ever unlinked"
        )]
        // SAFETY: as said, the bytes do not change while they are mapped.
        let mapped = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(Self::Mapped(mapped))
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
