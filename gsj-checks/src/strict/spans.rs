//! Turns that were trained as one (defect D9): the id that ends a turn stands inside a run of trained tokens.

use gsj_pins::PinsError;
use gsj_trace::json::ValueRef;

use crate::rules::Tally;
use crate::trace::{Mask, Trace};
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    let Some(ends) = context.pins.end_of_turn_ids()? else { return Ok(()) };
    let ids = trace.array("response_ids");
    let mut inside = Tally::default();
    for turn in Mask::of(trace).turns() {
        // A mask may be longer than the response: a turn clips, or lies wholly behind it.
        let last = turn.end.min(ids.len()).saturating_sub(1);
        let before_last = turn.start..last.max(turn.start);
        match ids.as_u32s() {
            Some(bare) => {
                let span = bare.get(before_last.clone()).unwrap_or_default();
                span.iter().zip(before_last).filter(|(id, _)| ends.contains(id)).for_each(|(_, at)| inside.note(at));
            }
            None => before_last
                .filter(|at| ids.get(*at).is_some_and(|id| ends.iter().any(|end| equals(id, *end))))
                .for_each(|at| inside.note(at)),
        }
    }
    inside.report("G6:end_of_turn_inside_span", findings);
    Ok(())
}

fn equals(id: ValueRef<'_>, end: u32) -> bool {
    id.python_eq(ValueRef::Int(i64::from(end).into()))
}
