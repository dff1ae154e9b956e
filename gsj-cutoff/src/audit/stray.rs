//! Objects outside the object store's own order: packs without an index, bundles, unfinished and misplaced objects.
//!
//! Such a file is read from its first byte to its last and nothing of it is executed or kept. What one object may take
//! is bounded before it is inflated, and what all of them may take together is bounded by the file's size.

use super::walk;
use crate::error::CutoffError;
use crate::loose::{parse_header, too_large};
use crate::objects::Objects;
use crate::pack::{Inflater, apply};
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::Kind;
use gix::zlib::{Decompress, FlushDecompress, Status};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

/// The largest object that is looked at here, in bytes of content.
const LARGEST: u64 = 32 << 20;
/// What the cache of delta bases may hold, in bytes.
const LARGEST_CACHE: usize = 32 << 20;
/// The most objects of one file.
const MOST_OBJECTS: u32 = 1_000_000;
/// The longest head of a bundle, in bytes; a line for each of its refs.
const LONGEST_BUNDLE_HEAD: usize = 4 << 20;
/// The longest chain of deltas.
const LONGEST_CHAIN: usize = 4_096;
/// How often the deltas whose base was not known yet are tried again.
const MOST_ROUNDS: usize = 64;
/// What may be inflated in any case, and for each byte of the file, in bytes.
const WORK: (u64, u64) = (256 << 20, 64);

/// What kind of file holds objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bundle,
    Pack,
    Loose,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Pack => "pack that no index names",
            Self::Loose => "git object in another place",
        }
    }
}

/// A file of objects.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) form: Form,
    pub(crate) ids: Vec<ObjectId>,
    /// What could not be read.
    pub(crate) faults: Vec<String>,
}

/// Reads a file if it begins like a pack, a bundle or a loose object.
///
/// Deltas may stand on objects that the checkout has itself; those are read from `objects`.
pub(crate) fn read(path: &Path, objects: &mut impl Objects) -> Result<Option<Stray>, CutoffError> {
    let file = walk::open(path)?;
    let fault = |error| CutoffError::file("read", path, error);
    let length = file.metadata().map_err(fault)?.len();
    let mut head = [0_u8; 32];
    let filled = read_some(&file, &mut head, 0).map_err(fault)?;
    let head = &head[..filled];
    if head.starts_with(b"PACK") {
        return Ok(Some(pack(&file, 0, length, Form::Pack, objects)));
    }
    if head.starts_with(b"# v2 git bundle\n") || head.starts_with(b"# v3 git bundle\n") {
        let most = usize::try_from(length).unwrap_or(usize::MAX).min(LONGEST_BUNDLE_HEAD);
        let mut text = vec![0; most];
        let filled = read_some(&file, &mut text, 0).map_err(fault)?;
        // The refs end with an empty line.
        let Some(end) = text[..filled].windows(2).position(|pair| pair == b"\n\n") else {
            let faults = vec!["its list of refs does not end".to_owned()];
            return Ok(Some(Stray { form: Form::Bundle, ids: Vec::new(), faults }));
        };
        return Ok(Some(pack(&file, end as u64 + 2, length, Form::Bundle, objects)));
    }
    // The first two bytes of a zlib stream with a window of 32 KiB are a multiple of 31.
    if head.len() >= 2 && head[0] == 0x78 && (u16::from(head[0]) << 8 | u16::from(head[1])) % 31 == 0 {
        return loose(path, length);
    }
    Ok(None)
}

