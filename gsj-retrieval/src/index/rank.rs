//! Which pages answer a query: BM25 over units, a page being as good as its best unit.
//!
//! Every number that enters a score is counted over the units in view. Terms are taken in the order of their weight, and
//! a score is always their sum in that order, so equal input gives equal bits.

mod best;

use super::view::{Postings, View};
use crate::text::{Analyzer, is_function_word};
pub(super) use best::Best;
use std::collections::HashMap;

/// Term frequency saturation.
const K1: f64 = 1.2;
/// How much a unit's length counts.
const B: f64 = 0.75;
/// What a function word weighs beside another word that is as rare.
const FUNCTION_WORD: f64 = 0.3;
/// What two neighbours of the query add where they stand close together, beside the lighter one's weight.
const NEARBY: f64 = 0.2;
/// How far apart is still close.
const NEAR: u8 = 3;
/// How many digits a number has that may just count something.
const YEAR: usize = 4;
/// How many terms of a query count, and how many pairs of neighbours, each of which is looked for in every unit that
/// could rank; the rest is ignored. A query without repetitions has fewer pairs than terms.
const MOST_TERMS: usize = 64;

/// The code that a score depends on, for fingerprints.
pub(super) const CODE: &[&str] = &[
    include_str!("rank.rs"),
    include_str!("rank/best.rs"),
    include_str!("view.rs"),
    include_str!("build.rs"),
    include_str!("layout.rs"),
];

/// A query, taken apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// The distinct terms in order of first occurrence, and what each counts.
    terms: Vec<(String, f64)>,
    /// Neighbours but for function words between them, by their places in `terms`.
    neighbours: Vec<(usize, usize)>,
}

/// Whether a term names one thing rather than says something: joined or mixed with a digit in it, or a long number.
fn is_identifier(term: &str) -> bool {
    let digits = term.bytes().filter(u8::is_ascii_digit).count();
    digits > 0 && (term.contains('-') || term.chars().any(char::is_alphabetic) || digits > YEAR)
}

impl Query {
    /// How many pairs of neighbours count.
    #[cfg(test)]
    pub(super) fn pairs(&self) -> usize {
        self.neighbours.len()
    }

    pub(crate) fn of(text: &str) -> Self {
        let mut query = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut last = None;
        Analyzer::default().each_word(text, |word, term| {
            let place = match places.get(term) {
                Some(place) => *place,
                None if query.terms.len() == MOST_TERMS => return,
                None => {
                    let place = query.terms.len();
                    places.insert(term.to_owned(), place);
                    query.terms.push((term.to_owned(), if is_function_word(word) { FUNCTION_WORD } else { 1.0 }));
                    place
                }
            };
            // "of the" says nothing by standing together; "loading (of the) bay" does.
            if is_function_word(word) {
                return;
            }
            if let Some(last) = last.replace(place).filter(|last| *last != place)
                && query.neighbours.len() < MOST_TERMS
                && !query.neighbours.contains(&(last, place))
            {
                query.neighbours.push((last, place));
            }
        });
        query
    }

    /// The terms that are identifiers.
    pub(super) fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(term, _)| term.as_str()).filter(|term| is_identifier(term))
    }
}

/// A page and its best unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) page: u32,
    pub(crate) unit: usize,
    pub(crate) score: f64,
}

/// What one term adds to a unit's score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) term: String,
    /// How many units in view hold it.
    pub(crate) held: usize,
    /// How often this one does.
    pub(crate) count: u8,
    pub(crate) adds: f64,
}

/// A query over a view: the lists of its terms, heaviest first.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    view: View<'a>,
    lists: Vec<List<'a>>,
    /// Neighbours by their places in `lists`, and what standing next to each other adds.
    neighbours: Vec<(usize, usize, f64)>,
    /// What the terms that stand nowhere in view would weigh, but for function words.
    absent: f64,
    average: f64,
    norms: Vec<f64>,
}

#[derive(Debug)]
struct List<'a> {
    term: String,
    weight: f64,
    /// Whether the query has it as a function word.
    function: bool,
    postings: Postings<'a>,
}

