//! Where the bytes of a table come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;

/// A file, or bytes in memory.
#[derive(Debug)]
pub(crate) enum Source {
    File(File, u64),
    Memory(Bytes),
}

impl Source {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Reads exactly these bytes.
    pub(crate) fn read(&self, at: u64, length: usize) -> io::Result<Bytes> {
        match self {
            Self::File(file, end) => {
                // Checked before the memory is taken.
                if at.checked_add(length as u64).is_none_or(|to| to > *end) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, at)?;
                Ok(bytes.into())
            }
            Self::Memory(bytes) => {
                let range = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(length)?));
                let range = range.filter(|range| range.end <= bytes.len());
                range.map(|range| bytes.slice(range)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        }
    }
}
