//! What the checkout held (`checks.md` section 8.9).

use gsj_trace::json::{IntRef, Object, ValueRef};

use super::show;
use crate::messages::{is_text, object_or_empty};
use crate::trace::Trace;

pub(crate) fn check(trace: &Trace<'_>, findings: &mut Vec<String>) {
    let workspace = object_or_empty(trace.metadata.get("gsj_workspace"));
    if workspace.is_empty() {
        findings.push("G5:missing_evidence:workspace".to_owned());
        return;
    }
    if !has_closed_history(workspace) {
        report_history(workspace, findings);
    }
    let Some([min, max, count]) = page_census(workspace) else {
        findings.push("G5:missing_evidence:workspace.pages".to_owned());
        return;
    };
    if min != IntRef::from(1) || count != max {
        findings.push(format!("G5:checkout_pages_not_contiguous:{min}-{max}/{count}"));
    }
    // A missing timestep is reported by the page cutoff.
    let Some(timestep) = &trace.timestep else { return };
    let branch = format!("timestep-{timestep}");
    if !is_text(workspace.get("branch"), &branch) {
        findings.push(format!("G5:workspace_branch_ne_timestep:{}!={branch}", show(workspace.get("branch"))));
    }
    if max != timestep.as_ref() {
        findings.push(format!("G5:checkout_max_page_ne_timestep:{max}!={timestep}"));
    }
}

/// Whether the checkout is shallow and has no remotes, in the reference's sense of zero.
pub(crate) fn has_closed_history(workspace: &Object<'_>) -> bool {
    let is_shallow = workspace.get("shallow").and_then(ValueRef::as_bool) == Some(true);
    is_shallow && workspace.get("remotes").is_some_and(|remotes| remotes.python_eq(ValueRef::Int(0.into())))
}

pub(crate) fn report_history(workspace: &Object<'_>, findings: &mut Vec<String>) {
    let (shallow, remotes) = (show(workspace.get("shallow")), show(workspace.get("remotes")));
    findings.push(format!("G5:checkout_history_posture:shallow={shallow},remotes={remotes}"));
}

/// `min`, `max` and `count`, all of them integers.
fn page_census<'v>(workspace: &'v Object<'v>) -> Option<[IntRef<'v>; 3]> {
    let pages = object_or_empty(workspace.get("pages"));
    let number = |key| pages.get(key).and_then(ValueRef::as_int);
    Some([number("min")?, number("max")?, number("count")?])
}
