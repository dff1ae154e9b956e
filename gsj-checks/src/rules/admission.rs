//! Admission (`checks.md` section 8.2).

use gsj_trace::json::{Array, Object, StrRef, ValueRef};

use super::show;
use crate::messages::{is_text, object_or_empty};
use crate::validate::Context;

pub(crate) fn check(body: &Object<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    if !is_text(body.get("status"), "COMPLETED") {
        findings.push(format!("ADM1:status_not_completed:{}", show(body.get("status"))));
    }
    let Some(trajectory) = body.get("trajectory").and_then(ValueRef::as_object) else {
        findings.push("ADM3:trajectory_missing".to_owned());
        return;
    };
    builder_findings(trajectory, context.policy.forks_pass(), findings);
    if trajectory.get("traces").and_then(ValueRef::as_array).is_none_or(Array::is_empty) {
        findings.push("ADM4:no_traces".to_owned());
    }
}

/// What the trajectory's builder found comes back out, whatever its shape. A whole finding is not a
/// detail of ours, so what is no string keeps the reference's notation.
fn builder_findings(trajectory: &Object<'_>, forks_pass: bool, findings: &mut Vec<String>) {
    let validation = object_or_empty(object_or_empty(trajectory.get("metadata")).get("gsj_validation"));
    let found = match validation.get("findings").filter(|found| found.truthy()) {
        None => return,
        Some(ValueRef::Array(found)) => {
            found.iter().filter(|found| !(forks_pass && tells_of_a_fork(*found))).map(ValueRef::python_text).collect()
        }
        Some(other) => vec![other.python_text()],
    };
    if !found.is_empty() {
        findings.push(format!("ADM2:builder_findings_present:{}", found.len()));
        findings.extend(found);
    }
}

/// Whether the builder only says why it began another trace: the certificate counts that.
fn tells_of_a_fork(found: ValueRef<'_>) -> bool {
    let text = found.as_text().map(StrRef::as_bytes);
    text.is_some_and(|text| text.starts_with(b"S10:") || text.starts_with(b"S11:"))
}
