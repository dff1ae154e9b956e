//! Searching folded text for runs of words.

use super::fold::{self, Sink, Word};
use super::{FEWEST_BYTES, LONGEST_SENTENCE, RUN, SHORTEST_SENTENCE};

/// The base of the rolling digest over words; odd, so that no word is lost.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
/// How many words are remembered; a power of two above [`LONGEST_SENTENCE`].
const REMEMBERED: usize = 256;
/// A gap of more bytes than this ends every quotation.
const WIDEST_GAP: usize = 4096;
/// A word of more bytes than this ends every quotation.
const LONGEST_WORD: usize = 2048;

const _: () = assert!(LONGEST_SENTENCE < REMEMBERED && RUN < REMEMBERED && REMEMBERED.is_power_of_two());

/// The powers of the base.
static POWERS: [u64; REMEMBERED] = {
    let mut powers = [1_u64; REMEMBERED];
    let mut at = 1;
    while at < REMEMBERED {
        powers[at] = powers[at - 1].wrapping_mul(BASE);
        at += 1;
    }
    powers
};

/// A run of words of a later page.
#[derive(Debug, Clone, Copy)]
struct Print {
    digest: u64,
    /// Where the words stand in the index's text, each divided from the next by one space.
    at: usize,
    length: u32,
    page: u32,
    words: u16,
}

/// Runs of words, to be found by their digests.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// The words of the later pages, folded.
    text: Vec<u8>,
    /// Sorted by digest, then page.
    prints: Vec<Print>,
    /// The digests of the last words of all prints, as bits; it says no for nearly everything else.
    filter: Filter,
    /// The lengths in words that occur.
    lengths: Vec<u16>,
}

impl Index {
    pub(super) fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.prints.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.prints.capacity() * size_of::<Print>() + self.filter.bits.capacity() * 8
    }

    /// The most words of a print.
    pub(super) fn longest(&self) -> usize {
        self.lengths.last().map_or(0, |words| usize::from(*words))
    }

    /// The prints with this digest and number of words, as positions.
    fn candidates(&self, digest: u64, words: u16) -> impl Iterator<Item = usize> {
        let first = self.prints.partition_point(|print| print.digest < digest);
        let same = self.prints[first..].iter().take_while(move |print| print.digest == digest);
        same.enumerate().filter(move |(_, print)| print.words == words).map(move |(at, _)| first + at)
    }

    fn page(&self, print: usize) -> u32 {
        self.prints[print].page
    }

    fn is(&self, print: usize, folded: &[u8]) -> bool {
        let print = self.prints[print];
        self.text.get(print.at..print.at + print.length as usize) == Some(folded)
    }

    /// Takes prints out; the filter and lengths are made anew.
    pub(super) fn remove(&mut self, dead: &[bool], tail: usize) {
        let mut at = 0;
        self.prints.retain(|_| {
            at += 1;
            !dead.get(at - 1).copied().unwrap_or(false)
        });
        self.settle(tail);
    }

    /// Sorts the prints, takes those out that are there already, and makes the filter over the last `tail` words.
    pub(super) fn settle(&mut self, tail: usize) {
        let text = std::mem::take(&mut self.text);
        let words = |print: &Print| text.get(print.at..print.at + print.length as usize);
        self.prints.sort_by(|a, b| (a.digest, words(a), a.page).cmp(&(b.digest, words(b), b.page)));
        self.prints.dedup_by(|b, a| a.digest == b.digest && words(a) == words(b));
        self.filter = Filter::for_count(self.prints.len());
        let mut lengths: Vec<u16> = Vec::new();
        for print in &self.prints {
            let digest = words(print).map_or(0, |words| tail_digest(words, tail));
            self.filter.insert(digest);
            if !lengths.contains(&print.words) {
                lengths.push(print.words);
            }
        }
        lengths.sort_unstable();
        self.lengths = lengths;
        if !self.prints.is_empty() {
            self.text = text;
        }
        self.prints.shrink_to_fit();
        self.text.shrink_to_fit();
    }
}

/// The digest of the last `count` words of folded text.
fn tail_digest(folded: &[u8], count: usize) -> u64 {
    let start = folded.iter().enumerate().rev().filter(|(_, byte)| **byte == b' ').nth(count - 1);
    let tail = start.map_or(folded, |(at, _)| &folded[at + 1..]);
    let mut rolled = 0_u64;
    let mut words = 0_u16;
    for word in tail.split(|byte| *byte == b' ') {
        let mut hash = WordHash::default();
        word.iter().for_each(|byte| hash.byte(*byte));
        rolled = rolled.wrapping_mul(BASE).wrapping_add(hash.value());
        words += 1;
    }
    finished(rolled, words)
}