impl<'a> Ranking<'a> {
    pub(crate) fn new(view: View<'a>, query: &Query) -> Self {
        let units = view.unit_count() as f64;
        let mut lists: Vec<(usize, List<'a>)> = Vec::with_capacity(query.terms.len());
        let mut absent = 0.0;
        for (place, (term, counts)) in query.terms.iter().enumerate() {
            let postings = view.postings(term);
            let held = postings.len() as f64;
            let function = *counts < 1.0;
            let weight = counts * ((units - held + 0.5) / (held + 0.5)).ln_1p();
            if postings.len() > 0 {
                lists.push((place, List { term: term.clone(), weight, function, postings }));
            } else if !function {
                absent += weight;
            }
        }
        lists.sort_by(|(_, a), (_, b)| b.weight.total_cmp(&a.weight));
        let at = |place: usize| lists.iter().position(|(from, _)| *from == place);
        let weight = |at: usize| lists.get(at).map_or(0.0, |(_, list)| list.weight);
        let neighbours = query.neighbours.iter().filter_map(|(a, b)| {
            let (a, b) = (at(*a)?, at(*b)?);
            Some((a, b, NEARBY * weight(a).min(weight(b))))
        });
        let neighbours = neighbours.collect();
        let average = view.average_length();
        let mut ranking = Self {
            view,
            lists: lists.into_iter().map(|(_, list)| list).collect(),
            neighbours,
            absent,
            average,
            norms: Vec::new(),
        };
        ranking.norms = (0..=u8::MAX).map(|length| ranking.norm_of(u16::from(length))).collect();
        ranking
    }

    fn norm_of(&self, length: u16) -> f64 {
        K1 * (1.0 - B + B * f64::from(length) / self.average)
    }

    /// How a unit's length dampens what it holds.
    fn norm(&self, unit: usize) -> f64 {
        let length = self.view.length(unit);
        self.norms.get(usize::from(length)).copied().unwrap_or_else(|| self.norm_of(length))
    }

    /// A unit's score, alone.
    fn complete(&self, unit: usize) -> f64 {
        let norm = self.norm(unit);
        let found = self.lists.iter().filter_map(|list| Some((list.weight, list.postings.in_unit(unit)?.0)));
        let sum = found.fold(0.0, |sum, (weight, count)| sum + gain(weight, count, norm));
        self.nearby(unit).fold(sum, |sum, (_, _, adds)| sum + adds)
    }

    /// The neighbours that stand close together in a unit, and what that adds.
    fn nearby(&self, unit: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        self.near(move |list| Some(self.lists.get(list)?.postings.in_unit(unit)?.1))
    }

    /// The same, from where each list stands first in the unit.
    fn near(&self, first: impl Fn(usize) -> Option<u8>) -> impl Iterator<Item = (usize, usize, f64)> {
        self.neighbours.iter().filter_map(move |(a, b, adds)| {
            let apart = first(*a)?.abs_diff(first(*b)?);
            (1..=NEAR).contains(&apart).then(|| (*a, *b, adds / f64::from(apart)))
        })
    }

    /// How much of the query a unit holds, by the weight of its terms but for function words: 0 to 1.
    pub(super) fn coverage(&self, unit: usize) -> f64 {
        let (mut here, mut all) = (0.0, self.absent);
        for list in self.lists.iter().filter(|list| !list.function) {
            all += list.weight;
            if list.postings.in_unit(unit).is_some() {
                here += list.weight;
            }
        }
        if all > 0.0 { here / all } else { 0.0 }
    }

    /// The best unit of a page, whatever other pages there are.
    pub(crate) fn best_of(&self, page: u32) -> Option<Found> {
        let scored = self.view.units_of(page)?.map(|unit| Found { page, unit, score: self.complete(unit) });
        scored.filter(|found| found.score > 0.0).reduce(|top, found| if found.score > top.score { found } else { top })
    }

    /// What each term, and each pair of neighbours, adds to a unit's score.
    pub(crate) fn parts(&self, unit: usize) -> Vec<Part> {
        let norm = self.norm(unit);
        let terms = self.lists.iter().map(|list| {
            let count = list.postings.in_unit(unit).map_or(0, |(count, _)| count);
            let adds = if count == 0 { 0.0 } else { gain(list.weight, count, norm) };
            Part { term: list.term.clone(), held: list.postings.len(), count, adds }
        });
        let term = |list: usize| self.lists.get(list).map_or("", |list| &list.term);
        let pairs = self.nearby(unit).map(|(a, b, adds)| Part {
            term: format!("{} {}", term(a), term(b)),
            held: 0,
            count: 1,
            adds,
        });
        terms.chain(pairs).collect()
    }
}

/// What a term adds to a unit that holds it `count` times.
fn gain(weight: f64, count: u8, norm: f64) -> f64 {
    let count = f64::from(count);
    weight * count * (K1 + 1.0) / (count + norm)
}
