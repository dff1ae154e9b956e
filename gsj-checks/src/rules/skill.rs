//! The skill card, G1 (`checks.md` section 8.12).

use gsj_pins::{Key, PinsError};
use gsj_trace::json::ValueRef;

use crate::patterns::is_space;
use crate::trace::Trace;
use crate::validate::Context;

/// How much of an unapproved hash a finding shows, in code points.
const SHOWN: usize = 64;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    match source(trace) {
        Source::Free => {}
        Source::Skill => match trace.metadata.get("skill_card_hash").and_then(ValueRef::as_text) {
            Some(card) if !card.is_empty() => {
                if !context.pins.approved(Key::SkillCard)?.contains(ValueRef::Str(card)) {
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

/// Where the prompt came from.
enum Source {
    Free,
    Skill,
    Unknown,
}

fn source(trace: &Trace<'_>) -> Source {
    let Some(source) = trace.metadata.get("prompt_source").and_then(ValueRef::as_text) else {
        return Source::Unknown;
    };
    let source = source.lossy();
    match source.strip_prefix("skill:") {
        Some(name) if !name.chars().all(is_space) => Source::Skill,
        None if source == "free" => Source::Free,
        _ => Source::Unknown,
    }
}
