//! The decisions: a small set of court decisions beside the case, the same for every episode.

use crate::RetrievalError;
use crate::index::{CaseIndex, Query, Ranking};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The set that is served when no other is configured: invented, in our own words.
pub(crate) const BUILTIN: &[u8] = include_bytes!("../data/decisions.json");

/// One decision as a file gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id, unique in the set; a file may call it `id`.
    #[serde(alias = "id")]
    pub decision_id: String,
    /// The court, as it is compared in `decision_stats`.
    pub court: String,
    /// The year.
    pub year: i64,
    /// The text.
    pub text: String,
    /// The first timestep at which the decision exists; absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_from_page: Option<u32>,
}

/// One decision that answers a query. Serialises as the tool's result does (retrieval.md section 5).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecisionHit {
    /// The decision's id.
    pub decision_id: String,
    /// The court.
    pub court: String,
    /// The year.
    pub year: i64,
    /// How well it answers; greater is better. Comparable within one answer only.
    pub score: f64,
    /// The text.
    pub text: String,
}

/// Which decisions are counted. Bounds are inclusive, the court is compared exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatsFilter {
    /// The first year.
    pub from_year: Option<i64>,
    /// The last year.
    pub to_year: Option<i64>,
    /// The court.
    pub court: Option<String>,
}

/// How many decisions there are; the maps hold only what was counted. Serialises as the tool's result does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DecisionStats {
    /// All that were counted.
    pub total: u64,
    /// By year, ascending.
    pub by_year: BTreeMap<i64, u64>,
    /// By court, in the order of the names.
    pub by_court: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub(crate) struct Decisions {
    /// Ordered by the page from which on they are visible, then by id, so that what a timestep sees stands first.
    entries: Vec<Decision>,
    index: CaseIndex,
    /// The SHA-256 of what the file says, however it spells it.
    digest: String,
}

/// The forms that a decisions file may have, besides one record a line.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Wrapped { decisions: Vec<Decision> },
    Bare(Vec<Decision>),
}

