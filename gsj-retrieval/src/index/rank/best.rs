//! The best pages, without adding up all that could be.
//!
//! Units are taken a window at a time. Once the best pages so far are ahead by more than the lightest lists could give, a
//! unit that holds nothing but those can't come among the best: such lists are gone through no more. What they add to the
//! units that may still count is added from the list where these are many, and looked up where they are few. What is left
//! out, and how it was summed, changes no bit of an answer.

use super::super::view::{PageUnits, Postings};
use super::{Found, Ranking, gain};

/// Sums that are the same but for the order of their terms differ by far less.
const SLACK: f64 = 1.0 + 1e-9;
/// How many units are taken at a time: so many that their sums stay close to the processor.
const WINDOW: usize = 2_048;
/// How many places of a list are gone through in the time of looking one up.
const LOOKUP: usize = 16;
/// How many lengths of units there are bounds for; longer ones share the last.
const LENGTHS: usize = 128;
/// How often a term stands in a unit at most where what it adds is in a table.
const TABLE_COUNTS: u8 = 4;
/// How long a list is that a table is worth.
const TABLED: usize = 2_048;

impl Ranking<'_> {
    /// The `k` best pages that hold a term of the query, best first, equal scores by page.
    pub(crate) fn best(&self, k: usize) -> Vec<Found> {
        if k == 0 {
            return Vec::new();
        }
        let mut search = Search::new(self, k);
        // How many lists are gone through.
        let mut walked = self.lists.len();
        for start in (0..self.view.unit_count()).step_by(WINDOW) {
            while walked > 0 && search.rest(walked - 1) * SLACK <= search.best.entry() {
                walked -= 1;
            }
            if walked == 0 {
                break;
            }
            search.window(start, walked);
        }
        search.best.offer(search.top);
        search.best.found
    }
}

struct Search<'r, 'a> {
    ranking: &'r Ranking<'a>,
    cursors: Vec<Cursor<'a>>,
    /// What the lists from each on, and the neighbours, can add to a unit at most: a row for each list, by the unit's
    /// length.
    rest: Vec<[f64; LENGTHS]>,
    sums: Sums,
    best: Best,
    /// The best unit of the page that `page` is.
    top: Option<Found>,
    page: PageUnits,
}

impl<'r, 'a> Search<'r, 'a> {
    fn new(ranking: &'r Ranking<'a>, k: usize) -> Self {
        let nearby: f64 = ranking.neighbours.iter().map(|(_, _, adds)| adds).sum();
        let mut row = [nearby; LENGTHS];
        let mut rest = vec![row];
        for list in ranking.lists.iter().rev() {
            let most = list.postings.most();
            for (sum, norm) in row.iter_mut().zip(&ranking.norms) {
                *sum += gain(list.weight, most, *norm);
            }
            rest.push(row);
        }
        rest.reverse();
        let cursor = |list: &super::List<'a>| {
            let counts = if list.postings.len() > TABLED { TABLE_COUNTS } else { 0 };
            let gains =
                (1..=counts).flat_map(|count| ranking.norms.iter().map(move |norm| gain(list.weight, count, *norm)));
            Cursor { postings: list.postings, weight: list.weight, gains: gains.collect(), from: 0, to: 0 }
        };
        let cursors = ranking.lists.iter().map(cursor).collect();
        let page = PageUnits { number: 0, end: 0 };
        Self { ranking, cursors, rest, sums: Sums::new(), best: Best::new(k), top: None, page }
    }

    /// What the lists from this on, and the neighbours, can add to any unit at most.
    fn rest(&self, list: usize) -> f64 {
        // No unit that holds a term is shorter than one term, and the shorter, the more.
        self.rest.get(list).map_or(0.0, |row| row[1])
    }

    /// Forgets the window's units that can't come among the best by what the lists from `summed` on add; tells how many
    /// are left.
    fn keep(&mut self, start: usize, summed: usize) -> usize {
        let Some(rest) = self.rest.get(summed) else { return 0 };
        let view = self.ranking.view;
        self.sums.keep(self.best.entry(), |place| by_length(rest, view.length(start + place)))
    }

    /// Takes the units from `start` on that one of the `walked` first lists holds.
    fn window(&mut self, start: usize, walked: usize) {
        for cursor in self.cursors.iter_mut().take(walked) {
            cursor.from = cursor.to;
            cursor.to = cursor.postings.seek(cursor.from, start + WINDOW);
            cursor.add(self.ranking, start, |place, gain| self.sums.add(place, gain));
        }
        let mut summed = walked;
        let mut left = self.keep(start, summed);
        if left == 0 {
            return;
        }
        for cursor in self.cursors.iter_mut().skip(walked) {
            cursor.from = cursor.postings.seek(cursor.to, start);
            cursor.to = cursor.postings.seek(cursor.from, start + WINDOW);
        }
        while let Some(cursor) = self.cursors.get(summed).filter(|cursor| cursor.to - cursor.from <= LOOKUP * left) {
            cursor.add(self.ranking, start, |place, gain| self.sums.add_to_kept(place, gain));
            summed += 1;
            left = self.keep(start, summed);
        }
        let mut at = 0;
        while let Some((place, sum)) = self.sums.take(&mut at) {
            self.finish(start + place, sum, summed);
        }
    }

    /// Completes the sum of a unit, as far as it may count.
    fn finish(&mut self, unit: usize, mut sum: f64, summed: usize) {
        if unit >= self.page.end {
            self.best.offer(self.top.take());
        }
        let to_beat = self.top.map_or(0.0, |top| top.score).max(self.best.entry());
        let (length, norm) = (self.ranking.view.length(unit), self.ranking.norm(unit));
        for (cursor, rest) in self.cursors.iter().zip(&self.rest).skip(summed) {
            if (sum + by_length(rest, length)) * SLACK <= to_beat {
                return;
            }
            if let Some((count, _)) = cursor.find(unit) {
                sum += gain(cursor.weight, count, norm);
            }
        }
        if self.rest.last().is_some_and(|nearby| (sum + by_length(nearby, length)) * SLACK <= to_beat) {
            return;
        }
        let first = |list: usize| Some(self.cursors.get(list)?.find(unit)?.1);
        let score = self.ranking.near(first).fold(sum, |sum, (_, _, adds)| sum + adds);
        if score > to_beat {
            if unit >= self.page.end {
                self.page = self.ranking.view.page_of(unit);
            }
            self.top = Some(Found { page: self.page.number, unit, score });
        }
    }
}

