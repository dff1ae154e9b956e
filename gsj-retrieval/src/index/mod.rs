//! The index of one case, whose every statistic can be evaluated for a prefix of its pages.

mod build;
mod fuse;
mod layout;
mod rank;
mod view;

use crate::RetrievalError;
use crate::bytes::Bytes;
use crate::text::units;
use crate::vectors::{Vector, VectorView};
pub(crate) use fuse::CODE as FUSE_CODE;
use fuse::Fusion;
use layout::Layout;
pub(crate) use rank::{Query, Ranking};
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use std::path::Path;

pub use view::View;

/// The code that an answer depends on, for fingerprints.
pub(crate) const CODE: &[&str] = rank::CODE;

/// One page that answers a query. Serialises as the tool's result does (retrieval.md section 5).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageHit {
    /// The page's number, from 1.
    pub page: u32,
    /// The page's path in the checkout, `md/page_NNNN.md`.
    pub file: String,
    /// How well the page answers; greater is better. Comparable within one answer only.
    pub score: f64,
    /// The whole text of the page, byte for byte.
    pub text: String,
}

/// Why a page ranks where it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The page's number.
    pub page: u32,
    /// Its score: that of its best unit, unless `fused` says otherwise.
    pub score: f64,
    /// The unit (sentence, heading, row) that scores best by words; the nearest one where no word is shared.
    pub unit: String,
    /// What each term of the query adds to its score by words, heaviest first, then each pair of neighbours that stand
    /// close together.
    pub terms: Vec<Contribution>,
    /// How its place came about, where vectors had a say; the score is then the fused one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fused: Option<FusedRank>,
}

/// How the rankings by words and by vectors put a page where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FusedRank {
    /// How many of the query's identifiers the page holds; that comes before everything else.
    pub identifiers: u32,
    /// Its rank by words, from 1; absent when that names it not or too late.
    pub rank_by_words: Option<usize>,
    /// What a vote by words counts for this query, 0 to 1: how much of its words, but for function words, the sentence that
    /// leads by words holds.
    pub weight_of_words: f64,
    /// What a vote by vectors counts for this query, 0.01 to 1: what that sentence leaves of it.
    pub weight_of_vectors: f64,
    /// Its rank by vectors, from 1; absent as above.
    pub rank_by_vectors: Option<usize>,
    /// The cosine between the query and the page's nearest sentence, read among those beside it.
    pub cosine: Option<f64>,
    /// That sentence.
    pub nearest: Option<String>,
}

/// What one term adds to a score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// The term: a word's stem, an identifier, or two terms that stand close together.
    pub term: String,
    /// How many units in view hold it; 0 for a pair.
    pub held_by: usize,
    /// How often the unit holds it.
    pub count: u8,
    /// What that adds.
    pub adds: f64,
}

/// The index of one case: its pages' texts, and where each term stands.
///
/// ```
/// use gsj_retrieval::CaseIndex;
///
/// let index = CaseIndex::build(&["The crate was opened in May.", "The permit is SN-0100031."])?;
/// let view = index.view(2).expect("two pages");
/// assert_eq!(view.search("permits", 5)[0].page, 2);
/// assert!(index.view(1).expect("a page").search("permits", 5).is_empty());
/// assert!(index.view(3).is_none());
/// # Ok::<(), gsj_retrieval::RetrievalError>(())
/// ```
pub struct CaseIndex {
    bytes: Bytes,
    layout: Layout,
}

