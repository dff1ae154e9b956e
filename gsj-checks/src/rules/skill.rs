//! The skill card, G1 (`checks.md` section 8.12).

use std::borrow::Cow;

use gsj_pins::{Key, PinsError};
use gsj_trace::json::{StrRef, ValueRef};

use crate::patterns::is_space;
use crate::trace::Trace;
use crate::validate::Context;

/// How much of an unapproved hash a finding shows, in code points.
const SHOWN: usize = 64;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    match source(trace) {
        Source::Free => {}
        Source::Skill(_) => match trace.metadata.get("skill_card_hash").and_then(ValueRef::as_text) {
            Some(card) if !card.is_empty() => {
                if !is_approved(card, context)? {
                    let shown = card.prefix(SHOWN);
                    findings.push(format!("G1:skill_card_hash_not_approved:{}", shown.as_ref().escaped()));
                }
            }
            _ => findings.push("G1:missing_evidence:skill_card_hash".to_owned()),
        },
        Source::Unknown => findings.push("G1:missing_evidence:prompt_source".to_owned()),
    }
    Ok(())
}

fn is_approved(card: StrRef<'_>, context: &Context<'_>) -> Result<bool, PinsError> {
    match context.pins.approved(Key::SkillCard) {
        Ok(approved) => Ok(approved.contains(ValueRef::Str(card))),
        // The document was found whole, so its list is merely empty: an estate without skills.
        Err(_) if context.is_strict() => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Where the prompt came from.
pub(crate) enum Source<'v> {
    Free,
    /// A skill of this name, lone surrogates as their JSON escapes: no pinned name holds one.
    Skill(Cow<'v, str>),
    Unknown,
}

pub(crate) fn source<'v>(trace: &Trace<'v>) -> Source<'v> {
    let Some(source) = trace.metadata.get("prompt_source").and_then(ValueRef::as_text) else {
        return Source::Unknown;
    };
    let name = match source.escaped() {
        Cow::Borrowed(source) => source.strip_prefix("skill:").map(Cow::Borrowed),
        Cow::Owned(source) => source.strip_prefix("skill:").map(|name| Cow::Owned(name.to_owned())),
    };
    match name {
        Some(name) if !name.chars().all(is_space) => Source::Skill(name),
        None if source == "free" => Source::Free,
        _ => Source::Unknown,
    }
}
