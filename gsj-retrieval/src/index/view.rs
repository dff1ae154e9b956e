//! What pages 1..T of a case hold, and nothing else.

use super::layout::{Before, Layout, Parts, pair};
use std::ops::Range;

/// Pages 1..T of one case.
///
/// It is made once, by cutting every part of the index after page T; postings, which are ordered by term, are cut where
/// they are looked up. No method gives anything of a later page, and none makes T greater (retrieval.md section 6).
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    parts: Parts<'a>,
    timestep: u32,
    term_count: usize,
    /// What stands on pages 1..T.
    seen: Before,
}

/// Where the units of a view hold one term: the units, ascending, and for each how often and where first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Postings<'a> {
    holders: &'a [[u8; 4]],
    details: &'a [[u8; 2]],
}

/// A page, and the first unit behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageUnits {
    pub(super) number: u32,
    pub(super) end: usize,
}

impl<'a> View<'a> {
    /// `None` unless the case has a page T.
    pub(super) fn cut(layout: &Layout, bytes: &'a [u8], timestep: u32) -> Option<Self> {
        let last = usize::try_from(timestep).ok().filter(|last| (1..=layout.page_count).contains(last))?;
        let mut parts = layout.parts(bytes);
        parts.pages = parts.pages.get(..=last)?;
        let seen = Before::read(parts.pages.last()?);
        parts.units = parts.units.get(..seen.units)?;
        parts.lengths = parts.lengths.get(..seen.units)?;
        parts.text = parts.text.get(..seen.text)?;
        Some(Self { parts, timestep, term_count: layout.term_count, seen })
    }

    /// The timestep T, which is also the number of visible pages.
    #[must_use]
    pub fn timestep(&self) -> u32 {
        self.timestep
    }

    /// The text of a page, or nothing for a page that is not in view.
    #[must_use]
    pub fn page(&self, number: u32) -> Option<&'a str> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let [start, end] = self.parts.pages.get(at..at + 2)? else { return None };
        std::str::from_utf8(self.parts.text.get(Before::read(start).text..Before::read(end).text)?).ok()
    }

    /// How many units (sentences, headings, rows) there are.
    pub(super) fn unit_count(&self) -> usize {
        self.seen.units
    }

    /// How many terms an average unit has.
    pub(super) fn average_length(&self) -> f64 {
        self.seen.terms as f64 / self.seen.units as f64
    }

    /// The units of a page, or nothing for a page that is not in view.
    pub(super) fn units_of(&self, number: u32) -> Option<Range<usize>> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let [start, end] = self.parts.pages.get(at..at + 2)? else { return None };
        Some(Before::read(start).units..Before::read(end).units.min(self.seen.units))
    }

    /// The page that holds a unit; of a unit that is not in view, the last page.
    pub(super) fn page_of(&self, unit: usize) -> PageUnits {
        let starts = self.parts.pages.get(1..).unwrap_or_default();
        let before = starts.partition_point(|entry| Before::read(entry).units <= unit);
        let end = starts.get(before).map_or(usize::MAX, |entry| Before::read(entry).units);
        PageUnits { number: u32::try_from(before + 1).unwrap_or(u32::MAX).min(self.timestep), end }
    }

    /// How many terms a unit has.
    pub(super) fn length(&self, unit: usize) -> u16 {
        self.parts.lengths.get(unit).map_or(0, |length| u16::from_le_bytes(*length))
    }

    /// Where a unit stands in its page's text, in bytes.
    pub(super) fn place(&self, unit: usize) -> Range<usize> {
        let (start, end) = self.parts.units.get(unit).map_or((0, 0), pair);
        start..end
    }

    /// Where a term stands in view; empty when nowhere.
    pub(super) fn postings(&self, term: &str) -> Postings<'a> {
        self.find(term).unwrap_or_default()
    }

    fn find(&self, term: &str) -> Option<Postings<'a>> {
        let entry = |at: usize| self.parts.terms.get(at).map(pair);
        let name = |at: usize| self.parts.names.get(entry(at)?.0..entry(at + 1)?.0);
        let (mut low, mut high) = (0, self.term_count);
        while low < high {
            let middle = low.midpoint(high);
            if name(middle)? < term.as_bytes() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == self.term_count || name(low)? != term.as_bytes() {
            return None;
        }
        let range = entry(low)?.1..entry(low + 1)?.1;
        let all = self.parts.holders.get(range.clone())?;
        let held = all.partition_point(|holder| unit_of(*holder) < self.seen.units);
        Some(Postings { holders: all.get(..held)?, details: self.parts.details.get(range)?.get(..held)? })
    }
}

fn unit_of(holder: [u8; 4]) -> usize {
    usize::try_from(u32::from_le_bytes(holder)).unwrap_or(usize::MAX)
}

impl Postings<'_> {
    /// How many units hold the term.
    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    /// Each unit and how often it holds the term.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u8)> {
        self.holders.iter().zip(self.details).map(|(holder, [count, _])| (unit_of(*holder), *count))
    }

    /// Some of them, by their places in this list.
    pub(super) fn range(&self, range: Range<usize>) -> Self {
        Self {
            holders: self.holders.get(range.clone()).unwrap_or_default(),
            details: self.details.get(range).unwrap_or_default(),
        }
    }

    /// The place of the first at or behind a unit, of those from `from` on.
    pub(super) fn seek(&self, from: usize, unit: usize) -> usize {
        let holders = self.holders.get(from..).unwrap_or_default();
        // Steps that double, then halves: what is looked for is often near.
        let mut step = 1;
        while holders.get(step).is_some_and(|holder| unit_of(*holder) < unit) {
            step *= 2;
        }
        let low = step / 2;
        let near = holders.get(low..holders.len().min(step + 1)).unwrap_or_default();
        from + low + near.partition_point(|holder| unit_of(*holder) < unit)
    }

    /// How often a unit holds the term at most.
    pub(super) fn most(&self) -> u8 {
        self.details.iter().fold(0, |most, [count, _]| most.max(*count))
    }

    /// Whether any of these units holds the term.
    pub(super) fn any_in(&self, units: &Range<usize>) -> bool {
        let at = self.holders.partition_point(|holder| unit_of(*holder) < units.start);
        self.holders.get(at).is_some_and(|holder| unit_of(*holder) < units.end)
    }

    /// How often a unit holds the term, and where first.
    pub(super) fn in_unit(&self, unit: usize) -> Option<(u8, u8)> {
        let at = self.holders.binary_search_by_key(&unit, |holder| unit_of(*holder)).ok()?;
        self.details.get(at).map(|[count, first]| (*count, *first))
    }
}