/// Of a row of bounds, the one for a length; a longer unit gets no more than the longest of the row.
fn by_length(row: &[f64; LENGTHS], length: u16) -> f64 {
    let [.., longest] = row;
    row.get(usize::from(length)).copied().unwrap_or(*longest)
}

/// One list, and which part of it stands in the window.
struct Cursor<'a> {
    postings: Postings<'a>,
    weight: f64,
    /// What the term adds by how often it stands there and the unit's length; empty for a short list.
    gains: Vec<f64>,
    from: usize,
    to: usize,
}

impl Cursor<'_> {
    /// Calls `each` with every unit in the window, by its place there, and what the term adds to it.
    fn add(&self, ranking: &Ranking<'_>, start: usize, mut each: impl FnMut(usize, f64)) {
        for (unit, count) in self.postings.range(self.from..self.to).iter() {
            let length = usize::from(ranking.view.length(unit));
            // A table of it spares a division, and a branch that often goes either way.
            let row = usize::from(count.wrapping_sub(1)) * ranking.norms.len();
            let gain = match self.gains.get(row + length).filter(|_| length < ranking.norms.len()) {
                Some(gain) => *gain,
                None => gain(self.weight, count, ranking.norm(unit)),
            };
            each(unit.wrapping_sub(start), gain);
        }
    }

    /// How often a unit of the window holds the term, and where first.
    fn find(&self, unit: usize) -> Option<(u8, u8)> {
        self.postings.range(self.from..self.to).in_unit(unit)
    }
}

/// The sums of one window's units, and which of them may count.
struct Sums {
    sums: [f64; WINDOW],
    kept: [u64; WINDOW / 64],
}

impl Sums {
    fn new() -> Self {
        Self { sums: [0.0; WINDOW], kept: [0; WINDOW / 64] }
    }

    fn add(&mut self, place: usize, gain: f64) {
        if let (Some(sum), Some(kept)) = (self.sums.get_mut(place), self.kept.get_mut(place / 64)) {
            *sum += gain;
            *kept |= 1 << (place % 64);
        }
    }

    fn add_to_kept(&mut self, place: usize, gain: f64) {
        if let (Some(sum), Some(kept)) = (self.sums.get_mut(place), self.kept.get(place / 64))
            && kept & (1 << (place % 64)) != 0
        {
            *sum += gain;
        }
    }

    /// Forgets those that can't beat `entry` even with `more`, which is given by their places; tells how many are left.
    fn keep(&mut self, entry: f64, more: impl Fn(usize) -> f64) -> usize {
        let mut left = 0;
        let chunks = self.kept.iter_mut().zip(self.sums.as_chunks_mut::<64>().0);
        for (start, (kept, sums)) in (0..).step_by(64).zip(chunks) {
            let mut rest = *kept;
            while rest != 0 {
                let place = rest.trailing_zeros();
                rest &= rest - 1;
                if let Some(sum) = sums.get_mut(place as usize)
                    && (*sum + more(start + place as usize)) * SLACK <= entry
                {
                    *sum = 0.0;
                    *kept &= !(1 << place);
                }
            }
            left += kept.count_ones() as usize;
        }
        left
    }

    /// The next one, which is forgotten; `at` is where to look from.
    fn take(&mut self, at: &mut usize) -> Option<(usize, f64)> {
        loop {
            let kept = self.kept.get_mut(*at)?;
            if *kept == 0 {
                *at += 1;
                continue;
            }
            let place = *at * 64 + kept.trailing_zeros() as usize;
            *kept &= *kept - 1;
            return Some((place, std::mem::take(self.sums.get_mut(place)?)));
        }
    }
}

/// The best pages so far, best first. Offered in the order of pages, equal ones stay in that order.
pub(in crate::index) struct Best {
    k: usize,
    pub(in crate::index) found: Vec<Found>,
}

impl Best {
    pub(in crate::index) fn new(k: usize) -> Self {
        Self { k, found: Vec::with_capacity(k.min(64) + 1) }
    }

    /// What a page must be better than to come in.
    pub(in crate::index) fn entry(&self) -> f64 {
        if self.found.len() < self.k { 0.0 } else { self.found.last().map_or(0.0, |last| last.score) }
    }

    pub(in crate::index) fn offer(&mut self, page: Option<Found>) {
        let Some(page) = page.filter(|page| page.score > self.entry()) else { return };
        let at = self.found.partition_point(|there| there.score >= page.score);
        self.found.insert(at, page);
        self.found.truncate(self.k);
    }
}
