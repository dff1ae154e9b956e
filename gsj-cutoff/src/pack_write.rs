//! Writing one pack and its index, byte for byte the same for the same objects in the same order.

use crate::error::CutoffError;
use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::stream::deflate::{Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use sha1::{Digest as _, Sha1};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Buffered bytes of a pack before they are written.
const BUFFER: usize = 1 << 18;

/// Writes one pack and its index: for the objects of a cut, and for whoever makes repositories whose bytes must be the same
/// everywhere. Nothing is synced to the disk.
pub struct PackWriter {
    path: PathBuf,
    out: Hashed,
    promised: usize,
    entries: Vec<(ObjectId, u32, u64)>,
    /// Made when they are first needed: each takes some hundred kilobytes.
    compress: Option<Compress>,
    store: Option<Compress>,
    deflated: Vec<u8>,
}

/// A file whose bytes are digested as they are written.
struct Hashed {
    file: File,
    digest: Sha1,
    pending: Vec<u8>,
    offset: u64,
}

impl Hashed {
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

impl fmt::Debug for PackWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackWriter").field("path", &self.path).field("promised", &self.promised).finish_non_exhaustive()
    }
}

impl PackWriter {
    /// Begins a pack in a folder that will hold so many objects, each added once.
    ///
    /// # Errors
    /// Fails when the folder cannot be written to or holds an unfinished pack, and for more objects than a pack holds.
    pub fn begin(folder: &Path, objects: usize) -> Result<Self, CutoffError> {
        let path = folder.join("pack-unfinished.pack");
        let fault = |error| CutoffError::file("write", &path, error);
        let file = create(&path).map_err(fault)?;
        let mut out = Hashed { file, digest: Sha1::new(), pending: Vec::with_capacity(BUFFER), offset: 0 };
        let count = u32::try_from(objects).map_err(|_| fault(io::Error::other("more objects than a pack holds")))?;
        out.put(&[&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat()).map_err(fault)?;
        Ok(Self {
            path: path.clone(),
            out,
            promised: objects,
            entries: Vec::with_capacity(objects),
            compress: None,
            store: None,
            deflated: Vec::new(),
        })
    }

    /// Adds an object whole, compressed or stored as it is. The id is taken on trust.
    ///
    /// # Errors
    /// Fails when the content cannot be compressed or the pack not be written.
    pub fn add(
        &mut self,
        id: ObjectId,
        kind: Kind,
        content: &[u8],
        compression: Compression,
    ) -> Result<(), CutoffError> {
        let mut deflated = std::mem::take(&mut self.deflated);
        let compress = if compression == Compression::NONE { &mut self.store } else { &mut self.compress };
        let compress = compress.get_or_insert_with(|| Compress::new(compression));
        let done = deflate(compress, content, &mut deflated)
            .map_err(|error| CutoffError::object(id, format!("cannot be compressed: {error}")))
            .and_then(|()| self.entry(id, type_number(kind), content.len() as u64, &[], &deflated));
        self.deflated = deflated;
        done
    }

    /// Where the next entry will stand.
    pub(crate) fn offset(&self) -> u64 {
        self.out.offset
    }

    /// Adds an object as it stands in another pack, or a delta whose base stands at an offset of this one.
    pub(crate) fn take(
        &mut self,
        id: ObjectId,
        kind: Option<Kind>,
        base: u64,
        size: u64,
        compressed: &[u8],
    ) -> Result<(), CutoffError> {
        match kind {
            Some(kind) => self.entry(id, type_number(kind), size, &[], compressed),
            None => self.entry(id, 6, size, &distance(self.out.offset - base), compressed),
        }
    }

    fn entry(
        &mut self,
        id: ObjectId,
        number: u8,
        size: u64,
        base: &[u8],
        compressed: &[u8],
    ) -> Result<(), CutoffError> {
        let fault = |error| CutoffError::file("write", &self.path, error);
        let at = self.out.offset;
        let head = header(number, size);
        let mut checksum = crc32fast::Hasher::new();
        for part in [&head, base, compressed] {
            checksum.update(part);
            self.out.put(part).map_err(fault)?;
        }
        self.entries.push((id, checksum.finalize(), at));
        Ok(())
    }

    /// Ends the pack, writes its index, and names both files after the pack's digest. Gives the paths, the pack's first.
    ///
    /// # Errors
    /// Fails when another number of objects was added than promised, and when a file cannot be written.
    pub fn finish(mut self) -> Result<[PathBuf; 2], CutoffError> {
        let fault = |error| CutoffError::file("write", &self.path, error);
        if self.entries.len() != self.promised {
            return Err(fault(io::Error::other(format!(
                "{} objects instead of {}",
                self.entries.len(),
                self.promised
            ))));
        }
        self.out.flush().map_err(fault)?;
        let sum: [u8; 20] = self.out.digest.finalize().into();
        self.out.file.write_all(&sum).map_err(fault)?;
        self.entries.sort_unstable();
        let stem = format!("pack-{}", hex::encode(sum));
        let pack = self.path.with_file_name(format!("{stem}.pack"));
        let index = self.path.with_file_name(format!("{stem}.idx"));
        fs::rename(&self.path, &pack).map_err(fault)?;
        create(&index)
            .and_then(|mut file| file.write_all(&index_of(&self.entries, sum)))
            .map_err(|error| CutoffError::file("write", &index, error))?;
        Ok([pack, index])
    }
}

/// A new file that its owner may read, whatever the umask.
fn create(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    Ok(file)
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

fn type_number(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// Kind and size: four bits of the size in the first byte, seven in each that follows.
fn header(number: u8, size: u64) -> Vec<u8> {
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

/// How far back the base of a delta begins: seven bits a byte, the highest first, one added at each step.
fn distance(mut value: u64) -> Vec<u8> {
    let mut out = vec![(value & 0x7f) as u8];
    while value >= 0x80 {
        value = (value >> 7) - 1;
        out.push(0x80 | (value & 0x7f) as u8);
    }
    out.reverse();
    out
}

fn deflate(compress: &mut Compress, content: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    // Room for what does not compress: the fastest level spends up to nine bits on a byte.
    out.resize(content.len() + content.len() / 7 + 64, 0);
    compress.reset();
    match compress.compress(content, out, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => {
            out.truncate(usize::try_from(compress.total_out()).map_err(|error| error.to_string())?);
            Ok(())
        }
        Ok(status) => Err(format!("the stream did not end ({status:?})")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::pack::{Pack, Reader, Spot};
    use proptest::prelude::*;

    #[test]
    fn headers_and_distances_are_those_of_the_format() {
        assert_eq!(header(1, 0), [0x10]);
        assert_eq!(header(3, 15), [0x3f]);
        assert_eq!(header(3, 16), [0xb0, 0x01]);
        assert_eq!(header(2, 0x1234), [0xa4, 0xa3, 0x02]);
        assert_eq!(distance(1), [1]);
        assert_eq!(distance(127), [127]);
        assert_eq!(distance(128), [0x80, 0]);
        assert_eq!(distance(16_511), [0xff, 0x7f]);
        assert_eq!(distance(16_512), [0x80, 0x80, 0]);
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
        let writer = PackWriter::begin(folder.path(), 1).expect("begins");
        assert!(writer.finish().is_err());
    }

    proptest! {
        #[test]
        fn what_is_packed_reads_back(contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3_000), 1..6), stored: bool) {
            let level = if stored { Compression::NONE } else { Compression::BEST_SPEED };
            let folder = tempfile::TempDir::new().expect("temporary folder");
            let id = |content: &[u8]| gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, content).expect("digests");
            let mut writer = PackWriter::begin(folder.path(), contents.len()).expect("begins");
            for content in &contents {
                writer.add(id(content), Kind::Blob, content, level).expect("adds");
            }
            let [_, index] = writer.finish().expect("finishes");
            let packs = [Pack::open(&index).expect("opens")];
            prop_assert_eq!(packs[0].fault(), None);
            let mut reader = Reader::strict(Limits::of(u64::MAX));
            let mut out = Vec::new();
            for content in &contents {
                let offset = packs[0].find(&id(content)).expect("is indexed");
                let kind = reader.read(&packs, Spot { pack: 0, offset }, &mut out).expect("reads");
                prop_assert_eq!((kind, &out), (Kind::Blob, content));
            }
        }
    }
}