fn loose(path: &Path, length: u64) -> Result<Option<Stray>, CutoffError> {
    let mut inflater = Inflater::default();
    let mut start = [0_u8; 32];
    let Some(compressed) = walk::read(path, LARGEST.min(length))? else {
        let faults = vec![too_large(length)];
        return Ok(Some(Stray { form: Form::Loose, ids: Vec::new(), faults }));
    };
    let Ok(filled) = inflater.start(&compressed, &mut start) else { return Ok(None) };
    let Some((kind, size, header)) = parse_header(&start[..filled]) else { return Ok(None) };
    let mut stray = Stray { form: Form::Loose, ids: Vec::new(), faults: Vec::new() };
    let size = match usize::try_from(size) {
        Ok(bytes) if size <= LARGEST => bytes,
        _ => {
            stray.faults.push(too_large(size));
            return Ok(Some(stray));
        }
    };
    let mut content = Vec::new();
    match inflater.exactly(&compressed, header + size, &mut content) {
        Ok(_) => stray.ids.extend(digest(kind, &content[header..])),
        Err(what) => stray.faults.push(format!("a {kind} that {what}")),
    }
    Ok(Some(stray))
}

fn digest(kind: Kind, content: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(HashKind::Sha1, kind, content).ok()
}

fn read_some(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[derive(Debug, Clone, Copy)]
enum Base {
    Whole(Kind),
    At(usize),
    Named(ObjectId),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    offset: u64,
    /// Where the zlib stream starts.
    data: u64,
    size: u64,
    base: Base,
}

type Content = (Kind, Rc<Vec<u8>>);

/// Reads bytes of a file in order, and zlib streams among them.
struct Cursor<'f> {
    file: &'f File,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where the unread part of the buffer starts.
    next: usize,
    inflate: Decompress,
}

impl<'f> Cursor<'f> {
    fn new(file: &'f File, at: u64, end: u64) -> Self {
        Self { file, at, end, buffer: Vec::new(), next: 0, inflate: Decompress::default() }
    }

    fn move_to(&mut self, at: u64) {
        (self.at, self.next) = (at, 0);
        self.buffer.clear();
    }

    /// The bytes that come next; empty at the end.
    fn fill(&mut self) -> Result<&[u8], String> {
        const CHUNK: u64 = 32 << 10;
        if self.next == self.buffer.len() {
            let want = usize::try_from(CHUNK.min(self.end.saturating_sub(self.at))).unwrap_or(0);
            self.buffer.resize(want, 0);
            let filled =
                read_some(self.file, &mut self.buffer, self.at).map_err(|error| format!("is unreadable: {error}"))?;
            self.buffer.truncate(filled);
            self.next = 0;
        }
        Ok(&self.buffer[self.next..])
    }

    fn skip(&mut self, count: usize) {
        self.next += count;
        self.at += count as u64;
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = *self.fill()?.first().ok_or("ends in the middle of an object")?;
        self.skip(1);
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Inflates a stream of `size` bytes, into `out` or nowhere.
    fn inflate(&mut self, size: u64, mut out: Option<&mut Vec<u8>>) -> Result<(), String> {
        let mut piece = vec![0_u8; 32 << 10];
        self.inflate.reset();
        loop {
            let (input, produced, consumed) = (self.fill()?.len(), self.inflate.total_out(), self.inflate.total_in());
            let Self { inflate, buffer, next, .. } = self;
            let status = inflate
                .decompress(&buffer[*next..], &mut piece, FlushDecompress::None)
                .map_err(|error| format!("holds an object that cannot be inflated: {error}"))?;
            let count = usize::try_from(self.inflate.total_out() - produced).unwrap_or(0);
            let used = usize::try_from(self.inflate.total_in() - consumed).unwrap_or(0);
            self.skip(used);
            if self.inflate.total_out() > size {
                return Err(format!("holds an object of more than the {size} bytes that it states"));
            }
            if let Some(out) = out.as_deref_mut() {
                out.extend_from_slice(&piece[..count]);
            }
            if status == Status::StreamEnd {
                break;
            }
            if count == 0 && used == 0 && (input == 0 || status == Status::BufError) {
                return Err("ends in the middle of an object".into());
            }
        }
        if self.inflate.total_out() == size { Ok(()) } else { Err("holds an object that is too short".into()) }
    }
}

struct Parser<'f> {
    cursor: Cursor<'f>,
    entries: Vec<Entry>,
    ids: Vec<Option<ObjectId>>,
    by_id: HashMap<ObjectId, usize>,
    cache: HashMap<usize, Content>,
    cached: VecDeque<usize>,
    cached_bytes: usize,
    work: u64,
    faults: Vec<String>,
}

