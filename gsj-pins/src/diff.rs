//! What moved between two documents, and which gate fails because of it.

use crate::inventory::Pinned;
use crate::{Key, Pins, PinsError, Set};

/// The difference between two documents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// Old and new mode, when they differ.
    pub mode: Option<(String, String)>,
    /// The sets that moved, in the order of a document.
    pub sets: Vec<Moved>,
}

/// What moved in one set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The set.
    pub set: Set,
    /// Values that only the new document approves, as people read them.
    pub added: Vec<String>,
    /// Values that only the old document approves.
    pub removed: Vec<String>,
    /// How many values both approve.
    pub kept: usize,
    /// What follows for traces.
    pub effects: Vec<Effect>,
}

/// What a move does to traces.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// Whose verdict changes: of checks with the old document, or with the new one.
    pub under: Side,
    /// The findings that such traces get, as `ID:slug`; none when they get no verdict at all, or lose a finding.
    pub findings: Vec<&'static str>,
    /// The same in a sentence.
    pub words: String,
}

/// One of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Old,
    /// The second.
    New,
}

impl Side {
    /// `old` or `new`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// Compares what two documents approve. Order, repeats, provenance and other members don't matter.
///
/// ```
/// use gsj_pins::{Pins, diff::diff};
///
/// let old = Pins::from_bytes("old.json", br#"{"pins":{"tool_roster_hash":["aa"]}}"#.to_vec());
/// let new = Pins::from_bytes("new.json", br#"{"pins":{"tool_roster_hash":["bb"]}}"#.to_vec());
/// let moved = diff(&old, &new)?;
/// assert_eq!(moved.sets[0].removed, ["aa"]);
/// assert_eq!(moved.sets[0].effects[0].findings, ["G3:tool_roster_hash_not_approved"]);
/// # Ok::<(), gsj_pins::PinsError>(())
/// ```
///
/// # Errors
/// One of them is unusable.
pub fn diff(old: &Pins, new: &Pins) -> Result<Diff, PinsError> {
    let (before, after) = (old.values()?, new.values()?);
    let mut sets = Vec::new();
    for set in Set::ALL {
        let of = |values: &[Pinned<'_>]| -> Vec<String> {
            values.iter().filter(|pinned| pinned.set == set).map(Pinned::text).collect()
        };
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|value| !those.contains(value)).cloned().collect()
        };
        let (was, is) = (of(&before), of(&after));
        let (removed, added) = (only(&was, &is), only(&is, &was));
        if added.is_empty() && removed.is_empty() {
            continue;
        }
        let kept = is.len() - added.len();
        let change = Change { set, was: was.len(), is: is.len(), added: added.len(), removed: removed.len() };
        sets.push(Moved { set, added, removed, kept, effects: change.effects() });
    }
    let mode = (old.mode() != new.mode()).then(|| (old.mode().to_owned(), new.mode().to_owned()));
    Ok(Diff { mode, sets })
}

/// How many values a set had, has, gained and lost.
struct Change {
    set: Set,
    was: usize,
    is: usize,
    added: usize,
    removed: usize,
}

impl Change {
    fn effects(&self) -> Vec<Effect> {
        match self.set {
            Set::Key(key) if !key.is_consulted() => vec![effect(
                Side::New,
                &[],
                format!(
                    "no gate asks for the {}: it says what the token ids belong to; see that the engine runs what is \
                     approved now, and that `g6_expected_tail_ids` fits it",
                    self.set.subject()
                ),
            )],
            Set::Key(key) => self.consulted(key),
            Set::SkillCards => self.skill_cards(),
            Set::EndOfTurnIds => self.end_of_turn_ids(),
        }
    }

    fn consulted(&self, key: Key) -> Vec<Effect> {
        let mut out = Vec::new();
        for (side, values) in [(Side::New, self.is), (Side::Old, self.was)] {
            let moved = if side == Side::New { self.removed } else { self.added };
            if values == 0 {
                out.push(effect(side, &[], nothing_approved(self.set, key, side)));
            } else if moved > 0 {
                out.push(self.rejected(side, moved, ""));
            }
        }
        out
    }

    fn skill_cards(&self) -> Vec<Effect> {
        match (self.was, self.is) {
            (0, _) => vec![effect(
                Side::New,
                self.set.findings(),
                "the card of a skill's trace must now be listed under that skill's name, else the trace fails G1 (profile \
                 strict)",
            )],
            (_, 0) => vec![effect(Side::New, &[], "any approved card passes for any skill now")],
            _ => [(Side::New, self.removed), (Side::Old, self.added)]
                .into_iter()
                .filter(|(_, moved)| *moved > 0)
                .map(|(side, moved)| self.rejected(side, moved, " (profile strict)"))
                .collect(),
        }
    }

    fn end_of_turn_ids(&self) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.added > 0 {
            let id = if self.added == 1 { "the added id" } else { "an added id" };
            let words = format!("traces with {id} inside a run of trained tokens fail G6 now (profile strict)");
            out.push(effect(Side::New, self.set.findings(), words));
        }
        if self.removed > 0 {
            let id = if self.removed == 1 { "the removed id" } else { "a removed id" };
            out.push(effect(Side::New, &[], format!("{id} is no longer looked for inside runs of trained tokens")));
        }
        out
    }

    fn rejected(&self, side: Side, moved: usize, profile: &str) -> Effect {
        let gate = self.set.gate().unwrap_or_default();
        let (which, who) = match side {
            Side::New => ("removed", "traces"),
            Side::Old => ("added", "whoever still checks with the old file rejects traces"),
        };
        let made = match moved {
            1 => format!("{who} made with the {which} {}", self.set.subject()),
            _ => format!("{who} made with one of the {which} {}s", self.set.subject()),
        };
        let words = match side {
            Side::New => format!("{made} fail {gate} now{profile}"),
            Side::Old => format!("{made}, by {gate}{profile}"),
        };
        effect(side, self.set.findings(), words)
    }
}