impl Decisions {
    /// Reads a JSON list of records, an object that holds the list as `decisions`, or one record a line.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, RetrievalError> {
        let bad = |problem: String| RetrievalError::Decisions { problem };
        let text = std::str::from_utf8(bytes).map_err(|error| bad(format!("not valid UTF-8 ({error})")))?;
        let mut decisions = Vec::new();
        match serde_json::from_str::<File>(text) {
            Ok(File::Wrapped { decisions: list } | File::Bare(list)) => decisions = list,
            Err(_) if text.trim_start().starts_with('{') => {
                for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
                    let decision =
                        serde_json::from_str(line).map_err(|error| bad(format!("line {number}: {error}")))?;
                    decisions.push(decision);
                }
            }
            Err(_) => {
                // An untagged enum does not say what is wrong; reading the list alone does.
                decisions = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
            }
        }
        let mut ids = BTreeSet::new();
        for decision in &decisions {
            if decision.decision_id.is_empty() {
                return Err(bad("a record has an empty decision_id".into()));
            }
            if !ids.insert(decision.decision_id.as_str()) {
                return Err(bad(format!("`{}` stands twice", decision.decision_id)));
            }
        }
        decisions.sort_by(|a, b| {
            (a.visible_from_page.unwrap_or(0), &a.decision_id).cmp(&(b.visible_from_page.unwrap_or(0), &b.decision_id))
        });
        let searched = |decision: &Decision| {
            format!("{} {} {} {}", decision.decision_id, decision.court, decision.year, decision.text)
        };
        let texts: Vec<String> = decisions.iter().map(searched).collect();
        let digest = hex::encode(Sha256::digest(serde_json::json!(decisions).to_string()));
        Ok(Self { entries: decisions, index: CaseIndex::of_records(&texts)?, digest })
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The decisions that are there at a timestep.
    fn visible(&self, timestep: u32) -> &[Decision] {
        let count = self.entries.partition_point(|decision| decision.visible_from_page.unwrap_or(0) <= timestep);
        self.entries.get(..count).unwrap_or_default()
    }

    /// Finds at most `k` decisions, best first, equal scores by id.
    pub(crate) fn search(&self, timestep: u32, query: &str, k: usize) -> Vec<DecisionHit> {
        let visible = self.visible(timestep);
        let Some(view) = u32::try_from(visible.len()).ok().and_then(|count| self.index.view(count)) else {
            return Vec::new();
        };
        let found = Ranking::new(view, &Query::of(query)).best(visible.len());
        let mut hits: Vec<DecisionHit> = found
            .into_iter()
            .filter_map(|found| {
                let decision = visible.get(usize::try_from(found.page).ok()?.checked_sub(1)?)?;
                Some(DecisionHit {
                    decision_id: decision.decision_id.clone(),
                    court: decision.court.clone(),
                    year: decision.year,
                    score: found.score,
                    text: decision.text.clone(),
                })
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.decision_id.cmp(&b.decision_id)));
        hits.truncate(k);
        hits
    }

    pub(crate) fn stats(&self, timestep: u32, filter: &StatsFilter) -> DecisionStats {
        let mut stats = DecisionStats::default();
        for decision in self.visible(timestep) {
            let in_years = filter.from_year.is_none_or(|from| decision.year >= from)
                && filter.to_year.is_none_or(|to| decision.year <= to);
            if in_years && filter.court.as_ref().is_none_or(|court| *court == decision.court) {
                stats.total += 1;
                *stats.by_year.entry(decision.year).or_default() += 1;
                *stats.by_court.entry(decision.court.clone()).or_default() += 1;
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"[{"decision_id":"B","court":"X","year":2001,"text":"a ship","visible_from_page":4},
                          {"decision_id":"A","court":"Y","year":2003,"text":"a ship"}]"#;

    #[test]
    fn the_builtin_set_loads() {
        assert!(Decisions::parse(BUILTIN).expect("shipped data is valid").len() >= 10);
    }

    #[test]
    fn list_wrapped_list_and_lines_say_the_same() {
        let wrapped = format!(r#"{{"about":"x","decisions":{TWO}}}"#);
        let lines = "{\"decision_id\":\"A\",\"court\":\"Y\",\"year\":2003,\"text\":\"a ship\"}\n\n";
        let short = lines.replace("decision_id", "id");
        assert_eq!(Decisions::parse(TWO.as_bytes()).expect("list").len(), 2);
        assert_eq!(Decisions::parse(wrapped.as_bytes()).expect("wrapped").len(), 2);
        assert_eq!(Decisions::parse(lines.as_bytes()).expect("lines").len(), 1);
        let (lines, short) = (Decisions::parse(lines.as_bytes()), Decisions::parse(short.as_bytes()));
        assert_eq!(short.expect("lines").digest(), lines.expect("lines").digest());
    }

    #[test]
    fn a_decision_is_absent_before_its_page_in_hits_scores_and_counts() {
        let decisions = Decisions::parse(TWO.as_bytes()).expect("valid");
        let only_a = r#"[{"decision_id":"A","court":"Y","year":2003,"text":"a ship"}]"#;
        let cut = Decisions::parse(only_a.as_bytes()).expect("valid");
        assert_eq!(decisions.search(3, "ship", 5), cut.search(3, "ship", 5));
        assert_eq!(decisions.search(4, "ship", 5).len(), 2);
        assert_eq!(decisions.stats(3, &StatsFilter::default()).total, 1);
    }

    #[test]
    fn equal_scores_are_ordered_by_id() {
        let decisions = Decisions::parse(TWO.as_bytes()).expect("valid");
        let ids: Vec<String> = decisions.search(9, "ship", 5).into_iter().map(|hit| hit.decision_id).collect();
        assert_eq!(ids, ["A", "B"]);
    }

    #[test]
    fn counting_is_inclusive_and_exact() {
        let decisions = Decisions::parse(TWO.as_bytes()).expect("valid");
        let count = |from_year, to_year, court: Option<&str>| {
            decisions.stats(9, &StatsFilter { from_year, to_year, court: court.map(Into::into) }).total
        };
        assert_eq!(count(Some(2001), Some(2003), None), 2);
        assert_eq!(count(Some(2002), None, None), 1);
        assert_eq!(count(Some(2004), Some(2001), None), 0);
        assert_eq!(count(None, None, Some("X")), 1);
        assert_eq!(count(None, None, Some("x")), 0);
    }

    #[test]
    fn faults_name_what_is_wrong() {
        for (bytes, word) in [
            ("[{\"decision_id\":\"A\"}]", "court"),
            ("{\"decision_id\":\"A\"}", "line 1"),
            (
                "[{\"decision_id\":\"A\",\"court\":\"\",\"year\":1,\"text\":\"\"},{\"decision_id\":\"A\",\"court\":\"\",\"year\":1,\"text\":\"\"}]",
                "twice",
            ),
            ("", "EOF"),
        ] {
            let error = Decisions::parse(bytes.as_bytes()).expect_err(bytes);
            assert!(error.to_string().contains(word), "{error} lacks {word}");
        }
    }
}