/// Reads all objects of the pack that starts at an offset of a file.
fn pack(file: &File, start: u64, length: u64, form: Form, objects: &mut impl Objects) -> Stray {
    let mut parser = Parser {
        cursor: Cursor::new(file, start, length),
        entries: Vec::new(),
        ids: Vec::new(),
        by_id: HashMap::new(),
        cache: HashMap::new(),
        cached: VecDeque::new(),
        cached_bytes: 0,
        work: WORK.0.saturating_add(length.saturating_mul(WORK.1)),
        faults: Vec::new(),
    };
    if let Err(what) = parser.list(start) {
        parser.faults.push(what);
    }
    if let Err(what) = parser.resolve_all(objects) {
        parser.faults.push(what);
    }
    let mut ids: Vec<ObjectId> = parser.ids.into_iter().flatten().collect();
    ids.sort();
    ids.dedup();
    Stray { form, ids, faults: parser.faults }
}

impl Parser<'_> {
    /// Walks over all entries, takes the ids of those that are whole, and remembers the deltas.
    fn list(&mut self, start: u64) -> Result<(), String> {
        let magic: [u8; 4] = self.cursor.array()?;
        let version = u32::from_be_bytes(self.cursor.array()?);
        let count = u32::from_be_bytes(self.cursor.array()?);
        if &magic != b"PACK" || !matches!(version, 2 | 3) {
            return Err("holds no pack that is understood".into());
        }
        if count > MOST_OBJECTS {
            return Err(format!("holds {count} objects, more than the {MOST_OBJECTS} that are read"));
        }
        for _ in 0..count {
            let offset = self.cursor.at - start;
            let mut byte = self.cursor.byte()?;
            let kind = (byte >> 4) & 7;
            let (mut size, mut shift) = (u64::from(byte & 0xf), 4_u32);
            while byte & 0x80 != 0 {
                byte = self.cursor.byte()?;
                if shift > 56 {
                    return Err("holds an object of an impossible size".into());
                }
                size |= u64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            let base = match kind {
                1 => Base::Whole(Kind::Commit),
                2 => Base::Whole(Kind::Tree),
                3 => Base::Whole(Kind::Blob),
                4 => Base::Whole(Kind::Tag),
                6 => Base::At(self.earlier(offset)?),
                7 => Base::Named(ObjectId::Sha1(self.cursor.array()?)),
                _ => return Err("holds an object of an unknown kind".into()),
            };
            let entry = Entry { offset, data: self.cursor.at, size, base };
            self.spend(size)?;
            let mut id = None;
            if size > LARGEST {
                self.faults.push(too_large(size));
                self.cursor.inflate(size, None)?;
            } else if let Base::Whole(kind) = base {
                let mut content = Vec::new();
                self.cursor.inflate(size, Some(&mut content))?;
                id = digest(kind, &content);
                self.keep(self.entries.len(), &(kind, Rc::new(content)));
            } else {
                self.cursor.inflate(size, None)?;
            }
            self.by_id.extend(id.map(|id| (id, self.entries.len())));
            self.entries.push(entry);
            self.ids.push(id);
        }
        // The digest of the pack ends it.
        match self.cursor.end.checked_sub(self.cursor.at) {
            Some(20) => Ok(()),
            Some(rest) if rest > 20 => Err(format!("holds {} bytes after its last object", rest - 20)),
            _ => Err("ends too early".into()),
        }
    }

    /// The entry that an offset delta stands on.
    fn earlier(&mut self, offset: u64) -> Result<usize, String> {
        let mut byte = self.cursor.byte()?;
        let mut distance = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.cursor.byte()?;
            if distance > u64::MAX >> 8 {
                return Err("holds a delta with an impossible base".into());
            }
            distance = (distance + 1) << 7 | u64::from(byte & 0x7f);
        }
        let base = offset.checked_sub(distance).ok_or("holds a delta with an impossible base")?;
        let found = self.entries.binary_search_by_key(&base, |entry| entry.offset);
        found.map_err(|_| "holds a delta against something that is no object".to_owned())
    }

    fn resolve_all(&mut self, objects: &mut impl Objects) -> Result<(), String> {
        let mut open: Vec<usize> =
            (0..self.entries.len()).filter(|at| self.ids[*at].is_none() && self.entries[*at].size <= LARGEST).collect();
        for _ in 0..MOST_ROUNDS {
            let before = open.len();
            let mut still = Vec::new();
            for at in open {
                match self.content(at, objects)? {
                    Some((kind, bytes)) => {
                        self.ids[at] = digest(kind, &bytes);
                        self.by_id.extend(self.ids[at].map(|id| (id, at)));
                    }
                    None => still.push(at),
                }
            }
            open = still;
            if open.is_empty() || open.len() == before {
                break;
            }
        }
        if !open.is_empty() {
            self.faults.push(format!("holds {} deltas whose base is not here", open.len()));
        }
        Ok(())
    }

    /// The content of an entry; `None` when what it stands on is not known, or not yet.
    fn content(&mut self, at: usize, objects: &mut impl Objects) -> Result<Option<Content>, String> {
        let mut chain = Vec::new();
        let mut at = at;
        let (kind, mut content) = loop {
            if let Some(hit) = self.cache.get(&at) {
                break hit.clone();
            }
            if chain.len() > LONGEST_CHAIN {
                return Ok(None);
            }
            let entry = self.entries[at];
            match entry.base {
                Base::Whole(_) if entry.size > LARGEST => return Ok(None),
                Base::Whole(kind) => break (kind, Rc::new(self.inflated(entry)?)),
                Base::At(base) => {
                    chain.push(at);
                    at = base;
                }
                Base::Named(id) => {
                    chain.push(at);
                    if let Some(base) = self.by_id.get(&id) {
                        at = *base;
                        continue;
                    }
                    let mut buffer = Vec::new();
                    match objects.read(id, &mut buffer) {
                        Ok(Some(kind)) => break (kind, Rc::new(buffer)),
                        _ => return Ok(None),
                    }
                }
            }
        };
        while let Some(at) = chain.pop() {
            if self.entries[at].size > LARGEST {
                return Ok(None);
            }
            let delta = self.inflated(self.entries[at])?;
            let Ok(applied) = apply(&content, &delta) else { return Ok(None) };
            self.spend(applied.len() as u64)?;
            content = Rc::new(applied);
            self.keep(at, &(kind, Rc::clone(&content)));
        }
        Ok(Some((kind, content)))
    }

    fn inflated(&mut self, entry: Entry) -> Result<Vec<u8>, String> {
        self.spend(entry.size)?;
        let mut content = Vec::new();
        self.cursor.move_to(entry.data);
        self.cursor.inflate(entry.size, Some(&mut content))?;
        Ok(content)
    }

    fn spend(&mut self, bytes: u64) -> Result<(), String> {
        // Looking at an object costs something even when it is empty.
        self.work = self.work.checked_sub(bytes.max(64)).ok_or("inflates to more than is read of such a file")?;
        Ok(())
    }

    fn keep(&mut self, at: usize, content: &Content) {
        let length = content.1.len();
        if length > LARGEST_CACHE / 4 {
            return;
        }
        while self.cached_bytes + length > LARGEST_CACHE {
            let Some(oldest) = self.cached.pop_front() else { break };
            if let Some((_, gone)) = self.cache.remove(&oldest) {
                self.cached_bytes -= gone.len();
            }
        }
        if self.cache.insert(at, content.clone()).is_none() {
            self.cached_bytes += length;
            self.cached.push_back(at);
        }
    }
}
