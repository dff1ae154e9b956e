//! A checkout without remotes says so with the integer 0 (defect D11). What equals 0 in the reference's sense is all
//! that is left for this rule: anything else the common one reports.

use gsj_trace::json::ValueRef;

use crate::messages::object_or_empty;
use crate::rules::workspace::{has_closed_history, report_history};
use crate::trace::Trace;

pub(crate) fn check(trace: &Trace<'_>, findings: &mut Vec<String>) {
    let workspace = object_or_empty(trace.metadata.get("gsj_workspace"));
    let is_int = workspace.get("remotes").and_then(ValueRef::as_int).is_some();
    if has_closed_history(workspace) && !is_int {
        report_history(workspace, findings);
    }
}
