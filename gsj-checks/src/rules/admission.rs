//! Admission (`checks.md` section 8.2).

use gsj_trace::json::{Array, Object, ValueRef};

use super::show;
use crate::messages::{is_text, object_or_empty};

pub(crate) fn check(body: &Object<'_>, findings: &mut Vec<String>) {
    if !is_text(body.get("status"), "COMPLETED") {
        findings.push(format!("ADM1:status_not_completed:{}", show(body.get("status"))));
    }
    let Some(trajectory) = body.get("trajectory").and_then(ValueRef::as_object) else {
        findings.push("ADM3:trajectory_missing".to_owned());
        return;
    };
    builder_findings(trajectory, findings);
    if trajectory.get("traces").and_then(ValueRef::as_array).is_none_or(Array::is_empty) {
        findings.push("ADM4:no_traces".to_owned());
    }
}

/// What the trajectory's builder found comes back out, whatever its shape. A whole finding is not a
/// detail of ours, so what is no string keeps the reference's notation.
fn builder_findings(trajectory: &Object<'_>, findings: &mut Vec<String>) {
    let validation = object_or_empty(object_or_empty(trajectory.get("metadata")).get("gsj_validation"));
    match validation.get("findings").filter(|found| found.truthy()) {
        None => {}
        Some(ValueRef::Array(found)) => {
            findings.push(format!("ADM2:builder_findings_present:{}", found.len()));
            findings.extend(found.iter().map(ValueRef::python_text));
        }
        Some(other) => {
            findings.push("ADM2:builder_findings_present:1".to_owned());
            findings.push(other.python_text());
        }
    }
}
