//! One file per block of rules.

pub(crate) mod admission;
pub(crate) mod chains;
pub(crate) mod logprobs;
pub(crate) mod openings;
pub(crate) mod pages;
pub(crate) mod roster;
pub(crate) mod settings;
pub(crate) mod skill;
pub(crate) mod system_prompt;
pub(crate) mod toolless;
pub(crate) mod tripwires;
pub(crate) mod workspace;

use gsj_trace::json::ValueRef;

/// Renders a member that may be missing, which counts as null.
pub(crate) fn show(value: Option<ValueRef<'_>>) -> String {
    value.unwrap_or(ValueRef::Null).show()
}

/// A digest, or the word for having none.
pub(crate) fn digest_text(digest: Option<&str>) -> &str {
    digest.unwrap_or("unhashable")
}

/// Where something was seen first and how often.
#[derive(Default)]
pub(crate) struct Tally {
    first: Option<usize>,
    count: usize,
}

impl Tally {
    pub(crate) fn note(&mut self, at: usize) {
        self.first.get_or_insert(at);
        self.count += 1;
    }

    /// Reports when anything was noted.
    pub(crate) fn report(&self, prefix: &str, findings: &mut Vec<String>) {
        if let Some(first) = self.first {
            findings.push(format!("{prefix}:first={first}:count={}", self.count));
        }
    }
}
