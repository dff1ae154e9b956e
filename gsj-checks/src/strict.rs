//! What the strict profile adds (`checks.md` section 13.1), in the order of its table.

mod certificate;
mod evidence;
mod fidelity;
mod hits;
mod later_text;
mod posture;
mod prompts;
mod search;
mod skills;
mod spans;
mod types;

use gsj_pins::PinsError;
use gsj_trace::json::Object;

use crate::trace::Trace;
use crate::validate::Context;

/// After the findings on the session as a whole.
pub(crate) fn check_session(trajectory: &Object<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    evidence::check(trajectory, findings);
    fidelity::check_session(trajectory, context, findings);
}

/// After the findings on one trace.
pub(crate) fn check_trace(
    trace: &Trace<'_>,
    context: &Context<'_>,
    findings: &mut Vec<String>,
) -> Result<(), PinsError> {
    types::check(trace, findings);
    prompts::check(trace, context, findings)?;
    search::check(trace, findings);
    posture::check(trace, findings);
    spans::check(trace, context, findings)?;
    skills::check(trace, context, findings)?;
    later_text::check(trace, context, findings);
    fidelity::check_trace(trace, context, findings);
    Ok(())
}
