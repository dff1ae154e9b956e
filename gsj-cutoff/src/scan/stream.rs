//! Scanning text that comes in pieces.

use super::search::search;
use super::{Fingerprints, Match, fold};
use std::collections::{BTreeMap, BTreeSet};

/// So many bytes are gathered before they are searched, as every search looks again at the last words before it.
const SHORTEST_PIECE: usize = 64 << 10;
/// A text without any gap is kept up to this many bytes; then it is searched as it is.
const LONGEST_PIECE: usize = 1 << 20;

/// A search that goes on from piece to piece, wherever the pieces were divided.
///
/// Holds a quotation's length of text beside the piece at hand, and the matches.
#[derive(Debug)]
pub struct Scanner<'f> {
    prints: &'f Fingerprints,
    /// Digests of prints that are no match here.
    allowed: BTreeSet<u64>,
    /// The end of what came before: the last words, and what may be the start of another.
    kept: Vec<u8>,
    /// Where `kept` starts in the whole text.
    offset: usize,
    /// The match of each page that may still grow.
    open: BTreeMap<u32, Match>,
    done: Vec<Match>,
}

impl<'f> Scanner<'f> {
    pub(super) fn new(prints: &'f Fingerprints) -> Self {
        Self { prints, allowed: BTreeSet::new(), kept: Vec::new(), offset: 0, open: BTreeMap::new(), done: Vec::new() }
    }

    /// Adds a text to the visible world of this search, such as the prompt of one session.
    #[must_use]
    pub fn allow(mut self, text: impl AsRef<[u8]>) -> Self {
        let Fingerprints { runs, sentences } = self.prints;
        search(text.as_ref(), runs, sentences, 0, |found| {
            self.allowed.insert(found.digest);
        });
        self
    }

    /// Searches the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        if self.kept.len() < SHORTEST_PIECE {
            return;
        }
        // Only after a gap it is known that word, escape and character have ended.
        let end = match self.kept.iter().rposition(|byte| fold::is_gap(*byte)) {
            Some(at) => at + 1,
            None if self.kept.len() > LONGEST_PIECE => self.kept.len(),
            None => return,
        };
        let text = std::mem::take(&mut self.kept);
        let keep = self.search(&text[..end]);
        self.kept.extend_from_slice(&text[keep..]);
        self.offset += keep;
    }

    /// Ends the text and gives all matches by position and page.
    #[must_use]
    pub fn finish(mut self) -> Vec<Match> {
        let text = std::mem::take(&mut self.kept);
        self.search(&text);
        self.done.extend(std::mem::take(&mut self.open).into_values());
        self.done.sort_by_key(|found| (found.span.start, found.page, found.span.end));
        self.done
    }

    /// Searches a text that does not come in pieces.
    pub(super) fn whole(&mut self, text: &[u8]) {
        self.search(text);
    }

    /// Searches and tells from where on the text must be kept.
    fn search(&mut self, text: &[u8]) -> usize {
        if self.prints.is_empty() {
            return text.len();
        }
        let Fingerprints { runs, sentences } = self.prints;
        let keep = runs.longest().max(sentences.longest()).saturating_sub(1);
        let (offset, allowed) = (self.offset, &self.allowed);
        let (open, done) = (&mut self.open, &mut self.done);
        search(text, runs, sentences, keep, |found| {
            if allowed.contains(&found.digest) {
                return;
            }
            let span = offset + found.start..offset + found.end;
            let next = Match { page: found.page, span };
            match open.get_mut(&found.page) {
                Some(last) if next.span.start <= last.span.end => {
                    last.span = last.span.start.min(next.span.start)..last.span.end.max(next.span.end);
                }
                Some(last) => done.push(std::mem::replace(last, next)),
                None => drop(open.insert(found.page, next)),
            }
        })
    }
}
