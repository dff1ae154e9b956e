//! Finding the text of later pages in what a session read and wrote, by whatever way it came there.
//!
//! A *fingerprint* is a run of words that stands on a page after the cut and nowhere in the visible world. Two kinds are
//! taken from every later page: each run of eight words, and each whole sentence or line of five words and more (the
//! second finds what is put together from runs that are all visible). Words are compared folded: letters and digits of
//! any script in lower case, everything between them counts as one gap, and the escapes of JSON are undone as often as
//! they were done. So a quotation is found with other line breaks, quotation marks, markup, capital letters, inside a
//! JSON string, and inside a JSON string inside a JSON string. Accents are compared as they are written; a quotation
//! of fewer than eight words that is not a whole sentence is not found, as stock phrases are that short.
//!
//! A match is confirmed word by word, so none comes from two digests that happen to agree.
//!
//! ```
//! use gsj_cutoff::scan::Fingerprints;
//!
//! let visible = ["The clerk found the register closed on Monday morning."];
//! let later = [(7, "The clerk found the register open. Nobody had asked him for the second key.")];
//! let prints = Fingerprints::of(later, visible);
//!
//! let trace = r#"{"text":"it says:\n\"Nobody had asked him\nfor the second key\""}"#;
//! let matches = prints.scan(trace);
//! assert_eq!(matches.len(), 1);
//! assert_eq!(matches[0].page, 7);
//! assert_eq!(prints.scan("The clerk found the register closed on Monday morning."), []);
//! ```

mod build;
mod fold;
mod search;
mod stream;

pub use stream::Scanner;

use search::Index;
use serde::Serialize;
use std::ops::Range;

/// The words of a run that is a fingerprint wherever it stands on a page.
const RUN: usize = 8;
/// The fewest words of a sentence or line that is a fingerprint as a whole.
const SHORTEST_SENTENCE: usize = 5;
/// The most words of a sentence or line that is a fingerprint as a whole.
const LONGEST_SENTENCE: usize = 200;
/// The fewest folded bytes of a fingerprint: eight small numbers in a row are no quotation.
const FEWEST_BYTES: usize = 20;

/// What stands on later pages and nowhere in the visible world.
///
/// Takes about 60 bytes of memory for each byte of a later page's words at worst, [`Self::bytes`] says how many.
#[derive(Debug, Clone, Default)]
pub struct Fingerprints {
    runs: Index,
    sentences: Index,
}

/// A place where a later page's text was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The later page; the first one where several have the text.
    pub page: u32,
    /// The bytes of the scanned text, from the first word's start to the last word's end.
    pub span: Range<usize>,
}

impl Fingerprints {
    /// Takes the fingerprints of the later pages, given by number and text.
    ///
    /// Nothing that stands in one of the `visible` texts (earlier pages, rules, skills, prompts) is a fingerprint, so
    /// none of these texts ever matches.
    pub fn of<L, V>(later: impl IntoIterator<Item = (u32, L)>, visible: impl IntoIterator<Item = V>) -> Self
    where
        L: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        build::fingerprints(later, visible)
    }

    /// Finds all places of a text that stands on a later page, by position and page.
    ///
    /// Places of one page that overlap are one match.
    #[must_use]
    pub fn scan(&self, text: impl AsRef<[u8]>) -> Vec<Match> {
        let mut scanner = self.scanner();
        scanner.whole(text.as_ref());
        scanner.finish()
    }

    /// Starts to scan a text that comes in pieces.
    #[must_use]
    pub fn scanner(&self) -> Scanner<'_> {
        Scanner::new(self)
    }

    /// Whether there is nothing to be found: no later pages, or none with text of their own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.sentences.is_empty()
    }

    /// How many fingerprints there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len() + self.sentences.len()
    }

    /// The memory that the fingerprints take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.runs.bytes() + self.sentences.bytes()
    }
}
