//! Reading packs: chains of deltas resolved with a bounded cache, sizes checked before anything is inflated.

use crate::loose::too_large;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::odb::pack;
use gix::zlib::{Decompress, FlushDecompress, Status};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

/// The largest object that is read, in bytes of content.
pub(crate) const LARGEST_OBJECT: u64 = 64 << 20;
/// What the cache of delta bases may hold, in bytes of content.
const LARGEST_CACHE: usize = 40 << 20;
/// The longest chain of deltas; git itself makes none longer than 4,095.
const LONGEST_CHAIN: usize = 4_096;
/// The most bytes that one object's chain may produce on the way.
const MOST_WORK: u64 = 2 << 30;
/// Where the first object of a pack stands.
const FIRST_OFFSET: u64 = 12;

/// One pack and its index, both mapped.
pub(crate) struct Pack {
    index: pack::index::File,
    data: pack::data::File,
    /// Offset and position in the index, by offset; made when it is first asked for.
    by_offset: OnceLock<Vec<(u64, u32)>>,
}

/// An entry as it stands in a pack.
pub(crate) struct Raw<'a> {
    pub(crate) kind: RawKind,
    /// The size that the entry's header states: of the content, or of the delta.
    pub(crate) size: u64,
    /// The zlib stream.
    pub(crate) compressed: &'a [u8],
}

/// Content, or a delta against the object at an offset of the same pack.
pub(crate) enum RawKind {
    Whole(Kind),
    Delta { base: u64 },
}

impl Pack {
    /// Opens a pack by its index file; both must be regular files and not links.
    pub(crate) fn open(index: &Path) -> Result<Self, String> {
        let data = index.with_extension("pack");
        for path in [index, &data] {
            let found = fs::symlink_metadata(path).map_err(|error| format!("unreadable pack: {error}"))?;
            if !found.is_file() {
                return Err("pack that is no regular file".into());
            }
        }
        let index =
            pack::index::File::at(index, HashKind::Sha1).map_err(|error| format!("unreadable pack: {error}"))?;
        let data = pack::data::File::at(&data, HashKind::Sha1).map_err(|error| format!("unreadable pack: {error}"))?;
        Ok(Self { index, data, by_offset: OnceLock::new() })
    }

    /// The length of the pack, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.data.pack_end() as u64
    }

    /// What is wrong with pack and index as wholes, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let (indexed, packed) = (self.index.num_objects(), self.data.num_objects());
        if indexed != packed {
            return Some(format!("the pack holds {packed} objects and its index names {indexed}"));
        }
        let first = self.by_offset().first().map_or(self.data.pack_end() as u64, |(offset, _)| *offset);
        (first != FIRST_OFFSET).then(|| "bytes before the first object".to_owned())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = (ObjectId, u64)> {
        (0..self.index.num_objects())
            .map(|at| (self.index.oid_at_index(at).to_owned(), self.index.pack_offset_at_index(at)))
    }

    pub(crate) fn find(&self, id: &gix::oid) -> Option<u64> {
        self.index.lookup(id).map(|at| self.index.pack_offset_at_index(at))
    }

    fn by_offset(&self) -> &[(u64, u32)] {
        self.by_offset.get_or_init(|| {
            let mut entries: Vec<(u64, u32)> =
                (0..self.index.num_objects()).map(|at| (self.index.pack_offset_at_index(at), at)).collect();
            entries.sort_unstable();
            entries
        })
    }

    /// The id of the object that starts at an offset.
    #[cfg(feature = "git")]
    pub(crate) fn id_at(&self, offset: u64) -> Option<ObjectId> {
        let at = self.by_offset().binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        Some(self.index.oid_at_index(self.by_offset()[at].1).to_owned())
    }

    /// Where the entry after this one starts, or the trailer.
    fn end_of(&self, offset: u64) -> u64 {
        let next = self.by_offset().partition_point(|(other, _)| *other <= offset);
        self.by_offset().get(next).map_or(self.data.pack_end() as u64, |(offset, _)| *offset)
    }

    fn entry(&self, offset: u64) -> Result<pack::data::Entry, String> {
        // The reader below slices by offsets, so one beyond the data must not reach it.
        if offset >= self.data.pack_end() as u64 {
            return Err("lies beyond the end of its pack".into());
        }
        let entry = self.data.entry(offset).map_err(|error| format!("unreadable: {error}"))?;
        if entry.decompressed_size > LARGEST_OBJECT {
            return Err(too_large(entry.decompressed_size));
        }
        Ok(entry)
    }

    fn base(&self, offset: u64, entry: &pack::data::Entry) -> Result<Option<u64>, String> {
        use pack::data::entry::Header;
        match entry.header {
            Header::OfsDelta { base_distance } => Header::verified_base_pack_offset(offset, base_distance)
                .map(Some)
                .ok_or_else(|| "is a delta with an impossible base".into()),
            Header::RefDelta { base_id } => {
                self.find(&base_id).map(Some).ok_or_else(|| format!("is a delta against {base_id}, which is missing"))
            }
            Header::Commit | Header::Tree | Header::Blob | Header::Tag => Ok(None),
        }
    }

    fn stream(&self, range: Range<u64>) -> Result<&[u8], String> {
        self.data.entry_slice(range).ok_or_else(|| "lies beyond the end of its pack".into())
    }

    /// The entry at an offset, as it stands.
    #[cfg(feature = "git")]
    pub(crate) fn raw(&self, offset: u64) -> Result<Raw<'_>, String> {
        let entry = self.entry(offset)?;
        let kind = match (entry.header.as_kind(), self.base(offset, &entry)?) {
            (_, Some(base)) => RawKind::Delta { base },
            (Some(kind), None) => RawKind::Whole(kind),
            (None, None) => return Err("is of an unknown kind".into()),
        };
        let compressed = self.stream(entry.data_offset..self.end_of(offset))?;
        Ok(Raw { kind, size: entry.decompressed_size, compressed })
    }
}

