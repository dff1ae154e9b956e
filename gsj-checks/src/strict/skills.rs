//! A skill's prompt comes with the card of that very skill (defect D19).

use gsj_pins::PinsError;
use gsj_trace::json::ValueRef;

use crate::rules::skill::{Source, source};
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    let Some(cards) = context.pins.skill_cards()? else { return Ok(()) };
    // A missing card is reported by the common rule.
    let card = trace.metadata.get("skill_card_hash").and_then(ValueRef::as_text).filter(|card| !card.is_empty());
    if let (Source::Skill(name), Some(card)) = (source(trace), card)
        && !cards.approves((&*name).into(), card)
    {
        findings.push(format!("G1:skill_card_hash_not_for_skill:{name}"));
    }
    Ok(())
}
