//! The vectors of a case's sentences, as an embeddings endpoint gave them.
//!
//! They stand in the order of the pages, and how many stand before each page is kept, so those of pages 1..T are a prefix.
//! A vector is kept as whole numbers: products are exact, and a ranking is the same whatever order they are summed in.

mod layout;
mod quantise;
mod rows;

use crate::RetrievalError;
use crate::bytes::Bytes;
use layout::{Layout, Parts};
pub use quantise::Vector;
pub(crate) use rows::{Known, Rows, digest_of, is_whole};
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// The code that says what is embedded and how it is kept, for fingerprints.
pub(crate) const CODE: &[&str] = &[
    include_str!("mod.rs"),
    include_str!("layout.rs"),
    include_str!("quantise.rs"),
    include_str!("rows.rs"),
    include_str!("../text.rs"),
];

/// How many characters are embedded at once; a longer sentence is cut into several pieces. Models read from 256 tokens on.
const MOST_CHARS: usize = 1000;

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// The vectors of one case.
pub(crate) struct Vectors {
    bytes: Bytes,
    layout: Layout,
}

impl fmt::Debug for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vectors").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl Vectors {
    /// Maps a file that [`Rows::bytes`] gave, and that nobody changes any more.
    pub(crate) fn open(path: &Path) -> Result<Self, RetrievalError> {
        let bytes = Bytes::map(path).map_err(|source| RetrievalError::Read { path: path.to_owned(), source })?;
        Self::of(bytes).ok_or_else(|| RetrievalError::NoIndex { path: path.to_owned() })
    }

    /// Takes bytes that [`Rows::bytes`] gave.
    pub(crate) fn in_memory(bytes: Vec<u8>) -> Option<Self> {
        Self::of(Bytes::Owned(bytes))
    }

    fn of(bytes: Bytes) -> Option<Self> {
        let layout = Layout::read(&bytes)?;
        Some(Self { bytes, layout })
    }

    pub(crate) fn page_count(&self) -> usize {
        self.layout.pages
    }

    fn dimension(&self) -> usize {
        self.layout.dimension
    }

    /// What embedded them.
    pub(crate) fn identity(&self) -> Digest {
        self.layout.identity
    }

    fn parts(&self) -> Parts<'_> {
        self.layout.parts(&self.bytes)
    }

    /// The vectors of pages 1..`timestep`, unless there are not that many pages.
    pub(crate) fn view(&self, timestep: u32) -> Option<VectorView<'_>> {
        let last = usize::try_from(timestep).ok().filter(|last| (1..=self.layout.pages).contains(last))?;
        let mut parts = self.parts();
        parts.pages = parts.pages.get(..=last)?;
        parts.digests = parts.digests.get(..last)?;
        let seen = layout::count(parts.pages.last()?);
        parts.places = parts.places.get(..seen)?;
        parts.squares = parts.squares.get(..seen)?;
        parts.components = parts.components.get(..seen.checked_mul(self.layout.dimension)?)?;
        // Of no vector in view there is nothing to know, not even this.
        let dimension = if seen == 0 { 0 } else { self.layout.dimension };
        Some(VectorView { parts, dimension })
    }
}

/// The vectors of pages 1..T. As with [`crate::View`], nothing of a later page can be had from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorView<'a> {
    parts: Parts<'a>,
    dimension: usize,
}

/// The sentence of a page that is nearest to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nearest {
    pub(crate) page: u32,
    /// Which vector, of those in view.
    pub(crate) at: usize,
    pub(crate) cosine: f64,
}

impl<'a> VectorView<'a> {
    /// How many numbers each vector has; 0 when there is no vector.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Each page and its vectors, in order.
    fn pages(&self) -> impl Iterator<Item = (u32, Range<usize>)> + 'a {
        let bounds = self.parts.pages.windows(2).filter_map(|pair| match pair {
            [start, end] => Some(layout::count(start)..layout::count(end)),
            _ => None,
        });
        (1..).zip(bounds)
    }

    /// The sentence that is nearest to the query on each page that has any, in the order of the pages. Nothing unless the
    /// query has as many numbers as the vectors.
    pub(crate) fn nearest(&self, query: &Vector) -> impl Iterator<Item = Nearest> {
        let of = move |(page, range): (u32, Range<usize>)| {
            let all = range.filter_map(|at| Some(Nearest { page, at, cosine: self.cosine(at, query)? }));
            // The first of equal ones: they are told apart by their place alone.
            all.reduce(|best, next| if next.cosine > best.cosine { next } else { best })
        };
        self.pages().filter_map(of)
    }

    fn cosine(&self, at: usize, query: &Vector) -> Option<f64> {
        if query.dimension() != self.dimension {
            return None;
        }
        let start = at.checked_mul(self.dimension)?;
        let row = self.parts.components.get(start..start.checked_add(self.dimension)?)?;
        let square = u32::from_le_bytes(*self.parts.squares.get(at)?);
        Some(quantise::cosine(row, square, query))
    }

    /// Where the text of a vector stands in its page, in bytes.
    pub(crate) fn place(&self, at: usize) -> Range<usize> {
        let (start, end) = self.parts.places.get(at).map_or((0, 0), layout::pair);
        start..end
    }
}