/// The digest of a run, from its rolled words.
#[inline]
fn finished(rolled: u64, words: u16) -> u64 {
    mixed(rolled ^ u64::from(words))
}

/// Spreads every bit over all others.
#[inline]
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    value ^ (value >> 32)
}

/// The digest of one word, eight bytes at a time.
#[derive(Debug, Clone, Copy, Default)]
struct WordHash {
    done: u64,
    pending: u64,
    length: usize,
}

impl WordHash {
    #[inline]
    fn value(self) -> u64 {
        let value = (self.done ^ self.pending).wrapping_add(self.length as u64).wrapping_mul(BASE);
        value ^ (value >> 32)
    }
}

impl Sink for WordHash {
    #[inline]
    fn bytes(&mut self, bytes: u64, count: usize) {
        let filled = self.length % 8;
        self.length += count;
        self.pending |= bytes << (8 * filled);
        if filled + count >= 8 {
            self.done = mixed(self.done ^ self.pending);
            self.pending = if filled == 0 { 0 } else { bytes >> (64 - 8 * filled) };
        }
    }
}

/// Two bits of one word for each digest.
#[derive(Debug, Clone, Default)]
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// Room enough that one foreign digest in about sixty passes.
    fn for_count(count: usize) -> Self {
        let words = (count / 4).next_power_of_two().max(64);
        Self { bits: vec![0; words], shift: u64::BITS - words.trailing_zeros() }
    }

    fn mask(digest: u64) -> u64 {
        1 << (digest & 63) | 1 << ((digest >> 6) & 63)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the shift leaves no more bits than the length has")]
    fn insert(&mut self, digest: u64) {
        let at = (digest >> self.shift) as usize;
        if let Some(word) = self.bits.get_mut(at) {
            *word |= Self::mask(digest);
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the shift leaves no more bits than the length has")]
    fn may_hold(&self, digest: u64) -> bool {
        let mask = Self::mask(digest);
        self.bits.get((digest >> self.shift) as usize).is_some_and(|word| word & mask == mask)
    }
}

/// The words that were read last.
struct Window {
    rolled: u64,
    /// How many words were read.
    count: usize,
    /// How many of them stand close enough to each other for a quotation.
    run: usize,
    /// After each word: its start, and what was rolled up to and with it.
    starts: [usize; REMEMBERED],
    sums: [u64; REMEMBERED],
}

impl Window {
    fn new() -> Self {
        Self { rolled: 0, count: 0, run: 0, starts: [0; REMEMBERED], sums: [0; REMEMBERED] }
    }

    #[inline]
    fn push(&mut self, start: usize, hash: u64) {
        self.rolled = self.rolled.wrapping_mul(BASE).wrapping_add(hash);
        self.count += 1;
        self.run += 1;
        let at = self.count % REMEMBERED;
        self.starts[at] = start;
        self.sums[at] = self.rolled;
    }

    /// The digest of the last words; there must be as many in the run.
    #[inline]
    fn digest(&self, words: usize) -> u64 {
        let before = self.sums[self.count.wrapping_sub(words) % REMEMBERED];
        #[expect(clippy::cast_possible_truncation, reason = "at most as many words as are remembered")]
        finished(self.rolled.wrapping_sub(before.wrapping_mul(POWERS[words])), words as u16)
    }

    /// Where the last words start.
    fn start(&self, words: usize) -> usize {
        self.starts[self.count.wrapping_sub(words).wrapping_add(1) % REMEMBERED]
    }
}

/// A print that stands in the text.
pub(super) struct Found {
    pub(super) print: usize,
    pub(super) page: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) digest: u64,
}

/// Searches a text for runs and sentences, and tells where the last `keep` words start.
pub(super) fn search(text: &[u8], runs: &Index, sentences: &Index, keep: usize, mut found: impl FnMut(Found)) -> usize {
    let mut window = Window::new();
    let mut folded = Vec::new();
    let mut at = 0;
    let has_sentences = !sentences.is_empty();
    loop {
        let mut hash = WordHash::default();
        let Some(Word { start, end }) = fold::next_word(text, at, &mut hash) else { break };
        if start - at > WIDEST_GAP {
            window.run = 0;
        }
        window.push(start, hash.value());
        at = end;
        if end - start > LONGEST_WORD {
            window.run = 0;
            continue;
        }
        if window.run >= RUN {
            let digest = window.digest(RUN);
            if runs.filter.may_hold(digest) {
                confirm(runs, text, &window, end, RUN, digest, &mut folded, &mut found);
            }
        }
        if has_sentences
            && window.run >= SHORTEST_SENTENCE
            && sentences.filter.may_hold(window.digest(SHORTEST_SENTENCE))
        {
            for words in &sentences.lengths {
                let words = usize::from(*words);
                if words > window.run {
                    break;
                }
                let digest = window.digest(words);
                confirm(sentences, text, &window, end, words, digest, &mut folded, &mut found);
            }
        }
    }
    let kept = keep.min(window.run).min(REMEMBERED - 1);
    if kept == 0 || text.len() - at > WIDEST_GAP { text.len() } else { window.start(kept) }
}

#[expect(clippy::too_many_arguments, reason = "the inner loop's own state")]
#[cold]
fn confirm(
    index: &Index,
    text: &[u8],
    window: &Window,
    end: usize,
    words: usize,
    digest: u64,
    folded: &mut Vec<u8>,
    found: &mut impl FnMut(Found),
) {
    let mut start = None;
    #[expect(clippy::cast_possible_truncation, reason = "at most as many words as are remembered")]
    for print in index.candidates(digest, words as u16) {
        let start = *start.get_or_insert_with(|| {
            let start = window.start(words);
            refold(&text[start..end], folded);
            start
        });
        if index.is(print, folded) {
            found(Found { print, page: index.page(print), start, end, digest });
        }
    }
}

/// Folds a text into words with one space between them.
pub(super) fn refold(text: &[u8], folded: &mut Vec<u8>) {
    folded.clear();
    let mut at = 0;
    loop {
        let length = folded.len();
        if length > 0 {
            folded.push(b' ');
        }
        match fold::next_word(text, at, folded) {
            Some(word) => at = word.end,
            None => return folded.truncate(length),
        }
    }
}

/// Takes prints from texts.
pub(super) struct Collector {
    index: Index,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self { index: Index::default() }
    }

    /// Takes every run of `words` words of a text.
    pub(super) fn runs(&mut self, page: u32, text: &[u8], words: usize) {
        let (base, starts, hashes) = self.take(text);
        let mut rolled = 0_u64;
        for (at, hash) in hashes.iter().enumerate() {
            rolled = rolled.wrapping_mul(BASE).wrapping_add(*hash);
            if at >= words {
                rolled = rolled.wrapping_sub(hashes[at - words].wrapping_mul(POWERS[words]));
            }
            if at + 1 >= words {
                let first = starts[at + 1 - words];
                self.print(page, base + first, starts[at + 1] - 1 - first, words, rolled);
            }
        }
    }

    /// Takes a text as a whole.
    pub(super) fn whole(&mut self, page: u32, text: &[u8]) {
        let (base, starts, hashes) = self.take(text);
        let rolled = hashes.iter().fold(0_u64, |rolled, hash| rolled.wrapping_mul(BASE).wrapping_add(*hash));
        if let Some(end) = starts.last().filter(|_| !hashes.is_empty()) {
            self.print(page, base, end - 1, hashes.len(), rolled);
        }
    }

    /// Keeps the folded text; gives its place, the start of each word in it (and of one more), and the words' digests.
    fn take(&mut self, text: &[u8]) -> (usize, Vec<usize>, Vec<u64>) {
        let mut folded = Vec::new();
        refold(text, &mut folded);
        let (mut starts, mut hashes) = (vec![0], Vec::new());
        for word in folded.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
            let mut hash = WordHash::default();
            word.iter().for_each(|byte| hash.byte(*byte));
            hashes.push(hash.value());
            starts.push(starts.last().copied().unwrap_or_default() + word.len() + 1);
        }
        let base = self.index.text.len();
        self.index.text.extend_from_slice(&folded);
        (base, starts, hashes)
    }

    fn print(&mut self, page: u32, at: usize, length: usize, words: usize, rolled: u64) {
        let (Ok(length), Ok(words)) = (u32::try_from(length), u16::try_from(words)) else { return };
        if length as usize >= FEWEST_BYTES {
            self.index.prints.push(Print { digest: finished(rolled, words), at, length, page, words });
        }
    }

    /// The index over all that was taken; its filter looks at the last `tail` words.
    pub(super) fn finish(mut self, tail: usize) -> Index {
        self.index.settle(tail);
        self.index
    }
}