/// Inflates zlib streams; kept for its state, which is costly to make.
#[derive(Default)]
pub(crate) struct Inflater(Decompress);

impl Inflater {
    /// Inflates the first bytes of a stream; gives how many.
    pub(crate) fn start(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, String> {
        self.0.reset();
        match self.0.decompress(input, out, FlushDecompress::None) {
            Ok(_) => Ok(usize::try_from(self.0.total_out()).unwrap_or(0)),
            Err(error) => Err(format!("unreadable: {error}")),
        }
    }

    /// Inflates a whole stream that must give exactly `size` bytes; gives the length of the stream.
    pub(crate) fn exactly(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<usize, String> {
        // One byte more than promised, so that a stream which goes on is noticed.
        out.clear();
        out.resize(size + 1, 0);
        self.0.reset();
        let status = self.0.decompress(input, out, FlushDecompress::Finish);
        let status = status.map_err(|error| format!("unreadable: {error}"))?;
        if status != Status::StreamEnd || self.0.total_out() != size as u64 {
            return Err(format!("does not inflate to the {size} bytes that its header states"));
        }
        out.truncate(size);
        usize::try_from(self.0.total_in()).map_err(|_| "is too long".into())
    }
}

/// An object's place: which pack, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot {
    pub(crate) pack: u32,
    pub(crate) offset: u64,
}

#[derive(Clone)]
struct Content {
    kind: Kind,
    bytes: Rc<Vec<u8>>,
}

/// Reads objects out of packs.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) inflater: Inflater,
    /// Whether bytes between two objects are an error.
    strict: bool,
    /// What may be inflated in all, and what has been; `None` for what is trusted.
    most: Option<u64>,
    spent: u64,
    delta: Vec<u8>,
    cache: HashMap<Spot, Content>,
    cached: VecDeque<Spot>,
    cached_bytes: usize,
}

impl Reader {
    /// A reader that takes bytes between objects for an error: they could hold anything.
    ///
    /// It inflates no more than `most` bytes in all, deltas on the way included.
    pub(crate) fn strict(most: u64) -> Self {
        Self { strict: true, most: Some(most), ..Self::default() }
    }

    /// Reads the object at a place into `out`. The digest is the caller's business.
    pub(crate) fn read(&mut self, packs: &[Pack], spot: Spot, out: &mut Vec<u8>) -> Result<Kind, String> {
        let content = self.resolve(packs, spot)?;
        out.clear();
        match Rc::try_unwrap(content.bytes) {
            Ok(bytes) => *out = bytes,
            Err(shared) => out.extend_from_slice(&shared),
        }
        Ok(content.kind)
    }

    fn resolve(&mut self, packs: &[Pack], spot: Spot) -> Result<Content, String> {
        let pack = packs.get(spot.pack as usize).ok_or("is in no pack that is open")?;
        let mut chain = Vec::new();
        let mut at = spot;
        let mut content = loop {
            if let Some(hit) = self.cache.get(&at) {
                break hit.clone();
            }
            let entry = pack.entry(at.offset)?;
            match pack.base(at.offset, &entry)? {
                Some(base) => {
                    chain.push((at, entry));
                    if chain.len() > LONGEST_CHAIN {
                        return Err("is the end of an endless chain of deltas".into());
                    }
                    at.offset = base;
                }
                None => {
                    let kind = entry.header.as_kind().ok_or("is of an unknown kind")?;
                    let mut bytes = Vec::new();
                    self.inflate(pack, at.offset, &entry, &mut bytes)?;
                    let content = Content { kind, bytes: Rc::new(bytes) };
                    // Commits are hardly ever the base of anything, and would drive out what is.
                    if kind != Kind::Commit || !chain.is_empty() {
                        self.keep(at, &content);
                    }
                    break content;
                }
            }
        };
        let mut work = 0;
        // The deltas are inflated one by one as they are applied, so that a long chain of large ones is never held.
        while let Some((at, entry)) = chain.pop() {
            let mut delta = std::mem::take(&mut self.delta);
            let applied =
                self.inflate(pack, at.offset, &entry, &mut delta).and_then(|()| apply(&content.bytes, &delta));
            self.delta = delta;
            let bytes = applied?;
            work += bytes.len() as u64;
            self.spend(bytes.len() as u64)?;
            if work > MOST_WORK {
                return Err("takes a chain of deltas too costly to follow".into());
            }
            content = Content { kind: content.kind, bytes: Rc::new(bytes) };
            self.keep(at, &content);
        }
        // A large delta is not worth keeping the memory for.
        if self.delta.capacity() > LARGEST_CACHE / 8 {
            self.delta = Vec::new();
        }
        Ok(content)
    }