fn nothing_approved(set: Set, key: Key, side: Side) -> String {
    let (file, gate) = (side.name(), set.gate().unwrap_or_default());
    if key == Key::SkillCard {
        return format!("the {file} file approves no skill card: no trace of a skill passes {gate} with it");
    }
    format!(
        "the {file} file approves no {}: with it every check that reaches {gate} ends with a pins fault (exit 2) instead \
         of a verdict",
        set.subject()
    )
}

fn effect(under: Side, findings: &[&'static str], words: impl Into<String>) -> Effect {
    Effect { under, findings: findings.to_vec(), words: words.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(old: &str, new: &str) -> String {
        let pins = |sets: &str| Pins::from_bytes("p", format!(r#"{{"pins":{sets}}}"#).into_bytes());
        let found = diff(&pins(old), &pins(new)).expect("usable");
        let lines = found.sets.iter().flat_map(|moved| {
            let head = format!("{} +{:?} -{:?} ={}", moved.set, moved.added, moved.removed, moved.kept);
            let effects = moved
                .effects
                .iter()
                .map(|effect| format!("  {} {:?} {}", effect.under.name(), effect.findings, effect.words));
            std::iter::once(head).chain(effects)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn order_and_repeats_are_no_difference() {
        assert_eq!(words(r#"{"settings_hash":["a","b"]}"#, r#"{"settings_hash":["b","a","b"]}"#), "");
    }

    #[test]
    fn each_move_says_which_gate_fails() {
        insta::assert_snapshot!(words(
            r#"{"tool_roster_hash":["a","b"],"system_prompt_hash":["a"],"g6_expected_tail_ids":[[1,2]],"settings_hash":["s"]}"#,
            r#"{"tool_roster_hash":["b","c"],"system_prompt_hash":["a","b","c"],"g6_expected_tail_ids":[[1,2,3]]}"#,
        ), @r#"
        settings_hash +[] -["s"] =0
          new [] the new file approves no settings document: with it every check that reaches G7 ends with a pins fault (exit 2) instead of a verdict
        tool_roster_hash +["c"] -["a"] =1
          new ["G3:tool_roster_hash_not_approved"] traces made with the removed tool roster fail G3 now
          old ["G3:tool_roster_hash_not_approved"] whoever still checks with the old file rejects traces made with the added tool roster, by G3
        system_prompt_hash +["b", "c"] -[] =1
          old ["G2:system_prompt_hash_not_approved"] whoever still checks with the old file rejects traces made with one of the added system prompts, by G2
        g6_expected_tail_ids +["[1,2,3]"] -["[1,2]"] =0
          new ["G6:prompt_suffix_ne_tail_ids", "G6:interstitial_ne_tail_ids"] traces made with the removed tail fail G6 now
          old ["G6:prompt_suffix_ne_tail_ids", "G6:interstitial_ne_tail_ids"] whoever still checks with the old file rejects traces made with the added tail, by G6
        "#);
    }

    #[test]
    fn our_own_keys_are_told_too() {
        insta::assert_snapshot!(words(
            r#"{"skill_card_hash":["a"],"end_of_turn_ids":[1],"tokenizer_hash":["x"]}"#,
            r#"{"skill_card_hash":[],"skill_cards":{"alpha":["a"]},"end_of_turn_ids":[2,3],"tokenizer_hash":["y"]}"#,
        ), @r#"
        tokenizer_hash +["y"] -["x"] =0
          new [] no gate asks for the tokenizer: it says what the token ids belong to; see that the engine runs what is approved now, and that `g6_expected_tail_ids` fits it
        skill_card_hash +[] -["a"] =0
          new [] the new file approves no skill card: no trace of a skill passes G1 with it
        skill_cards +["alpha: a"] -[] =0
          new ["G1:skill_card_hash_not_for_skill"] the card of a skill's trace must now be listed under that skill's name, else the trace fails G1 (profile strict)
        end_of_turn_ids +["2", "3"] -["1"] =0
          new ["G6:end_of_turn_inside_span"] traces with an added id inside a run of trained tokens fail G6 now (profile strict)
          new [] the removed id is no longer looked for inside runs of trained tokens
        "#);
        insta::assert_snapshot!(words(
            r#"{"skill_cards":{"alpha":["a"],"beta":["b"]}}"#,
            r#"{"skill_cards":{"alpha":["b"],"beta":["b"]}}"#,
        ), @r#"
        skill_cards +["alpha: b"] -["alpha: a"] =1
          new ["G1:skill_card_hash_not_for_skill"] traces made with the removed skill's card fail G1 now (profile strict)
          old ["G1:skill_card_hash_not_for_skill"] whoever still checks with the old file rejects traces made with the added skill's card, by G1 (profile strict)
        "#);
        insta::assert_snapshot!(words(r#"{"skill_cards":{"alpha":["a"]}}"#, "{}"), @r#"
        skill_cards +[] -["alpha: a"] =0
          new [] any approved card passes for any skill now
        "#);
    }
}
