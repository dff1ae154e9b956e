//! What stands between elements, compared rather than read.

use super::scan;

/// What stands between two elements: a comma and blanks. Arrays are written alike from end to end,
/// so the next gap is taken to be like the last one and only compared, off the critical path:
/// counting blanks would make each element wait for the one before it.
pub(super) struct Gap<'t> {
    pub(super) text: &'t [u8],
    /// The first eight bytes of the text, and which bits of them there are.
    word: u64,
    bits: u64,
}

impl<'t> Gap<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        let mut first = [0; 8];
        let length = text.len().min(8);
        first[..length].copy_from_slice(&text[..length]);
        let bits = if length == 0 { 0 } else { u64::MAX >> (64 - 8 * length) };
        Self { text, word: u64::from_le_bytes(first), bits }
    }

    /// Whether the same gap stands at an offset; near the end of the document it never does.
    #[inline]
    pub(super) fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        scan::word(bytes, at).is_some_and(|word| (word ^ self.word) & self.bits == 0)
            && (self.text.len() <= 8 || self.goes_on(bytes, at))
    }

    /// Whether the gap's words behind the first one stand there too; the last one overlaps.
    #[inline]
    fn goes_on(&self, bytes: &[u8], at: usize) -> bool {
        let last = self.text.len() - 8;
        let same = |from: usize| scan::word(bytes, at + from) == scan::word(self.text, from);
        (8..last).step_by(8).all(same) && same(last)
    }

    /// Whether the gap, of up to eight bytes, stands whole behind the first `bits` of a word.
    #[inline]
    pub(super) fn is_behind(&self, word: u64, bits: usize) -> bool {
        ((word >> bits) ^ self.word) & self.bits == 0
    }
}