    fn inflate(
        &mut self,
        pack: &Pack,
        offset: u64,
        entry: &pack::data::Entry,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let size = usize::try_from(entry.decompressed_size).map_err(|_| too_large(entry.decompressed_size))?;
        self.spend(entry.decompressed_size)?;
        let end = if self.strict { pack.end_of(offset) } else { pack.data.pack_end() as u64 };
        let stream = pack.stream(entry.data_offset..end)?;
        let consumed = self.inflater.exactly(stream, size, out)?;
        if self.strict && consumed != stream.len() {
            return Err("is followed by bytes that belong to no object".into());
        }
        Ok(())
    }

    /// Counts what is inflated.
    pub(crate) fn spend(&mut self, bytes: u64) -> Result<(), String> {
        self.spent = self.spent.saturating_add(bytes);
        match self.most {
            Some(most) if self.spent > most => {
                Err(format!("is not read: all objects together inflate to more than {most} bytes"))
            }
            _ => Ok(()),
        }
    }

    fn keep(&mut self, spot: Spot, content: &Content) {
        if content.bytes.len() > LARGEST_CACHE / 8 {
            return;
        }
        while self.cached_bytes + content.bytes.len() > LARGEST_CACHE {
            let Some(oldest) = self.cached.pop_front() else { break };
            if let Some(gone) = self.cache.remove(&oldest) {
                self.cached_bytes -= gone.bytes.len();
            }
        }
        if self.cache.insert(spot, content.clone()).is_none() {
            self.cached_bytes += content.bytes.len();
            self.cached.push_back(spot);
        }
    }
}

/// Applies a delta to its base.
pub(crate) fn apply(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, String> {
    const BROKEN: &str = "is a broken delta";
    let mut rest = delta;
    if size(&mut rest).ok_or(BROKEN)? != base.len() as u64 {
        return Err("is a delta against a base of another size".into());
    }
    let length = size(&mut rest).ok_or(BROKEN)?;
    if length > LARGEST_OBJECT {
        return Err(too_large(length));
    }
    let length = usize::try_from(length).map_err(|_| too_large(length))?;
    let mut out = Vec::with_capacity(length);
    while let Some((&command, mut tail)) = rest.split_first() {
        let piece = if command & 0x80 == 0 {
            if command == 0 {
                return Err(BROKEN.into());
            }
            let (piece, after) = tail.split_at_checked(usize::from(command)).ok_or(BROKEN)?;
            tail = after;
            piece
        } else {
            let mut numbers = [0_u8; 7];
            for (bit, number) in numbers.iter_mut().enumerate() {
                if command & (1 << bit) != 0 {
                    let (&byte, after) = tail.split_first().ok_or(BROKEN)?;
                    (*number, tail) = (byte, after);
                }
            }
            let [a, b, c, d, x, y, z] = numbers;
            let start = u32::from_le_bytes([a, b, c, d]) as usize;
            let count = match u32::from_le_bytes([x, y, z, 0]) as usize {
                0 => 0x1_0000,
                count => count,
            };
            base.get(start..start.saturating_add(count)).ok_or(BROKEN)?
        };
        if out.len() + piece.len() > length {
            return Err(BROKEN.into());
        }
        out.extend_from_slice(piece);
        rest = tail;
    }
    if out.len() == length { Ok(out) } else { Err(BROKEN.into()) }
}

/// A size in a delta's head: seven bits a byte, the lowest first.
fn size(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0_u32);
    loop {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 57)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_delta_copies_and_inserts() {
        // Base of 5, result of 6: copy 2 from 1, insert "xyz", copy 1 from 0.
        let delta = [5, 6, 0x91, 1, 2, 3, b'x', b'y', b'z', 0x90, 1];
        assert_eq!(apply(b"abcde", &delta).expect("applies"), b"bcxyza");
        assert!(apply(b"abcd", &delta).is_err(), "a base of another size");
        assert!(apply(b"abcde", &delta[..9]).is_err(), "too short a result");
        assert!(apply(b"abcde", &[5, 1, 0x91, 5, 1]).is_err(), "a copy beyond the base");
        assert!(apply(b"abcde", &[5, 1, 0]).is_err(), "the reserved command");
    }

    #[test]
    fn a_delta_that_promises_too_much_is_refused_before_it_is_made() {
        let delta = [0, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(apply(b"", &delta).expect_err("refused").contains("more than"));
    }

    proptest! {
        #[test]
        fn no_delta_makes_a_panic(base in proptest::collection::vec(any::<u8>(), 0..64),
                                  delta in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = apply(&base, &delta);
        }
    }
}
