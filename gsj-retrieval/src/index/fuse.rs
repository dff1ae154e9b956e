//! Two rankings made one: by words, and by the vectors of an embeddings endpoint.
//!
//! Reciprocal rank fusion over pages, each as good as its best sentence. A ranking's vote for its page at rank r is
//! 1 / (60 + r), the constant of Cormack, Clarke and Buettcher (2009), so scores of two kinds need no common scale and a
//! low bit of a cosine shows nowhere. The votes by words count as much as the sentence that leads them holds of the query's
//! words, function words left out, between 0 and 1: sharing those is no evidence. The votes by vectors count what it leaves
//! of the query: where it holds all, one that only sounds alike, with other names and numbers, is none.
//! Before all that stands how many of the query's identifiers a page holds: what is asked for by number is that number.
//!
//! Both rankings, and so every rank, are made among pages 1..T.

use super::rank::{Best, Found, Query, Ranking};
use super::view::View;
use crate::vectors::{Vector, VectorView};

/// The constant of reciprocal rank fusion.
const RANK_CONSTANT: f64 = 60.0;
/// What the vote by vectors counts at least: enough to order what the words leave equal or don't name.
const LEAST: f64 = 0.01;
/// How many pages of each ranking vote.
const DEPTH: usize = 100;

/// The code that a fused score depends on, for fingerprints.
pub(crate) const CODE: &str = include_str!("fuse.rs");

/// Where a page stands, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fused {
    pub(super) page: u32,
    pub(super) score: f64,
    /// How many of the query's identifiers it holds.
    pub(super) identifiers: u32,
    pub(super) by_words: Option<usize>,
    pub(super) by_vectors: Option<usize>,
    /// The vector that is nearest, of those in view, and how near it is.
    pub(super) nearest: Option<(usize, f64)>,
}

/// Both rankings of a query over a view.
pub(super) struct Fusion {
    /// What a vote by words counts.
    pub(super) coverage: f64,
    /// What a vote by vectors counts.
    pub(super) left: f64,
    /// Every page that any ranking names, best first, equal scores by page.
    pub(super) pages: Vec<Fused>,
}

impl Fusion {
    pub(super) fn new(view: View<'_>, vectors: VectorView<'_>, query: &Query, vector: &Vector) -> Self {
        let ranking = Ranking::new(view, query);
        let by_words = ranking.best(DEPTH);
        let coverage = by_words.first().map_or(0.0, |first| ranking.coverage(first.unit));
        let left = (1.0 - coverage).max(LEAST);
        let mut by_vectors = Best::new(DEPTH);
        for nearest in vectors.nearest(vector) {
            if nearest.cosine > by_vectors.entry() {
                by_vectors.offer(Some(Found { page: nearest.page, unit: nearest.at, score: nearest.cosine }));
            }
        }
        let mut pages: Vec<Fused> = Vec::with_capacity(by_words.len() + by_vectors.found.len());
        let named = |page| Fused { page, score: 0.0, identifiers: 0, by_words: None, by_vectors: None, nearest: None };
        for (rank, found) in (1..).zip(&by_vectors.found) {
            let nearest = Some((found.unit, found.score));
            pages.push(Fused { by_vectors: Some(rank), nearest, ..named(found.page) });
        }
        for (rank, found) in (1..).zip(&by_words) {
            match pages.iter_mut().find(|there| there.page == found.page) {
                Some(there) => there.by_words = Some(rank),
                None => pages.push(Fused { by_words: Some(rank), ..named(found.page) }),
            }
        }
        let identifiers: Vec<_> = query.identifiers().map(|term| view.postings(term)).collect();
        let vote = |rank: Option<usize>| rank.map_or(0.0, |rank| 1.0 / (RANK_CONSTANT + rank as f64));
        for page in &mut pages {
            let units = view.units_of(page.page).unwrap_or_default();
            // At most as many as a query has terms.
            page.identifiers = identifiers.iter().map(|held| u32::from(held.any_in(&units))).sum();
            // Votes sum to less than 1, so they tell apart what holds as many identifiers.
            page.score = f64::from(page.identifiers) + (coverage * vote(page.by_words) + left * vote(page.by_vectors));
        }
        pages.retain(|page| page.score > 0.0);
        pages.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.page.cmp(&b.page)));
        Self { coverage, left, pages }
    }
}