/// The parts of a page that are embedded: its sentences, the long ones in pieces; what holds no letter or digit is not.
pub(crate) fn pieces(page: &str) -> Vec<Range<usize>> {
    let units = crate::text::units(page).into_iter();
    let pieces = units.flat_map(|unit| {
        let mut found = Vec::new();
        let mut start = unit.start;
        while let Some(rest) = page.get(start..unit.end).filter(|rest| !rest.is_empty()) {
            let end = start + piece(rest);
            found.push(start..end);
            start = end;
        }
        found
    });
    pieces.filter(|range| page.get(range.clone()).is_some_and(has_words)).collect()
}

/// How many bytes the first piece has: all, or up to the last blank among the first characters, or those. Never 0 for a
/// text that is not empty.
fn piece(text: &str) -> usize {
    let Some((limit, _)) = text.char_indices().nth(MOST_CHARS) else { return text.len() };
    let head = text.get(..limit).unwrap_or(text);
    head.char_indices().rfind(|(at, c)| *at > 0 && c.is_whitespace()).map_or(limit, |(at, _)| at)
}

/// What is sent for a text: its words with one blank between them, as far as a piece goes.
pub(crate) fn spoken(text: &str) -> String {
    let spoken = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match spoken.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => spoken.get(..end).unwrap_or_default().to_owned(),
        None => spoken,
    }
}

/// What is sent for a piece: it and what stands before and behind it, since there is said whom its "he" and "it" mean.
/// The piece is whole; of its neighbours come the nearest words, as far as there is room.
pub(crate) fn spoken_among(page: &str, pieces: &[Range<usize>], at: usize) -> String {
    let text = |at: Option<usize>| at.and_then(|at| page.get(pieces.get(at)?.clone())).unwrap_or_default();
    let here = spoken(text(Some(at)));
    let mut room = MOST_CHARS.saturating_sub(here.chars().count());
    let mut fits = |word: &&str, least: usize| {
        let taken = word.chars().count() + 1;
        let there_is = room >= least + taken;
        room -= if there_is { taken } else { 0 };
        there_is
    };
    let half = MOST_CHARS.saturating_sub(here.chars().count()) / 2;
    let mut words: Vec<&str> =
        text(at.checked_sub(1)).split_whitespace().rev().take_while(|word| fits(word, half)).collect();
    words.reverse();
    words.push(&here);
    words.extend(text(at.checked_add(1)).split_whitespace().take_while(|word| fits(word, 0)));
    words.join(" ")
}

/// Whether there is anything to embed.
pub(crate) fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_sentences_without_rules_and_long_ones_are_cut_at_blanks() {
        let page = "# Title\n\nOne. Two.\n\n| a | b |\n|---|---|\n\n***\n";
        let texts: Vec<String> = pieces(page).into_iter().map(|range| spoken(&page[range])).collect();
        assert_eq!(texts, ["# Title", "One.", "Two.", "| a | b |"]);
        let long = "äb ".repeat(900);
        let found = pieces(&long);
        assert_eq!(found.len(), 3);
        let texts: Vec<&str> = found.iter().map(|range| &long[range.clone()]).collect();
        assert_eq!(texts.concat().trim_end(), long.trim_end(), "nothing is lost");
        assert!(texts.iter().all(|text| text.chars().count() <= MOST_CHARS));
        let run = "ä".repeat(2500);
        assert_eq!(pieces(&run).len(), 3, "without blanks too");
        assert_eq!(pieces("").len(), 0);
        assert_eq!(spoken(&run).chars().count(), MOST_CHARS);
    }

    #[test]
    fn a_piece_is_sent_among_its_neighbours_as_far_as_there_is_room() {
        let among = |page: &str| -> Vec<String> {
            let pieces = pieces(page);
            (0..pieces.len()).map(|at| spoken_among(page, &pieces, at)).collect()
        };
        assert_eq!(
            among("Ada  came.\nShe sat.\n\nIt rained."),
            ["Ada came. She sat.", "Ada came. She sat. It rained.", "She sat. It rained."]
        );
        assert_eq!(among("Alone."), ["Alone."]);
        assert_eq!(among(""), [""; 0]);
        let long = |word: &str, count: usize| format!("{}.", vec![word; count].join(" "));
        let page = format!("{} {} {}", long("äa", 300), long("Bb", 200), long("Cc", 300));
        let sent = among(&page);
        assert_eq!(pieces(&page).len(), 3);
        assert!((990..=MOST_CHARS).contains(&sent[1].chars().count()), "both sides have room, and it is used");
        assert!(sent[1].contains(&long("Bb", 200)), "the piece itself is whole");
        assert!(sent[1].starts_with("äa") && sent[1].ends_with("Cc"), "{sent:?}");
        let page = format!("{} {}", "äb ".repeat(900), "x".repeat(2500));
        assert!(among(&page).iter().all(|text| text.chars().count() <= MOST_CHARS));
    }
}
