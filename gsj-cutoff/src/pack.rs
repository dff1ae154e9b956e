//! Reading packs: chains of deltas resolved with a bounded cache, sizes checked before anything is inflated.

use crate::limits::{BIG, Limits, Permit};
use crate::lookup::Lookup;
use crate::loose::too_large;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::odb::pack;
use gix::zlib::{Decompress, FlushDecompress, Status};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::Path;

use std::sync::{Arc, OnceLock};

/// The largest object that is read, in bytes of content.
pub(crate) const LARGEST_OBJECT: u64 = 64 << 20;
/// The largest delta that is applied; git makes none of more than half its object.
const LARGEST_DELTA: u64 = LARGEST_OBJECT / 2;
/// The longest chain of deltas; git itself makes none longer than 4,095.
const LONGEST_CHAIN: usize = 4_096;
/// What looking at one entry of a chain costs, in bytes inflated.
const STEP: u64 = 512;
/// How many ends of too long chains are remembered.
const MOST_HOPELESS: usize = 1 << 16;
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
    /// Finds ids quickly; made when many will be looked for.
    lookup: OnceLock<Lookup>,
}

/// An entry as it stands in a pack.
#[cfg(feature = "git")]
pub(crate) struct Raw<'a> {
    pub(crate) kind: RawKind,
    /// The size that the entry's header states: of the content, or of the delta.
    pub(crate) size: u64,
    /// The zlib stream.
    pub(crate) compressed: &'a [u8],
}

/// Content, or a delta against the object at an offset of the same pack.
#[cfg(feature = "git")]
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
        Ok(Self { index, data, by_offset: OnceLock::new(), lookup: OnceLock::new() })
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
        self.position(id).map(|at| self.index.pack_offset_at_index(at))
    }

    /// Where in the index an object is named.
    pub(crate) fn position(&self, id: &gix::oid) -> Option<u32> {
        match self.lookup.get() {
            Some(lookup) => {
                let found = lookup.find(id, |at| self.index.oid_at_index(at as u32).to_owned());
                found.and_then(|at| u32::try_from(at).ok())
            }
            None => self.index.lookup(id),
        }
    }

    /// Prepares for looking up many ids.
    #[cfg(feature = "git")]
    pub(crate) fn prepare(&self) {
        let ids = (0..self.index.num_objects()).map(|at| self.index.oid_at_index(at));
        self.lookup.get_or_init(|| Lookup::of(ids));
    }

    /// Offset and position in the index of every object, by offset.
    pub(crate) fn by_offset(&self) -> &[(u64, u32)] {
        self.by_offset.get_or_init(|| {
            let mut entries: Vec<(u64, u32)> =
                (0..self.index.num_objects()).map(|at| (self.index.pack_offset_at_index(at), at)).collect();
            entries.sort_unstable();
            entries
        })
    }

    /// The id at a position of the index, which must be one that the index gave.
    #[cfg(feature = "git")]
    pub(crate) fn id(&self, position: u32) -> ObjectId {
        self.index.oid_at_index(position).to_owned()
    }

    /// How many objects start before an offset. Looks first around `hint`, the last answer: readers move in short steps.
    pub(crate) fn rank(&self, offset: u64, hint: usize) -> usize {
        let entries = self.by_offset();
        let (mut low, mut high) = (0, entries.len());
        let mut step = 1;
        let hint = hint.min(high);
        if entries.get(hint).is_some_and(|(other, _)| *other < offset) {
            low = hint + 1;
            while let Some((other, _)) = entries.get(hint + step) {
                if *other >= offset {
                    high = hint + step;
                    break;
                }
                low = hint + step + 1;
                step *= 2;
            }
        } else {
            high = hint;
            while step <= hint {
                if entries[hint - step].0 < offset {
                    low = hint - step + 1;
                    break;
                }
                high = hint - step;
                step *= 2;
            }
        }
        low + entries[low..high].partition_point(|(other, _)| *other < offset)
    }

    /// Where the first entry after an offset starts, or the trailer.
    fn end_of(&self, offset: u64, hint: &mut usize) -> u64 {
        *hint = self.rank(offset + 1, *hint);
        self.by_offset().get(*hint).map_or(self.data.pack_end() as u64, |(offset, _)| *offset)
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

    /// The entry at an offset, as it stands. It is looked for around `hint` among the others.
    #[cfg(feature = "git")]
    pub(crate) fn raw(&self, offset: u64, hint: &mut usize) -> Result<Raw<'_>, String> {
        let entry = self.entry(offset)?;
        let kind = match (entry.header.as_kind(), self.base(offset, &entry)?) {
            (_, Some(base)) => RawKind::Delta { base },
            (Some(kind), None) => RawKind::Whole(kind),
            (None, None) => return Err("is of an unknown kind".into()),
        };
        let compressed = self.stream(entry.data_offset..self.end_of(offset, hint))?;
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

/// An object's content; shared with the cache.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) kind: Kind,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// How many deltas it took: what is too long is so whatever was in the cache.
    depth: usize,
}

