//! Holding a document against the artifacts that its provenance names.

use std::collections::BTreeMap;

use gsj_trace::json::ValueRef;
use gsj_trace::tokens::TokenText;

use crate::artifact::{Gives, digest, gives};
use crate::inventory::{elements, shown};
use crate::{Key, Pins, PinsError, Set};

/// What verifying a document gave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The first fault of the document itself; see [`Pins::check_whole`].
    pub fault: Option<PinsError>,
    /// One entry for each value and source, in the order of the document.
    pub checks: Vec<Check>,
}

impl Verification {
    /// Whether the document is whole and no artifact contradicts it.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none() && !self.checks.iter().any(|check| check.outcome.is_problem())
    }
}

/// One value held against one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Where the value is approved.
    pub set: Set,
    /// The value as people read it.
    pub value: String,
    /// The artifact that the provenance names, with the part of it that matters.
    pub artifact: Option<String>,
    /// What it gave.
    pub outcome: Outcome,
}

/// What holding a value against an artifact gave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The artifact gives exactly this value.
    Confirmed,
    /// The artifact is the recorded one; that it gives this value cannot be computed from it alone, and why.
    Recorded(&'static str),
    /// The artifact gives another value, or none: what it gives now.
    Differs(String),
    /// The artifact gives the value, but is not the recorded one: its digest now. Something else in it changed.
    Changed(String),
    /// The artifact was not to be had: why.
    Unread(String),
    /// The provenance does not say where the value came from.
    NoSource,
    /// The provenance names a value that is not approved (any more).
    NotApproved,
}

impl Outcome {
    /// Whether it contradicts the document.
    pub fn is_problem(&self) -> bool {
        matches!(self, Self::Differs(_))
    }

    /// One word for tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Recorded(_) => "recorded",
            Self::Differs(_) => "differs",
            Self::Changed(_) => "changed",
            Self::Unread(_) => "unread",
            Self::NoSource => "no_source",
            Self::NotApproved => "not_approved",
        }
    }
}

impl Pins {
    /// Checks the document whole, and each value against the artifacts that its provenance names.
    ///
    /// `read` gives the bytes of an artifact by its name, or says why it cannot; each is asked for once. `tokens` is the
    /// vocabulary by which the ids of a tail are read; it speaks for the pinned tokenizers only.
    ///
    /// # Errors
    /// There is no usable document to verify.
    pub fn verify(
        &self,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
        tokens: Option<&dyn TokenText>,
    ) -> Result<Verification, PinsError> {
        let mut artifacts: BTreeMap<String, Result<Vec<u8>, String>> = BTreeMap::new();
        let tails: Vec<&str> = elements(self.sets()?.get(Key::Tail.name())).filter_map(ValueRef::as_str).collect();
        let tokenizers = self.sets()?.get(Key::Tokenizer.name());
        let tokens = tokens.filter(|tokens| {
            elements(tokenizers).any(|known| known.as_str().is_some_and(|hash| hash == tokens.identity()))
        });
        let mut checks = Vec::new();
        for pinned in self.values()? {
            let (set, value) = (pinned.set, pinned.text());
            if set == Set::SkillCards {
                continue;
            }
            if pinned.sources.is_empty() {
                checks.push(Check { set, value: value.clone(), artifact: None, outcome: Outcome::NoSource });
            }
            for source in pinned.sources {
                let name = source.artifact;
                let bytes = artifacts.entry(name.clone()).or_insert_with(|| read(&name));
                let outcome = match (spelled(set, source.part.as_deref(), pinned.value, &tails, tokens), bytes) {
                    (Some(outcome), _) => outcome,
                    (None, Err(why)) => Outcome::Unread(why.clone()),
                    (None, Ok(bytes)) => {
                        held(set, source.part.as_deref(), bytes, pinned.value, source.sha256.as_deref())
                    }
                };
                let artifact = match source.part {
                    Some(part) => format!("{name}#{part}"),
                    None => name,
                };
                checks.push(Check { set, value: value.clone(), artifact: Some(artifact), outcome });
            }
        }
        for set in Set::ALL {
            for (value, source) in self.provenance(set)? {
                if !elements(self.sets()?.get(set.name())).any(|known| known == value) {
                    let (value, artifact) = (shown(value), Some(source.artifact));
                    checks.push(Check { set, value, artifact, outcome: Outcome::NotApproved });
                }
            }
        }
        Ok(Verification { fault: self.check_whole().err(), checks })
    }
}

/// Whether the ids of a tail spell its text; `None` when that cannot be told or is no question.
fn spelled(
    set: Set,
    part: Option<&str>,
    value: ValueRef<'_>,
    tails: &[&str],
    tokens: Option<&dyn TokenText>,
) -> Option<Outcome> {
    if set != Key::TailIds.into() || part.is_some() || tails.is_empty() {
        return None;
    }
    let (ids, tokens) = (value.as_array()?.as_u32s()?, tokens?);
    let text: Option<Vec<u8>> =
        ids.iter().map(|id| tokens.bytes(*id)).collect::<Option<Vec<_>>>().map(|parts| parts.concat());
    Some(match text {
        Some(text) if tails.iter().any(|tail| tail.as_bytes() == text) => Outcome::Confirmed,
        Some(text) => Outcome::Differs(format!("{:?}", String::from_utf8_lossy(&text))),
        None => Outcome::Differs("ids that the tokenizer does not have".to_owned()),
    })
}

fn held(set: Set, part: Option<&str>, bytes: &[u8], value: ValueRef<'_>, recorded: Option<&str>) -> Outcome {
    let now = digest(set, part, bytes);
    let changed = now.filter(|now| recorded.is_some_and(|recorded| recorded != now));
    match (gives(set, part, bytes, value), changed) {
        (Ok(Gives::Other(found)), _) => Outcome::Differs(found),
        (Err(fault), _) => Outcome::Differs(fault.to_string()),
        (Ok(_), Some(now)) => Outcome::Changed(now),
        (Ok(Gives::This), None) => Outcome::Confirmed,
        (Ok(Gives::Unknown(why)), None) => Outcome::Recorded(why),
    }
}
