//! BM25 over units, by a plain scan of the units that may be seen.
//!
//! Every number that enters a score (how many units there are, how long they are, how many hold a term) is counted over
//! exactly the units handed in. Nothing is stored ahead, so nothing can come from a unit that is not.

use std::collections::HashMap;

/// Term frequency saturation.
const K1: f64 = 1.2;
/// How much a unit's length counts.
const B: f64 = 0.75;

/// A term's number. Only its identity is used: which numbers terms get plays no part in any answer.
pub(crate) type TermId = u32;

/// The terms seen so far.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(HashMap<Box<str>, TermId>);

impl Vocabulary {
    /// Gives the term's number, a new one when it has none.
    pub(crate) fn learn(&mut self, term: &str) -> TermId {
        if let Some(id) = self.0.get(term) {
            return *id;
        }
        // 2^32 distinct terms do not fit into memory; saturating merges terms instead of failing.
        let id = TermId::try_from(self.0.len()).unwrap_or(TermId::MAX);
        self.0.insert(term.into(), id);
        id
    }

    /// Gives the distinct known terms of a query in order of first occurrence.
    pub(crate) fn query(&self, text: &str) -> Vec<TermId> {
        let mut ids = Vec::new();
        let mut seen = std::collections::HashSet::new();
        crate::text::terms(text, |term| {
            if let Some(id) = self.0.get(term)
                && seen.insert(*id)
            {
                ids.push(*id);
            }
        });
        ids
    }
}

/// The best score of each group that has one above zero, in no promised order. `units` gives (group, terms of the unit).
///
/// Sums run over the query's terms in their order, so equal input gives equal bits.
pub(crate) fn best_by_group<'a>(query: &[TermId], units: impl Iterator<Item = (u32, &'a [TermId])>) -> Vec<(u32, f64)> {
    if query.is_empty() {
        return Vec::new();
    }
    let positions: HashMap<TermId, usize> = query.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let sieve = query.iter().fold(0_u64, |bits, id| bits | bit(*id));
    let mut holders = vec![0_u64; query.len()];
    let mut counted: Vec<Matched> = Vec::new();
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut local: Vec<usize> = Vec::new();
    let (mut total_units, mut total_terms) = (0_u64, 0_u64);
    for (group, terms) in units {
        total_units += 1;
        total_terms += terms.len() as u64;
        local.clear();
        for id in terms {
            if sieve & bit(*id) != 0
                && let Some(at) = positions.get(id)
            {
                local.push(*at);
            }
        }
        if local.is_empty() {
            continue;
        }
        local.sort_unstable();
        let from = found.len();
        for same in local.chunk_by(|a, b| a == b) {
            if let [first, ..] = same {
                if let Some(count) = holders.get_mut(*first) {
                    *count += 1;
                }
                found.push((*first, same.len() as f64));
            }
        }
        counted.push(Matched { group, length: terms.len() as f64, from, to: found.len() });
    }
    let average = total_terms as f64 / total_units as f64;
    let weights: Vec<f64> = holders
        .iter()
        .map(|held| {
            let held = *held as f64;
            ((total_units as f64 - held + 0.5) / (held + 0.5)).ln_1p()
        })
        .collect();
    let mut best: Vec<(u32, f64)> = Vec::new();
    for unit in &counted {
        let norm = K1 * (1.0 - B + B * unit.length / average);
        let mut score = 0.0;
        for (at, frequency) in found.get(unit.from..unit.to).unwrap_or_default() {
            score += weights.get(*at).copied().unwrap_or_default() * frequency * (K1 + 1.0) / (frequency + norm);
        }
        match best.last_mut() {
            Some((group, top)) if *group == unit.group => *top = top.max(score),
            _ => best.push((unit.group, score)),
        }
    }
    best.retain(|(_, score)| *score > 0.0);
    best
}

struct Matched {
    group: u32,
    length: f64,
    from: usize,
    to: usize,
}

fn bit(id: TermId) -> u64 {
    1 << (id & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(query: &str, units: &[(u32, &str)]) -> Vec<(u32, f64)> {
        let mut vocabulary = Vocabulary::default();
        let learned: Vec<(u32, Vec<TermId>)> = units
            .iter()
            .map(|(group, text)| {
                let mut ids = Vec::new();
                crate::text::terms(text, |term| ids.push(vocabulary.learn(term)));
                (*group, ids)
            })
            .collect();
        best_by_group(&vocabulary.query(query), learned.iter().map(|(group, ids)| (*group, ids.as_slice())))
    }

    #[test]
    fn a_group_has_the_score_of_its_best_unit() {
        let best = scores("red apple", &[(1, "red red"), (1, "red apple"), (2, "red"), (3, "green pear")]);
        assert_eq!(best.iter().map(|(group, _)| *group).collect::<Vec<_>>(), [1, 2], "no match, no score");
        assert!(best[0].1 > best[1].1);
    }

    #[test]
    fn a_term_in_every_unit_still_counts_for_more_than_nothing() {
        assert!(scores("a", &[(1, "a"), (2, "a")]).iter().all(|(_, score)| *score > 0.0));
    }

    #[test]
    fn nothing_asked_or_nothing_known_gives_nothing() {
        assert_eq!(scores("", &[(1, "a")]), []);
        assert_eq!(scores("?!", &[(1, "a")]), []);
        assert_eq!(scores("b", &[(1, "a")]), []);
        assert_eq!(scores("a", &[]), []);
    }
}