impl fmt::Debug for CaseIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaseIndex").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl CaseIndex {
    /// Indexes the texts of pages 1..N, in memory.
    ///
    /// # Errors
    /// When the case is too large: over four thousand million places of terms, or a page over 4 GiB.
    pub fn build<T: AsRef<str>>(pages: &[T]) -> Result<Self, RetrievalError> {
        Self::of(pages, units)
    }

    /// Indexes texts that are one unit each, in memory.
    pub(crate) fn of_records<T: AsRef<str>>(texts: &[T]) -> Result<Self, RetrievalError> {
        Self::of(texts, |text| std::iter::once(0..text.len()).collect())
    }

    fn of<T: AsRef<str>>(texts: &[T], units: fn(&str) -> Vec<Range<usize>>) -> Result<Self, RetrievalError> {
        let (bytes, layout) = build::build(texts, units).ok_or(RetrievalError::TooLarge)?;
        Ok(Self { bytes: Bytes::Owned(bytes), layout })
    }

    /// Maps an index that [`CaseIndex::as_bytes`] gave, from a file that nobody changes any more.
    ///
    /// # Errors
    /// When the file cannot be read or is no index.
    pub fn open(path: &Path) -> Result<Self, RetrievalError> {
        let failed = |source| RetrievalError::Read { path: path.to_owned(), source };
        let mapped = Bytes::map(path).map_err(failed)?;
        let layout = Layout::read(&mapped).ok_or_else(|| RetrievalError::NoIndex { path: path.to_owned() })?;
        Ok(Self { bytes: mapped, layout })
    }

    /// The index as it is kept in a file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many pages the whole case has. Never to be told to an episode.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.layout.page_count
    }

    /// Pages 1..`timestep`, or nothing when there are not that many, or none are asked for.
    #[must_use]
    pub fn view(&self, timestep: u32) -> Option<View<'_>> {
        View::cut(&self.layout, self.as_bytes(), timestep)
    }
}

impl View<'_> {
    /// Finds at most `k` pages, best first, equal scores by page. Pages that hold no term of the query are left out.
    #[must_use]
    pub fn search(&self, query: &str, k: usize) -> Vec<PageHit> {
        let ranking = Ranking::new(*self, &Query::of(query));
        ranking.best(k).into_iter().filter_map(|found| self.hit(found.page, found.score)).collect()
    }

    /// Why a page ranks where it does; nothing for a page that is not in view or holds no term of the query.
    #[must_use]
    pub fn explain(&self, query: &str, page: u32) -> Option<Explanation> {
        let ranking = Ranking::new(*self, &Query::of(query));
        let found = ranking.best_of(page)?;
        let terms = ranking.parts(found.unit).into_iter().map(|part| Contribution {
            term: part.term,
            held_by: part.held,
            count: part.count,
            adds: part.adds,
        });
        let unit = self.page(page)?.get(self.place(found.unit))?.trim().to_owned();
        Some(Explanation { page, score: found.score, unit, terms: terms.collect(), fused: None })
    }

    /// As [`View::search`], also by the vectors of the same pages: finds pages that say it in other words.
    pub(crate) fn search_near(&self, vectors: VectorView<'_>, query: &str, vector: &Vector, k: usize) -> Vec<PageHit> {
        let fusion = Fusion::new(*self, vectors, &Query::of(query), vector);
        fusion.pages.iter().take(k).filter_map(|found| self.hit(found.page, found.score)).collect()
    }

    /// As [`View::explain`], for [`View::search_near`].
    pub(crate) fn explain_near(
        &self,
        vectors: VectorView<'_>,
        query: &str,
        vector: &Vector,
        page: u32,
    ) -> Option<Explanation> {
        let fusion = Fusion::new(*self, vectors, &Query::of(query), vector);
        let found = fusion.pages.iter().find(|found| found.page == page)?;
        let text = self.page(page)?;
        let nearest = found.nearest.and_then(|(at, _)| Some(text.get(vectors.place(at))?.trim().to_owned()));
        let words = self.explain(query, page);
        let (unit, terms) = match words {
            Some(words) => (words.unit, words.terms),
            None => (nearest.clone().unwrap_or_default(), Vec::new()),
        };
        let fused = FusedRank {
            identifiers: found.identifiers,
            rank_by_words: found.by_words,
            weight_of_words: fusion.coverage,
            weight_of_vectors: fusion.left,
            rank_by_vectors: found.by_vectors,
            cosine: found.nearest.map(|(_, cosine)| cosine),
            nearest,
        };
        Some(Explanation { page, score: found.score, unit, terms, fused: Some(fused) })
    }

    fn hit(&self, page: u32, score: f64) -> Option<PageHit> {
        Some(PageHit { page, file: format!("md/page_{page:04}.md"), score, text: self.page(page)?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_pairs_all_its_words_has_no_more_pairs_than_one_that_does_not() {
        let words: Vec<String> = (1_000..1_064).map(|word: u32| word.to_string()).collect();
        assert_eq!(Query::of(&words.join(" ")).pairs(), 63);
        let all = words.iter().flat_map(|a| words.iter().map(move |b| format!("{a} {b}")));
        assert_eq!(Query::of(&all.collect::<Vec<_>>().join(" ")).pairs(), 64);
    }
}
