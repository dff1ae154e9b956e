//! The bytes of one case's index.
//!
//! Everything is ordered by page, and every count is kept as a running sum, so what pages 1..T alone would give is a
//! prefix of each part:
//!
//! | part | entries | each |
//! |---|---|---|
//! | pages | pages + 1 | where its text begins, units before it, terms before it, each `u64` |
//! | units | units | where it begins and ends in its page's text `u32` `u32` |
//! | lengths | units | its number of terms `u16`, saturating |
//! | terms | terms + 1 | where its name begins `u32`, postings before it `u32`; in the order of the names |
//! | names | | the terms, one behind the other |
//! | holders | postings | the unit `u32`; ascending within a term |
//! | details | postings | how often `u8`, saturating; where first in the unit `u8`, saturating |
//! | text | | the pages, one behind the other, UTF-8 |
//!
//! Numbers are little-endian. A header of eight `u64` stands first: the magic number, then how many pages, units, terms,
//! postings, bytes of names and bytes of text there are, and zero.

use std::ops::Range;

const MAGIC: u64 = u64::from_le_bytes(*b"gsjcase1");
const HEADER: usize = 64;
const PAGE: usize = 24;

/// Where each part of an index stands in its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) page_count: usize,
    pub(super) term_count: usize,
    pages: Range<usize>,
    units: Range<usize>,
    lengths: Range<usize>,
    terms: Range<usize>,
    names: Range<usize>,
    holders: Range<usize>,
    details: Range<usize>,
    text: Range<usize>,
}

/// What is counted of a case.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) pages: usize,
    pub(super) units: usize,
    pub(super) terms: usize,
    pub(super) postings: usize,
    pub(super) names: usize,
    pub(super) text: usize,
}

impl Layout {
    /// `None` when the parts do not fit into the address space.
    pub(super) fn of(counts: Counts) -> Option<Self> {
        let mut at = HEADER;
        let mut part = |entries: usize, size: usize| {
            let start = at;
            // Every part begins at a multiple of eight.
            at = at.checked_add(entries.checked_mul(size)?)?.checked_next_multiple_of(8)?;
            Some(start..start + entries * size)
        };
        Some(Self {
            page_count: counts.pages,
            term_count: counts.terms,
            pages: part(counts.pages.checked_add(1)?, PAGE)?,
            units: part(counts.units, 8)?,
            lengths: part(counts.units, 2)?,
            terms: part(counts.terms.checked_add(1)?, 8)?,
            names: part(counts.names, 1)?,
            holders: part(counts.postings, 4)?,
            details: part(counts.postings, 2)?,
            text: part(counts.text, 1)?,
        })
    }

    /// The layout that a header states, if it is one of ours and covers the bytes exactly.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut header = bytes.get(..HEADER)?.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        if header.next()? != MAGIC {
            return None;
        }
        let mut count = || usize::try_from(header.next()?).ok();
        let counts = Counts {
            pages: count()?,
            units: count()?,
            terms: count()?,
            postings: count()?,
            names: count()?,
            text: count()?,
        };
        let layout = Self::of(counts)?;
        (layout.size() == bytes.len()).then_some(layout)
    }

    pub(super) fn header(counts: Counts) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let Counts { pages, units, terms, postings, names, text } = counts;
        let words = [MAGIC].into_iter().chain([pages, units, terms, postings, names, text].map(|n| n as u64));
        for (slot, word) in header.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        header
    }

    /// How many bytes the index has.
    pub(super) fn size(&self) -> usize {
        self.text.end.next_multiple_of(8)
    }

    /// The parts of these bytes, each as far as it is there.
    pub(super) fn parts<'a>(&self, bytes: &'a [u8]) -> Parts<'a> {
        let part = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        Parts {
            pages: part(&self.pages).as_chunks().0,
            units: part(&self.units).as_chunks().0,
            lengths: part(&self.lengths).as_chunks().0,
            terms: part(&self.terms).as_chunks().0,
            names: part(&self.names),
            holders: part(&self.holders).as_chunks().0,
            details: part(&self.details).as_chunks().0,
            text: part(&self.text),
        }
    }
}

/// The parts as slices of whole entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) pages: &'a [[u8; PAGE]],
    pub(super) units: &'a [[u8; 8]],
    pub(super) lengths: &'a [[u8; 2]],
    pub(super) terms: &'a [[u8; 8]],
    pub(super) names: &'a [u8],
    pub(super) holders: &'a [[u8; 4]],
    pub(super) details: &'a [[u8; 2]],
    pub(super) text: &'a [u8],
}

/// An entry of the table of pages: what stands before that page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) text: usize,
    pub(super) units: usize,
    pub(super) terms: u64,
}

impl Before {
    pub(super) fn read(entry: &[u8; PAGE]) -> Self {
        let (words, _) = entry.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let size = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        Self { text: size(word(0)), units: size(word(1)), terms: word(2) }
    }

    pub(super) fn write(self) -> [u8; PAGE] {
        let mut entry = [0; PAGE];
        let words = [self.text as u64, self.units as u64, self.terms];
        for (slot, word) in entry.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        entry
    }
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
        let counts = Counts { pages: 3, units: 7, terms: 2, postings: 9, names: 5, text: 11 };
        let layout = Layout::of(counts).expect("small");
        let mut bytes = vec![0; layout.size()];
        bytes[..HEADER].copy_from_slice(&Layout::header(counts));
        assert_eq!(Layout::read(&bytes), Some(layout));
        assert_eq!(Layout::read(&bytes[..bytes.len() - 1]), None, "cut");
        bytes[0] ^= 1;
        assert_eq!(Layout::read(&bytes), None, "not ours");
        assert_eq!(Layout::read(&[]), None);
        let mut huge = Layout::header(counts);
        huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Layout::read(&huge), None, "no overflow");
    }

    #[test]
    fn entries_are_read_back() {
        let before = Before { text: 1 << 40, units: 70_000, terms: 5 };
        assert_eq!(Before::read(&before.write()), before);
        assert_eq!(pair(&[1, 0, 0, 0, 2, 1, 0, 0]), (1, 258));
    }
}