/// Mixes pack and offset of a [`Spot`]; what a pack can do with chosen offsets is bounded by the cache's size.
#[derive(Default)]
struct SpotHasher(u64);

impl Hasher for SpotHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0.rotate_left(32) ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Reads objects out of packs.
pub(crate) struct Reader {
    pub(crate) inflater: Inflater,
    /// Whether bytes between two objects are an error.
    strict: bool,
    limits: Limits,
    /// Held while anything big is in hand.
    permit: Option<Permit>,
    delta: Vec<u8>,
    cache: HashMap<Spot, Content, BuildHasherDefault<SpotHasher>>,
    cached: VecDeque<Spot>,
    cached_bytes: usize,
    /// The last object that was too big for the cache; the next delta often stands on it.
    last: Option<(Spot, Content)>,
    /// Ends of chains that are too long; whatever stands on one of them is so too.
    hopeless: HashSet<Spot, BuildHasherDefault<SpotHasher>>,
    hint: usize,
}

impl Reader {
    /// A reader of what is trusted to be a repository.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            inflater: Inflater::default(),
            strict: false,
            limits,
            permit: None,
            delta: Vec::new(),
            cache: HashMap::default(),
            cached: VecDeque::new(),
            cached_bytes: 0,
            last: None,
            hopeless: HashSet::default(),
            hint: 0,
        }
    }

    /// A reader that takes bytes between objects for an error: they could hold anything.
    pub(crate) fn strict(limits: Limits) -> Self {
        Self { strict: true, ..Self::new(limits) }
    }

    /// Reads the object at a place into `out`. The digest is the caller's business.
    pub(crate) fn read(&mut self, packs: &[Pack], spot: Spot, out: &mut Vec<u8>) -> Result<Kind, String> {
        self.begin(out);
        let content = self.resolve(packs, spot)?;
        self.last = None;
        match Arc::try_unwrap(content.bytes) {
            Ok(bytes) => *out = bytes,
            Err(shared) => out.extend_from_slice(&shared),
        }
        Ok(content.kind)
    }

    /// Gives back what the last object took.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        out.clear();
        for buffer in [out, &mut self.delta] {
            if buffer.capacity() > BIG {
                *buffer = Vec::new();
            }
        }
        // Whatever was big is gone, but for the one object that the next may stand on.
        if self.last.is_none() {
            self.permit = None;
        }
    }

    /// Finds the content of the object at a place.
    pub(crate) fn resolve(&mut self, packs: &[Pack], spot: Spot) -> Result<Content, String> {
        let pack = packs.get(spot.pack as usize).ok_or("is in no pack that is open")?;
        let last = self.last.take();
        let mut chain = Vec::new();
        let mut at = spot;
        let mut content = loop {
            if let Some(hit) = self.cache.get(&at) {
                break Some(hit.clone());
            }
            if let Some((_, hit)) = last.as_ref().filter(|(spot, _)| *spot == at) {
                self.last = Some((at, hit.clone()));
                break Some(hit.clone());
            }
            let entry = pack.entry(at.offset)?;
            let base = pack.base(at.offset, &entry)?;
            chain.push((at, entry));
            self.limits.spend(STEP)?;
            match base {
                Some(base) => at.offset = base,
                None => break None,
            }
            if chain.len() > LONGEST_CHAIN || self.hopeless.contains(&at) {
                return Err(self.endless(spot));
            }
        };
        let deltas = content.as_ref().map_or_else(|| chain.len().saturating_sub(1), |hit| hit.depth + chain.len());
        if deltas > LONGEST_CHAIN {
            return Err(self.endless(spot));
        }
        // The last big object is either in hand now or gone.
        drop(last);
        let mut work = 0;
        // The deltas are inflated one by one as they are applied, so that a long chain of large ones is never held.
        while let Some((at, entry)) = chain.pop() {
            let next = match content.take() {
                None => {
                    let kind = entry.header.as_kind().ok_or("is of an unknown kind")?;
                    let mut bytes = Vec::new();
                    self.inflate(pack, at.offset, &entry, &mut bytes)?;
                    Content { kind, bytes: Arc::new(bytes), depth: 0 }
                }
                Some(base) => {
                    if entry.decompressed_size > LARGEST_DELTA {
                        return Err(format!(
                            "is a delta of {} bytes, which git makes none of",
                            entry.decompressed_size
                        ));
                    }
                    let mut delta = std::mem::take(&mut self.delta);
                    let applied = self.inflate(pack, at.offset, &entry, &mut delta).and_then(|()| {
                        self.permit(promised(&delta).unwrap_or(0));
                        apply(&base.bytes, &delta)
                    });
                    self.delta = delta;
                    let bytes = applied?;
                    work += bytes.len() as u64;
                    self.limits.spend(bytes.len() as u64)?;
                    if work > MOST_WORK {
                        return Err("takes a chain of deltas too costly to follow".into());
                    }
                    Content { kind: base.kind, bytes: Arc::new(bytes), depth: base.depth + 1 }
                }
            };
            // Commits are hardly ever the base of anything, and would drive out what is.
            if next.kind != Kind::Commit || !chain.is_empty() {
                self.keep(at, &next);
            }
            content = Some(next);
        }
        content.ok_or_else(|| "is not there".into())
    }

    fn endless(&mut self, spot: Spot) -> String {
        if self.hopeless.len() >= MOST_HOPELESS {
            self.hopeless.clear();
        }
        self.hopeless.insert(spot);
        "is the end of an endless chain of deltas".into()
    }

    fn inflate(
        &mut self,
        pack: &Pack,
        offset: u64,
        entry: &pack::data::Entry,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let size = usize::try_from(entry.decompressed_size).map_err(|_| too_large(entry.decompressed_size))?;
        self.limits.spend(entry.decompressed_size)?;
        self.permit(entry.decompressed_size);
        let end = if self.strict { pack.end_of(offset, &mut self.hint) } else { pack.data.pack_end() as u64 };
        let stream = pack.stream(entry.data_offset..end)?;
        let consumed = self.inflater.exactly(stream, size, out)?;
        if self.strict && consumed != stream.len() {
            return Err("is followed by bytes that belong to no object".into());
        }
        Ok(())
    }

    /// Waits until nobody else has anything big in hand, if this is big.
    pub(crate) fn permit(&mut self, bytes: u64) {
        if bytes > BIG as u64 && self.permit.is_none() {
            self.permit = Some(self.limits.permit());
        }
    }

    /// Counts what is inflated.
    pub(crate) fn spend(&self, bytes: u64) -> Result<(), String> {
        self.limits.spend(bytes)
    }

    fn keep(&mut self, spot: Spot, content: &Content) {
        let most = self.limits.cache();
        if content.bytes.len() > BIG.min(most / 4) {
            self.last = Some((spot, content.clone()));
            return;
        }
        while self.cached_bytes + content.bytes.len() > most {
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

/// The size of what a delta makes, as its head promises.
fn promised(delta: &[u8]) -> Option<u64> {
    let mut rest = delta;
    size(&mut rest)?;
    size(&mut rest)
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
