//! Writing the one pack of a repository, byte for byte the same for the same objects in the same order.
//!
//! One file instead of thousands: two syncs a repository, and whoever clones reads in one go. Every object stands whole,
//! so that nothing of a page is ever expressed by another page.

use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::stream::deflate::{Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use sha1::{Digest as _, Sha1};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Buffered bytes before they are written.
const BUFFER: usize = 1 << 18;

/// A pack as it is being written.
pub(crate) struct PackWriter {
    file: File,
    digest: Sha1,
    pending: Vec<u8>,
    offset: u64,
    promised: usize,
    /// Id, checksum of the entry's bytes, and where it begins.
    entries: Vec<(ObjectId, u32, u64)>,
    compress: Compress,
    deflated: Vec<u8>,
}

impl PackWriter {
    /// Begins a pack of so many objects, each of which is added once.
    pub(crate) fn create(path: &Path, objects: usize) -> io::Result<Self> {
        let count = u32::try_from(objects).map_err(|_| io::Error::other("more objects than a pack holds"))?;
        let mut this = Self {
            file: File::create(path)?,
            digest: Sha1::new(),
            pending: Vec::with_capacity(BUFFER),
            offset: 0,
            promised: objects,
            entries: Vec::with_capacity(objects),
            compress: Compress::new(Compression::BEST_SPEED),
            deflated: Vec::new(),
        };
        this.put(b"PACK\0\0\0\x02")?;
        this.put(&count.to_be_bytes())?;
        Ok(this)
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, id: ObjectId, kind: Kind, content: &[u8]) -> io::Result<()> {
        let mut deflated = std::mem::take(&mut self.deflated);
        // Room for what does not compress: the fastest level spends up to nine bits on a byte.
        deflated.resize(content.len() + content.len() / 7 + 64, 0);
        self.compress.reset();
        match self.compress.compress(content, &mut deflated, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => {}
            Ok(status) => return Err(io::Error::other(format!("the compressed stream did not end ({status:?})"))),
            Err(error) => return Err(io::Error::other(error)),
        }
        let length = usize::try_from(self.compress.total_out()).unwrap_or(usize::MAX).min(deflated.len());
        let at = self.offset;
        let head = header(kind, content.len() as u64);
        let mut checksum = crc32fast::Hasher::new();
        for part in [&head[..], &deflated[..length]] {
            checksum.update(part);
            self.put(part)?;
        }
        self.entries.push((id, checksum.finalize(), at));
        self.deflated = deflated;
        Ok(())
    }

    /// Ends the pack and writes its index; both are on the disk then.
    pub(crate) fn finish(mut self, index: &Path) -> io::Result<()> {
        if self.entries.len() != self.promised {
            return Err(io::Error::other(format!("{} objects instead of {}", self.entries.len(), self.promised)));
        }
        self.flush()?;
        let sum: [u8; 20] = self.digest.finalize().into();
        self.file.write_all(&sum)?;
        self.file.sync_data()?;
        self.entries.sort_unstable();
        let mut file = File::create(index)?;
        file.write_all(&index_of(&self.entries, sum))?;
        file.sync_data()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.digest.update(&self.pending);
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

/// Kind and size: four bits of the size in the first byte, seven in each that follows.
fn header(kind: Kind, size: u64) -> Vec<u8> {
    let number: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut out = vec![(number << 4) | (size & 0x0f) as u8];
    let mut rest = size >> 4;
    while rest > 0 {
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        out.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    out
}

/// The index, version 2, of entries sorted by id.
fn index_of(entries: &[(ObjectId, u32, u64)], pack_sum: [u8; 20]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_100 + entries.len() * 28);
    out.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut at = 0;
    for first in 0..=u8::MAX {
        at += entries[at..].iter().take_while(|(id, ..)| id.as_slice()[0] == first).count();
        // A pack holds no more objects than 32 bits count.
        out.extend_from_slice(&(at as u32).to_be_bytes());
    }
    for (id, ..) in entries {
        out.extend_from_slice(id.as_slice());
    }
    for (_, checksum, _) in entries {
        out.extend_from_slice(&checksum.to_be_bytes());
    }
    let mut large = Vec::new();
    for (.., offset) in entries {
        let small = u32::try_from(*offset).ok().filter(|offset| offset & 0x8000_0000 == 0);
        let field = small.unwrap_or_else(|| {
            large.push(*offset);
            0x8000_0000 | (large.len() - 1) as u32
        });
        out.extend_from_slice(&field.to_be_bytes());
    }
    for offset in large {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(&pack_sum);
    let sum: [u8; 20] = Sha1::digest(&out).into();
    out.extend_from_slice(&sum);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_format() {
        assert_eq!(header(Kind::Commit, 0), [0x10]);
        assert_eq!(header(Kind::Blob, 15), [0x3f]);
        assert_eq!(header(Kind::Blob, 16), [0xb0, 0x01]);
        assert_eq!(header(Kind::Tree, 0x1234), [0xa4, 0xa3, 0x02]);
    }

    #[test]
    fn offsets_beyond_two_gigabytes_go_to_the_second_table() {
        let id = ObjectId::null(gix::hash::Kind::Sha1);
        let index = index_of(&[(id, 7, 5_000_000_000)], [9; 20]);
        let table = 8 + 1_024 + 20 + 4;
        assert_eq!(index[table..table + 4], [0x80, 0, 0, 0]);
        assert_eq!(index[table + 4..table + 12], 5_000_000_000_u64.to_be_bytes());
    }

    #[test]
    fn a_pack_that_misses_an_object_is_not_finished() {
        let folder = tempfile::TempDir::new().expect("temporary folder");
        let writer = PackWriter::create(&folder.path().join("a"), 1).expect("begins");
        assert!(writer.finish(&folder.path().join("b")).is_err());
    }
}
