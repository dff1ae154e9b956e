//! The page cutoff in search results (`checks.md` section 8.8).

use std::collections::BTreeSet;

use crate::messages::SEARCH;
use crate::patterns::{page_files, page_members};
use crate::trace::Trace;
use crate::validate::Context;

/// The strict profile reads the results instead of searching their text; its rule stands with its others.
pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let Some(timestep) = &trace.timestep else {
        findings.push("G5:missing_evidence:timestep".to_owned());
        return;
    };
    if context.is_strict() {
        return;
    }
    let mut late = BTreeSet::new();
    for result in trace.tool_results.iter().filter(|result| result.is_of(SEARCH)) {
        let text = result.text();
        let text = text.as_ref().lossy();
        late.extend(page_members(&text).chain(page_files(&text)).filter(|page| page > timestep));
    }
    findings.extend(late.iter().map(|page| format!("G5:search_page_gt_timestep:{page}>{timestep}")));
}
