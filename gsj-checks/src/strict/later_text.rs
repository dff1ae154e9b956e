//! Text of a later page anywhere in the trace: G8, whatever way it came.

use std::collections::BTreeSet;

use gsj_trace::json::{Object, Str, StrRef, ValueRef};

use crate::messages::{array_or_empty, object_or_empty, text};
use crate::trace::Trace;
use crate::validate::Context;

/// Members of a message that hold text besides its content.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let timestep = trace.timestep.as_ref().and_then(|timestep| timestep.as_ref().as_u64());
    // Without a timestep nothing is later; that it is missing is reported where the search results are judged.
    let (Some(later), Some(case), Some(timestep)) = (context.later, case_id(trace), timestep) else { return };
    for (at, message) in trace.placed_messages() {
        let mut pages = BTreeSet::new();
        for text in texts(message) {
            pages.extend(later.later_pages(&case.lossy(), timestep, &text.as_ref().lossy()));
        }
        findings.extend(pages.iter().map(|page| format!("G8:later_page_text:{page}:{at}")));
    }
}

fn case_id<'v>(trace: &Trace<'v>) -> Option<StrRef<'v>> {
    let stated = |object: &'v Object<'v>| object.get("case_id").and_then(ValueRef::as_text);
    let below = |key| object_or_empty(trace.metadata.get(key));
    stated(trace.metadata).or_else(|| stated(below("task_metadata"))).or_else(|| stated(below("gsj_workspace")))
}

/// What a message says: its content, its reasoning and what it wrote into its calls.
fn texts<'v>(message: &'v Object<'v>) -> impl Iterator<Item = Str<'v>> {
    let reasoning = REASONING.into_iter().filter_map(|key| message.get(key).and_then(ValueRef::as_text));
    let calls = array_or_empty(message.get("tool_calls")).iter();
    let arguments = calls.filter_map(|call| call.get("function")?.get("arguments")?.as_text());
    std::iter::once(text(message))
        .chain(reasoning.chain(arguments).map(StrRef::to_str))
        .filter(|t| !t.as_ref().is_empty())
}
