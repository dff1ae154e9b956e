//! Putting a case's vectors together, page by page, with those that are known already.

use super::layout::{self, Checksum, Layout};
use super::{Digest, Vector, Vectors};
use crate::bytes;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

/// The vectors of the first pages of a case.
#[derive(Debug)]
pub(crate) struct Rows {
    /// How many vectors stand before each page, the next one too.
    pages: Vec<u64>,
    digests: Vec<Digest>,
    places: Vec<[u8; 8]>,
    squares: Vec<[u8; 4]>,
    components: Vec<u8>,
    dimension: usize,
}

/// A vector has another number of numbers than those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherDimension {
    pub(crate) expected: usize,
    pub(crate) found: usize,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self {
            pages: vec![0],
            digests: Vec::new(),
            places: Vec::new(),
            squares: Vec::new(),
            components: Vec::new(),
            dimension: 0,
        }
    }

    /// How many pages there are so far.
    pub(crate) fn page_count(&self) -> usize {
        self.digests.len()
    }

    /// Adds the next page: where its pieces stand, and their vectors.
    pub(crate) fn push(
        &mut self,
        digest: Digest,
        pieces: &[Range<usize>],
        vectors: &[Vector],
    ) -> Result<(), OtherDimension> {
        for vector in vectors {
            self.accept(vector.dimension())?;
        }
        for (piece, vector) in pieces.iter().zip(vectors) {
            // A page over 4 GiB is no page: the index refuses it before.
            let [start, end] = [piece.start, piece.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes());
            let mut place = [0; 8];
            place[..4].copy_from_slice(&start);
            place[4..].copy_from_slice(&end);
            self.places.push(place);
            self.squares.push(vector.square().to_le_bytes());
            self.components.extend_from_slice(vector.components());
        }
        self.end(digest);
        Ok(())
    }

    /// Adds the next page as it stands elsewhere; tells whether it does.
    pub(crate) fn copy(&mut self, digest: Digest, known: &Known) -> Result<bool, OtherDimension> {
        let Some((vectors, range)) = known.find(&digest) else { return Ok(false) };
        let parts = vectors.parts();
        let bytes = range.start * vectors.dimension()..range.end * vectors.dimension();
        let found = (parts.places.get(range.clone()), parts.squares.get(range.clone()), parts.components.get(bytes));
        let (Some(places), Some(squares), Some(components)) = found else { return Ok(false) };
        if !range.is_empty() {
            self.accept(vectors.dimension())?;
        }
        self.places.extend_from_slice(places);
        self.squares.extend_from_slice(squares);
        self.components.extend_from_slice(components);
        self.end(digest);
        Ok(true)
    }

    fn accept(&mut self, found: usize) -> Result<(), OtherDimension> {
        if self.dimension == 0 {
            self.dimension = found;
        }
        if found == self.dimension { Ok(()) } else { Err(OtherDimension { expected: self.dimension, found }) }
    }

    fn end(&mut self, digest: Digest) {
        self.digests.push(digest);
        self.pages.push(self.places.len() as u64);
    }

    /// The bytes of a file; `None` when they do not fit into the address space.
    pub(crate) fn bytes(&self, identity: Digest) -> Option<Vec<u8>> {
        let layout = Layout::of(self.digests.len(), self.places.len(), self.dimension, identity)?;
        let mut bytes = Vec::with_capacity(layout.size());
        bytes.resize(layout::HEADER, 0);
        let mut part = |entries: &[u8]| {
            bytes.extend_from_slice(entries);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        };
        part(&self.pages.iter().flat_map(|count| count.to_le_bytes()).collect::<Vec<_>>());
        part(self.digests.as_flattened());
        part(self.places.as_flattened());
        part(self.squares.as_flattened());
        part(&self.components);
        layout.seal(self.places.len(), &mut bytes);
        Some(bytes)
    }
}

/// The SHA-256 of a page's text, by which its vectors are found again.
pub(crate) fn digest_of(page: &str) -> Digest {
    Sha256::digest(page.as_bytes()).into()
}

/// Vectors of earlier builds, whole or stopped, by the pages that they are of.
#[derive(Debug, Default)]
pub(crate) struct Known {
    files: Vec<Vectors>,
    pages: HashMap<Digest, (usize, Range<usize>)>,
}

impl Known {
    /// Adds a file's vectors if it is whole and they were embedded by the same; tells whether it was so.
    pub(crate) fn add(&mut self, path: &Path, identity: Digest) -> bool {
        if !is_whole(path) {
            return false;
        }
        let Some(vectors) = Vectors::open(path).ok().filter(|vectors| vectors.identity() == identity) else {
            return false;
        };
        let file = self.files.len();
        let parts = vectors.parts();
        for (digest, pair) in parts.digests.iter().zip(parts.pages.windows(2)) {
            if let [start, end] = pair {
                self.pages.entry(*digest).or_insert((file, layout::count(start)..layout::count(end)));
            }
        }
        self.files.push(vectors);
        true
    }

    /// Whether the vectors of a page are there.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.pages.contains_key(digest)
    }

    fn find(&self, digest: &Digest) -> Option<(&Vectors, Range<usize>)> {
        let (file, range) = self.pages.get(digest)?;
        Some((self.files.get(*file)?, range.clone()))
    }
}

/// Whether a file's bytes are those that were written. Read past the mapping, so that its pages don't count as ours.
pub(crate) fn is_whole(path: &Path) -> bool {
    let check = || {
        let (mut file, mut sum, mut buffer) = (bytes::open(path)?, Checksum::default(), vec![0; 1 << 18]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok::<_, std::io::Error>(sum.stated().is_some_and(|stated| stated == sum.finish())),
                read => sum.take(buffer.get(..read).unwrap_or_default()),
            }
        }
    };
    check().unwrap_or(false)
}
