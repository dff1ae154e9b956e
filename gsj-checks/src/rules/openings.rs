//! How turns open: the thinking tail, G6 (`checks.md` section 8.14).

use gsj_pins::{Approved, Key, PinsError};
use gsj_trace::json::{Array, ValueRef};

use crate::trace::{Mask, Trace};
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    // Asked for before the arrays are looked at: a faulty set is noticed even without a turn.
    let approved = context.pins.approved(Key::TailIds)?;
    let response = trace.array("response_ids");
    let turns = Mask::of(trace).turns();
    let Some(first) = turns.first() else {
        findings.push("G6:missing_evidence:turns".to_owned());
        return Ok(());
    };
    let opening = Opening { prompt: Some(trace.array("prompt_ids")), response, from: 0, to: first.start };
    if !opening.is_approved(approved) {
        findings.push("G6:prompt_suffix_ne_tail_ids".to_owned());
    }
    let later = turns.windows(2).enumerate().filter(|(_, pair)| {
        let opening = Opening { prompt: None, response, from: pair[0].end, to: pair[1].start };
        !opening.is_approved(approved)
    });
    let mut offenders = later.map(|(at, _)| at + 2);
    if let Some(first) = offenders.next() {
        findings.push(format!("G6:interstitial_ne_tail_ids:first={first}:count={}", offenders.count() + 1));
    }
    Ok(())
}

/// The tokens before a turn: the prompt's for the first one, then a slice of the response.
struct Opening<'v> {
    prompt: Option<&'v Array<'v>>,
    response: &'v Array<'v>,
    from: usize,
    to: usize,
}

impl<'v> Opening<'v> {
    fn is_approved(&self, approved: Approved<'_>) -> bool {
        approved.tails().any(|tail| self.ends_with(tail))
    }

    fn ends_with(&self, tail: &Array<'_>) -> bool {
        if let (Some(response), Some(tail)) = (self.response.as_u32s(), tail.as_u32s())
            && let Some(opening) = response.get(self.from..self.to)
            && opening.len() >= tail.len()
        {
            return opening.ends_with(tail);
        }
        tail.iter().rev().enumerate().all(|(back, id)| self.at_back(back).is_some_and(|found| found.python_eq(id)))
    }

    /// The token `back` places before the last one. A mask longer than the response makes slices
    /// clip at its end.
    fn at_back(&self, back: usize) -> Option<ValueRef<'v>> {
        let (from, to) = (self.from.min(self.response.len()), self.to.min(self.response.len()));
        match back.checked_sub(to - from) {
            None => self.response.get(to - 1 - back),
            Some(back) => {
                let prompt = self.prompt?;
                prompt.get(prompt.len().checked_sub(back + 1)?)
            }
        }
    }
}
