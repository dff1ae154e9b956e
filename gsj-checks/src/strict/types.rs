//! Types that the reference leaves to whoever parses next: TY1, TY2, TY3 (defect D4).

use gsj_trace::json::ValueRef;

use crate::rules::Tally;
use crate::trace::Trace;

pub(crate) fn check(trace: &Trace<'_>, findings: &mut Vec<String>) {
    for field in ["prompt_ids", "response_ids"] {
        let ids = trace.array(field);
        // An array that is packed as ids needs no second look.
        if ids.as_u32s().is_none() {
            report("TY1:token_id_not_an_integer", field, trace, is_token_id, findings);
        }
    }
    for field in ["prompt_messages", "response_messages"] {
        report("TY2:message_not_an_object", field, trace, |entry| entry.as_object().is_some(), findings);
    }
    let reward = trace.get("reward").unwrap_or(ValueRef::Null);
    if !reward.is_null() && !is_finite_number(reward) {
        findings.push(format!("TY3:reward_not_a_number:{}", reward.show()));
    }
}

fn report(
    prefix: &str,
    field: &str,
    trace: &Trace<'_>,
    passes: impl Fn(ValueRef<'_>) -> bool,
    findings: &mut Vec<String>,
) {
    let mut odd = Tally::default();
    for (at, entry) in trace.array(field).iter().enumerate() {
        if !passes(entry) {
            odd.note(at);
        }
    }
    odd.report(&format!("{prefix}:{field}"), findings);
}

fn is_token_id(entry: ValueRef<'_>) -> bool {
    entry.as_int().is_some_and(|id| id.as_u32().is_some())
}

fn is_finite_number(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Float(x) => x.is_finite(),
        ValueRef::Int(n) => n.to_f64().is_finite(),
        _ => false,
    }
}
