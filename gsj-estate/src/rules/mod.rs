//! Every rule of a corpus and of what is built from it: what it means, why it matters, what to do.

mod built;
mod cases;
mod corpus;
mod pages;
mod prompts;

pub use pages::{RulePage, rule_pages};

/// A rule that [`validate()`](crate::validate()), or `verify.*` [`verify()`](crate::verify()), checks, and that a [`Finding`](crate::Finding) names.
///
/// ```
/// let rule = gsj_estate::RULES.iter().find(|rule| rule.id == "page.prefix").expect("in the catalogue");
/// assert_eq!(rule.page(), "page.md");
/// println!("{}. {}", rule.meaning, rule.hint);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// `group.rule`, what findings carry.
    pub id: &'static str,
    /// What a failing finding says, in one line.
    pub meaning: &'static str,
    /// Why a corpus that breaks the rule is not built.
    pub why: &'static str,
    /// What to do about it, in one sentence.
    pub hint: &'static str,
    /// What breaks the rule, and after a line `--` what keeps it.
    pub example: &'static str,
    /// Section of `corpus.md`.
    pub section: &'static str,
    /// The fault of the reference that the rule, or its strictness, guards against (`corpus.md` section 14).
    pub defect: Option<&'static str>,
}

impl Rule {
    /// The part of the corpus that the rule is about: what stands before the dot.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    /// What stands after the dot.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.id.split_once('.').map_or("", |(_, name)| name)
    }

    /// The name of its page in `docs/rules/`; the rule's id is the section's name.
    #[must_use]
    pub fn page(&self) -> String {
        format!("{}.md", self.group())
    }
}

/// All rules: those of a corpus in the order in which it is checked, then those of what is built from it.
pub const RULES: &[Rule] = &ALL;

const PARTS: [&[Rule]; 4] = [corpus::RULES, cases::RULES, prompts::RULES, built::RULES];

static ALL: [Rule; total()] = joined();

const fn total() -> usize {
    let (mut total, mut part) = (0, 0);
    while part < PARTS.len() {
        total += PARTS[part].len();
        part += 1;
    }
    total
}

const fn joined() -> [Rule; total()] {
    let mut all = [corpus::RULES[0]; total()];
    let (mut at, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut within = 0;
        while within < PARTS[part].len() {
            all[at] = PARTS[part][within];
            at += 1;
            within += 1;
        }
        part += 1;
    }
    all
}

/// The rule of an id.
pub(crate) fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// What most rules have.
const fn rule(id: &'static str, section: &'static str) -> Rule {
    Rule { id, meaning: "", why: "", hint: "", example: "", section, defect: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_is_told_whole_and_once() {
        let mut ids = BTreeSet::new();
        for rule in RULES {
            assert!(ids.insert(rule.id), "{} stands twice", rule.id);
            assert!(!rule.meaning.is_empty() && !rule.why.is_empty(), "{}", rule.id);
            assert!(rule.id == "ts.pass" || !rule.hint.is_empty() && rule.example.contains("\n--\n"), "{}", rule.id);
            let one_line = |text: &str| !text.contains('\n') && !text.ends_with('.');
            assert!(one_line(rule.meaning) && one_line(rule.hint), "{}", rule.id);
        }
    }
}
