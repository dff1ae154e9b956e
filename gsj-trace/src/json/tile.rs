//! Gaps and elements that repeat, compared rather than read.

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

/// How many elements a [`Tile`] has.
pub(super) const TILE: usize = 8;

/// The longest element with its gap that a [`Tile`] is made of.
const LONGEST: usize = 16;

/// Equal short elements with their gaps, as in a mask or where nothing was sampled.
pub(super) struct Tile {
    words: [u64; LONGEST],
    /// Bits that may be set or not.
    loose: [u64; LONGEST],
    /// The length of one element with its gap, which is the number of words of eight.
    pub(super) stride: usize,
}

impl Tile {
    /// `loose` are the bits of the element's first byte that may be set or not.
    pub(super) fn new(element: &[u8], loose: u8, gap: &Gap<'_>) -> Self {
        let mut text = [0; TILE * LONGEST];
        let mut bits = [0; TILE * LONGEST];
        let stride = element.len() + gap.text.len();
        if stride <= LONGEST {
            for (text, bits) in text.chunks_exact_mut(stride).zip(bits.chunks_exact_mut(stride)).take(TILE) {
                text[..element.len()].copy_from_slice(element);
                text[element.len()..].copy_from_slice(gap.text);
                bits[0] = loose;
            }
        }
        let words = |text: [u8; TILE * LONGEST]| {
            let mut words = [0; LONGEST];
            for (word, chunk) in words.iter_mut().zip(text.as_chunks().0) {
                *word = u64::from_le_bytes(*chunk);
            }
            words
        };
        Self { words: words(text), loose: words(bits), stride }
    }

    /// The elements and gaps at an offset, if they are these.
    #[inline]
    pub(super) fn at<'t>(&self, bytes: &'t [u8], at: usize) -> Option<&'t [u8]> {
        if self.stride > LONGEST {
            return None;
        }
        let block = bytes.get(at..)?.get(..TILE * self.stride)?;
        let (chunks, _) = block.as_chunks();
        let differs =
            |((chunk, word), loose): ((&[u8; 8], &u64), &u64)| (u64::from_le_bytes(*chunk) ^ word) & !loose != 0;
        let differ = chunks.iter().zip(&self.words).zip(&self.loose).any(differs);
        (!differ).then_some(block)
    }
}
