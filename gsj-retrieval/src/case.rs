//! One case: its pages, and what a reader at a timestep sees of them.

use crate::scan::{TermId, Vocabulary, best_by_group};
use crate::text::{terms, units};
use serde::Serialize;
use std::cmp::Ordering;

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

/// The pages of one case, 1..N.
#[derive(Debug)]
pub(crate) struct Case {
    pages: Vec<Page>,
    /// The recorded timesteps, ascending.
    pub(crate) timesteps: Vec<u32>,
    /// The commit that the pages were read from, where there is one.
    pub(crate) commit: Option<String>,
}

#[derive(Debug)]
struct Page {
    text: String,
    terms: Vec<TermId>,
    /// Where each unit ends in `terms`.
    ends: Vec<usize>,
}

impl Case {
    pub(crate) fn new(texts: Vec<String>, vocabulary: &mut Vocabulary) -> Self {
        let pages = texts
            .into_iter()
            .map(|text| {
                let mut ids = Vec::new();
                let mut ends = Vec::new();
                for unit in units(&text) {
                    terms(text.get(unit).unwrap_or_default(), |term| ids.push(vocabulary.learn(term)));
                    ends.push(ids.len());
                }
                Page { text, terms: ids, ends }
            })
            .collect();
        Self { pages, timesteps: Vec::new(), commit: None }
    }

    /// How many pages the whole case has. Never to be told to an episode.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Gives pages 1..`timestep`, or nothing when there are not that many, or none are asked for.
    pub(crate) fn view<'a>(&'a self, timestep: u32, vocabulary: &'a Vocabulary) -> Option<View<'a>> {
        let count = usize::try_from(timestep).ok().filter(|count| *count > 0)?;
        Some(View { pages: self.pages.get(..count)?, timestep, vocabulary })
    }
}

/// Pages 1..T of one case. It borrows those pages alone, so there is no way from a view to a later page.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pages: &'a [Page],
    timestep: u32,
    vocabulary: &'a Vocabulary,
}

impl View<'_> {
    /// The timestep T, which is also the number of visible pages.
    #[must_use]
    pub fn timestep(&self) -> u32 {
        self.timestep
    }

    /// Finds at most `k` pages, best first, equal scores by page. Pages that hold no term of the query are left out.
    #[must_use]
    pub fn search(&self, query: &str, k: usize) -> Vec<PageHit> {
        let numbered = (1_u32..).zip(self.pages);
        let units = numbered.flat_map(|(number, page)| {
            let mut start = 0;
            page.ends.iter().map(move |end| {
                let unit = page.terms.get(start..*end).unwrap_or_default();
                start = *end;
                (number, unit)
            })
        });
        let mut best = best_by_group(&self.vocabulary.query(query), units);
        best.sort_by(|a, b| by_score(a.1, b.1).then(a.0.cmp(&b.0)));
        best.truncate(k);
        best.into_iter()
            .filter_map(|(page, score)| {
                let found = self.pages.get(usize::try_from(page).ok()?.checked_sub(1)?)?;
                Some(PageHit { page, file: format!("md/page_{page:04}.md"), score, text: found.text.clone() })
            })
            .collect()
    }
}

/// Higher scores first.
pub(crate) fn by_score(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}
