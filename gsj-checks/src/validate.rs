//! The order of work (`checks.md` sections 8.1 and 8.4).

use gsj_pins::{Pins, PinsError};
use gsj_trace::json::{StrRef, Value, ValueRef};

use crate::messages::array_or_empty;
use crate::rules;
use crate::trace::Trace;
use crate::{Policy, Profile, Unreadable, Verdict};

/// What rules judge by.
pub(crate) struct Context<'c> {
    pub(crate) pins: &'c Pins,
    pub(crate) policy: &'c Policy,
}

/// Judges a body as it arrived.
///
/// Content never makes this fail; an unusable pins document does, when some gate asks for it.
pub fn validate(body: &[u8], pins: &Pins, policy: &Policy) -> Result<Verdict, PinsError> {
    match Value::parse(body) {
        Ok(value) => validate_parsed(value.as_ref(), pins, policy),
        Err(error) => Ok(Verdict::unreadable(error)),
    }
}

/// Judges a body that was read already.
pub fn validate_parsed(body: ValueRef<'_>, pins: &Pins, policy: &Policy) -> Result<Verdict, PinsError> {
    let Some(body) = body.as_object() else {
        return Ok(Verdict::unreadable(Unreadable::NotAnObject));
    };
    let context = Context { pins, policy };
    let mut findings = Vec::new();
    match policy.profile {
        Profile::Reference => {}
    }
    rules::admission::check(body, &mut findings);
    if let Some(trajectory) = body.get("trajectory").and_then(ValueRef::as_object) {
        rules::chains::check(trajectory, &mut findings);
        for trace in array_or_empty(trajectory.get("traces")) {
            match trace.as_object() {
                Some(trace) => check_trace(&Trace::new(trace), &context, &mut findings)?,
                None => findings.push("ADM5:malformed_trace".to_owned()),
            }
        }
    }
    let session_id = body.get("session_id").and_then(ValueRef::as_text).map(StrRef::escaped);
    Ok(Verdict { session_id: session_id.map(std::borrow::Cow::into_owned), findings, unreadable: None })
}

/// Every block in order; none suppresses another.
fn check_trace(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    rules::logprobs::check(trace, context, findings);
    rules::tripwires::check(trace, findings);
    rules::pages::check(trace, findings);
    rules::workspace::check(trace, findings);
    rules::roster::check(trace, context, findings)?;
    rules::system_prompt::check(trace, context, findings)?;
    rules::skill::check(trace, context, findings)?;
    rules::settings::check(trace, context, findings)?;
    rules::openings::check(trace, context, findings)?;
    rules::toolless::check(trace, context, findings);
    Ok(())
}
