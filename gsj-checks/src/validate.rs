//! The order of work (`checks.md` sections 8.1 and 8.4).

use gsj_pins::{Pins, PinsError};
use gsj_trace::json::{StrRef, Value, ValueRef};

use crate::messages::array_or_empty;
use crate::rules;
use crate::strict;
use crate::trace::Trace;
use crate::{LaterText, Policy, Profile, Unreadable, Verdict};

/// What rules judge by.
pub(crate) struct Context<'c> {
    pub(crate) pins: &'c Pins,
    pub(crate) policy: &'c Policy,
    /// The texts of pages, for who has them.
    pub(crate) later: Option<&'c dyn LaterText>,
}

impl Context<'_> {
    pub(crate) fn is_strict(&self) -> bool {
        self.policy.profile == Profile::Strict
    }
}

/// Judges a body as it arrived.
///
/// Content never makes this fail.
///
/// # Errors
/// An unusable pins document: under the strict profile any fault of it, whatever the body; under the reference profile
/// only where some gate asks for what is faulty.
pub fn validate(body: &[u8], pins: &Pins, policy: &Policy) -> Result<Verdict, PinsError> {
    validate_with(body, pins, policy, None)
}

/// Judges a body that was read already.
///
/// # Errors
/// As [`validate`].
pub fn validate_parsed(body: ValueRef<'_>, pins: &Pins, policy: &Policy) -> Result<Verdict, PinsError> {
    validate_parsed_with(body, pins, policy, None)
}

/// [`validate`] with the texts of the case's pages, which arms `G8:later_page_text` under the strict profile.
///
/// # Errors
/// As [`validate`].
pub fn validate_with(
    body: &[u8],
    pins: &Pins,
    policy: &Policy,
    later: Option<&dyn LaterText>,
) -> Result<Verdict, PinsError> {
    check_pins(pins, policy)?;
    match Value::parse(body) {
        Ok(value) => judge(value.as_ref(), &Context { pins, policy, later }),
        Err(error) => Ok(Verdict::unreadable(error)),
    }
}

/// [`validate_parsed`] with the texts of the case's pages, which arms `G8:later_page_text` under the strict profile.
///
/// # Errors
/// As [`validate`].
pub fn validate_parsed_with(
    body: ValueRef<'_>,
    pins: &Pins,
    policy: &Policy,
    later: Option<&dyn LaterText>,
) -> Result<Verdict, PinsError> {
    check_pins(pins, policy)?;
    judge(body, &Context { pins, policy, later })
}

/// Under the strict profile a fault is found by the first body, not by the first gate that asks.
fn check_pins(pins: &Pins, policy: &Policy) -> Result<(), PinsError> {
    match policy.profile {
        Profile::Strict => pins.check_whole(),
        Profile::Reference => Ok(()),
    }
}

fn judge(body: ValueRef<'_>, context: &Context<'_>) -> Result<Verdict, PinsError> {
    let Some(body) = body.as_object() else {
        return Ok(Verdict::unreadable(Unreadable::NotAnObject));
    };
    let mut findings = Vec::new();
    rules::admission::check(body, context, &mut findings);
    if let Some(trajectory) = body.get("trajectory").and_then(ValueRef::as_object) {
        rules::chains::check(trajectory, context, &mut findings);
        if context.is_strict() {
            strict::check_session(trajectory, context, &mut findings);
        }
        for trace in array_or_empty(trajectory.get("traces")) {
            match trace.as_object() {
                Some(trace) => check_trace(&Trace::new(trace), context, &mut findings)?,
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
    rules::pages::check(trace, context, findings);
    rules::workspace::check(trace, findings);
    rules::roster::check(trace, context, findings)?;
    rules::system_prompt::check(trace, context, findings)?;
    rules::skill::check(trace, context, findings)?;
    rules::settings::check(trace, context, findings)?;
    rules::openings::check(trace, context, findings)?;
    rules::toolless::check(trace, context, findings);
    if context.is_strict() {
        strict::check_trace(trace, context, findings)?;
    }
    Ok(())
}
