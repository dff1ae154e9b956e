//! A roster that nobody used, H41 (`checks.md` section 8.15).

use crate::messages::array_or_empty;
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let called = || trace.messages().any(|message| !array_or_empty(message.get("tool_calls")).is_empty());
    if context.policy.reject_toolless_roster && trace.roster().is_some() && !called() {
        findings.push("H41:roster_offered_zero_tool_calls".to_owned());
    }
}
