//! Evidence of the builder that the reference takes as optional: ADM6, ADM7, ADM8 (defect D2).

use gsj_trace::json::{IntRef, Object, ValueRef};

use crate::messages::{array_or_empty, is_text, object_or_empty};
use crate::rules::show;

pub(crate) fn check(trajectory: &Object<'_>, findings: &mut Vec<String>) {
    if !is_text(trajectory.get("status"), "COMPLETED") {
        findings.push(format!("ADM6:trajectory_status_not_completed:{}", show(trajectory.get("status"))));
    }
    let metadata = object_or_empty(trajectory.get("metadata"));
    let stated = metadata.get("gsj_validation").and_then(|validation| validation.get("findings"));
    if stated.and_then(ValueRef::as_array).is_none() {
        findings.push("ADM7:missing_evidence:gsj_validation".to_owned());
    }
    let traces = array_or_empty(trajectory.get("traces")).len();
    let stats = object_or_empty(metadata.get("reconstruction_stats"));
    if let Some(chains) = stats.get("chains_total").and_then(ValueRef::as_int)
        && chains != count(traces)
    {
        findings.push(format!("ADM8:trace_count_ne_chains_total:{traces}!={chains}"));
    }
}

/// No list in memory is longer than the largest `i64`.
fn count(length: usize) -> IntRef<'static> {
    IntRef::from(i64::try_from(length).unwrap_or(i64::MAX))
}
