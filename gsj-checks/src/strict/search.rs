//! The page census of search results, read instead of searched for (defect D8).

use std::collections::{BTreeSet, HashMap};

use gsj_trace::json::{Int, Object, StrRef, ValueRef};

use super::hits::{Answer, read};
use crate::messages::{CallId, SEARCH, calls, is_text, text};
use crate::patterns::{page_files, page_members};
use crate::rules::{Tally, show};
use crate::trace::Trace;

pub(crate) fn check(trace: &Trace<'_>, findings: &mut Vec<String>) {
    let mut open = OpenCalls::default();
    let mut unresolved = Tally::default();
    let mut late = BTreeSet::new();
    for (at, message) in trace.placed_messages() {
        for (id, name) in calls(message) {
            open.register(id, name);
        }
        if !is_text(message.get("role"), "tool") {
            continue;
        }
        match open.tool_of(message.get("tool_call_id")) {
            Tool::Search => match late_pages(message, trace.timestep.as_ref()) {
                Some(pages) => late.extend(pages),
                None => findings.push(format!("G5:search_result_unreadable:{}", show(message.get("tool_call_id")))),
            },
            Tool::Unknown => unresolved.note(at),
            Tool::Other => {}
        }
    }
    if offers_search(trace) {
        unresolved.report("G5:search_result_unresolved", findings);
    }
    if let Some(timestep) = &trace.timestep {
        findings.extend(late.iter().map(|page| format!("G5:search_page_gt_timestep:{page}>{timestep}")));
    }
}

/// The pages after the timestep that a result of the search shows; `None` where that cannot be told.
fn late_pages(result: &Object<'_>, timestep: Option<&Int>) -> Option<Vec<Int>> {
    let text = text(result);
    let text = text.as_ref().lossy();
    let is_late = |page: &Int| timestep.is_some_and(|timestep| page > timestep);
    match read(&text) {
        Answer::Pages(pages) => Some(pages.into_iter().filter(is_late).collect()),
        // What is said of a failed call has no form: it must not speak of a later page at all.
        Answer::Fault if page_members(&text).chain(page_files(&text)).any(|page| is_late(&page)) => None,
        Answer::Fault => Some(Vec::new()),
        Answer::Unreadable => None,
    }
}

fn offers_search(trace: &Trace<'_>) -> bool {
    let name = |tool: ValueRef<'_>| {
        let of = |value: ValueRef<'_>| value.get("name").is_some_and(|name| is_text(Some(name), SEARCH));
        of(tool) || tool.get("function").is_some_and(of)
    };
    trace.roster().is_some_and(|tools| tools.iter().any(name))
}

/// Whose result a message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Search,
    Other,
    /// No call has the id, or the call that has it names no tool.
    Unknown,
}

/// The calls so far, by id.
#[derive(Default)]
struct OpenCalls<'v>(HashMap<CallId<'v>, SameId>);

/// The calls that share an id.
struct SameId {
    nearest: Tool,
    /// Calls of the search that no result has answered.
    open_searches: usize,
}

impl<'v> OpenCalls<'v> {
    fn register(&mut self, id: CallId<'v>, name: Option<StrRef<'v>>) {
        let nearest = match name {
            Some(name) if name == *SEARCH => Tool::Search,
            Some(_) => Tool::Other,
            None => Tool::Unknown,
        };
        let same = self.0.entry(id).or_insert(SameId { nearest, open_searches: 0 });
        same.nearest = nearest;
        same.open_searches += usize::from(nearest == Tool::Search);
    }

    /// A result belongs to the nearest earlier call with its id. While a search of that id is unanswered it may be the
    /// search's as well, and is taken for it: a second call must not hide a result.
    fn tool_of(&mut self, id: Option<ValueRef<'v>>) -> Tool {
        let Some(same) = CallId::of(id).and_then(|id| self.0.get_mut(&id)) else { return Tool::Unknown };
        if same.open_searches > 0 {
            same.open_searches -= 1;
            return Tool::Search;
        }
        same.nearest
    }
}
