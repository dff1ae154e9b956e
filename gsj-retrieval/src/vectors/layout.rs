//! The bytes of a case's vectors.
//!
//! | part | entries | each |
//! |---|---|---|
//! | pages | pages + 1 | how many vectors stand before it `u64` |
//! | digests | pages | the SHA-256 of its text |
//! | places | vectors | where its text begins and ends in the page `u32` `u32` |
//! | squares | vectors | the sum of the squares of its numbers `u32` |
//! | components | vectors x dimension | its numbers `i8` |
//!
//! Numbers are little-endian. A header of 96 bytes stands first: the magic number, then how many pages, vectors, and numbers
//! a vector has, each `u64`; the SHA-256 of what embedded them; and the SHA-256 of all but itself.

use super::Digest;
use sha2::{Digest as _, Sha256};
use std::ops::Range;

const MAGIC: u64 = u64::from_le_bytes(*b"gsjvecs1");
const IDENTITY: Range<usize> = 32..64;
const CHECKSUM: Range<usize> = 64..96;
pub(super) const HEADER: usize = 96;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) pages: usize,
    pub(super) dimension: usize,
    pub(super) identity: Digest,
    page: Range<usize>,
    digest: Range<usize>,
    place: Range<usize>,
    square: Range<usize>,
    component: Range<usize>,
}

impl Layout {
    /// `None` when the parts do not fit into the address space.
    pub(super) fn of(pages: usize, vectors: usize, dimension: usize, identity: Digest) -> Option<Self> {
        let mut at = HEADER;
        let mut part = |entries: usize, size: usize| {
            let start = at;
            // Every part begins at a multiple of eight.
            at = at.checked_add(entries.checked_mul(size)?)?.checked_next_multiple_of(8)?;
            Some(start..start + entries * size)
        };
        Some(Self {
            pages,
            dimension,
            identity,
            page: part(pages.checked_add(1)?, 8)?,
            digest: part(pages, 32)?,
            place: part(vectors, 8)?,
            square: part(vectors, 4)?,
            component: part(vectors, dimension)?,
        })
    }

    /// The layout that a header states, if it is one of ours and covers the bytes exactly.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = bytes.get(..IDENTITY.start)?.as_chunks::<8>().0.iter().map(count64);
        if header.next()? != MAGIC {
            return None;
        }
        let mut size = || usize::try_from(header.next()?).ok();
        let (pages, vectors, dimension) = (size()?, size()?, size()?);
        let layout = Self::of(pages, vectors, dimension, bytes.get(IDENTITY)?.try_into().ok()?)?;
        (layout.size() == bytes.len()).then_some(layout)
    }

    /// Writes header and checksum before parts that stand where they belong.
    pub(super) fn seal(&self, vectors: usize, bytes: &mut [u8]) {
        let words = [MAGIC, self.pages as u64, vectors as u64, self.dimension as u64];
        for (slot, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        if let Some(slot) = bytes.get_mut(IDENTITY) {
            slot.copy_from_slice(&self.identity);
        }
        let mut sum = Checksum::default();
        sum.take(bytes);
        let sum = sum.finish();
        if let Some(slot) = bytes.get_mut(CHECKSUM) {
            slot.copy_from_slice(&sum);
        }
    }

    /// How many bytes there are.
    pub(super) fn size(&self) -> usize {
        self.component.end.next_multiple_of(8)
    }

    pub(super) fn parts<'a>(&self, bytes: &'a [u8]) -> Parts<'a> {
        let part = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        Parts {
            pages: part(&self.page).as_chunks().0,
            digests: part(&self.digest).as_chunks().0,
            places: part(&self.place).as_chunks().0,
            squares: part(&self.square).as_chunks().0,
            components: part(&self.component),
        }
    }
}

/// The parts as slices of whole entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) pages: &'a [[u8; 8]],
    pub(super) digests: &'a [Digest],
    pub(super) places: &'a [[u8; 8]],
    pub(super) squares: &'a [[u8; 4]],
    pub(super) components: &'a [u8],
}

/// Sums a file that is read piece by piece, and tells the sum that it states.
#[derive(Default)]
pub(crate) struct Checksum {
    hash: Sha256,
    header: Vec<u8>,
}

impl Checksum {
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        if self.header.len() < HEADER {
            let (head, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
            self.header.extend_from_slice(head);
            bytes = rest;
            if self.header.len() == HEADER {
                self.hash.update(self.header.get(..CHECKSUM.start).unwrap_or_default());
            }
        }
        self.hash.update(bytes);
    }

    /// The sum that the header states.
    pub(crate) fn stated(&self) -> Option<Digest> {
        self.header.get(CHECKSUM)?.try_into().ok()
    }

    pub(crate) fn finish(self) -> Digest {
        self.hash.finalize().into()
    }
}

fn count64(entry: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*entry)
}

pub(super) fn count(entry: &[u8; 8]) -> usize {
    usize::try_from(count64(entry)).unwrap_or(usize::MAX)
}

/// Two `u32` of an entry.
pub(super) fn pair(entry: &[u8; 8]) -> (usize, usize) {
    let [a, b, c, d, e, f, g, h] = *entry;
    let size = |word: [u8; 4]| usize::try_from(u32::from_le_bytes(word)).unwrap_or(usize::MAX);
    (size([a, b, c, d]), size([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_must_cover_the_bytes() {
        let layout = Layout::of(3, 7, 5, [9; 32]).expect("small");
        let mut bytes = vec![0; layout.size()];
        layout.seal(7, &mut bytes);
        assert_eq!(Layout::read(&bytes), Some(layout));
        assert_eq!(Layout::read(&bytes[..bytes.len() - 1]), None, "cut");
        bytes[0] ^= 1;
        assert_eq!(Layout::read(&bytes), None, "not ours");
        assert_eq!(Layout::read(&[]), None);
        bytes[0] ^= 1;
        bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Layout::read(&bytes), None, "no overflow");
    }

    #[test]
    fn a_checksum_is_the_same_in_pieces_and_of_any_change() {
        let layout = Layout::of(1, 1, 8, [9; 32]).expect("small");
        let mut bytes = vec![0; layout.size()];
        layout.seal(1, &mut bytes);
        let sum = |bytes: &[u8], size: usize| {
            let mut sum = Checksum::default();
            bytes.chunks(size).for_each(|piece| sum.take(piece));
            (sum.stated().expect("a header"), sum.finish())
        };
        let (stated, found) = sum(&bytes, bytes.len());
        assert_eq!(stated, found);
        assert_eq!(sum(&bytes, 7), (stated, found));
        for at in [0, 40, 100, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert_ne!(sum(&bytes, 7).1, found, "{at}");
            bytes[at] ^= 1;
        }
    }
}
