//! Reading what the search tool answered (`retrieval.md` section 5), as the agent passed it on.

use gsj_trace::json::{Int, Value, ValueRef};
use memchr::memchr2;

/// What a result of the search tool turns out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Hits, perhaps none: every page that a member of theirs names.
    Pages(Vec<Int>),
    /// The call failed, and this is what was said of it.
    Fault,
    /// Neither: what it shows the model cannot be told.
    Unreadable,
}

/// What pi puts in place of a result without text, as that of a search without hits.
const NOTHING: &str = "(no tool output)";

/// How the text of a call that failed begins. Ours come from the retrieval service, from the extension that gives pi
/// its tools and from the small agent; the rest is pi's own.
const FAULTS: [&str; 7] = [
    "Error executing tool ",
    "tools/call: ",
    "The call failed: ",
    "There is no tool named ",
    "Validation failed for tool \"mcp_gsj_search_case\":",
    "Tool call \"mcp_gsj_search_case\" was not executed: ",
    "Tool mcp_gsj_search_case not found",
];

/// The whole text of a call that failed: broken connections in the words of node, and what pi stopped itself.
const WHOLE_FAULTS: [&str; 6] = [
    "mcp_gsj_search_case failed",
    "fetch failed",
    "terminated",
    "This operation was aborted",
    "Operation aborted",
    "Tool execution was blocked",
];

pub(crate) fn read(text: &str) -> Answer {
    if text == NOTHING {
        return Answer::Pages(Vec::new());
    }
    if WHOLE_FAULTS.contains(&text) || FAULTS.iter().any(|begin| text.starts_with(begin)) {
        return Answer::Fault;
    }
    let mut pages = Vec::new();
    let mut rest = trim(text);
    while !rest.is_empty() {
        let Some((hit, after)) = split_object(rest) else { return Answer::Unreadable };
        match pages_of(hit) {
            Some(found) => pages.extend(found),
            None => return Answer::Unreadable,
        }
        rest = trim(after);
    }
    Answer::Pages(pages)
}

fn trim(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// An object's text with the number of its members as written, repeats included.
struct Written<'t> {
    text: &'t str,
    members: usize,
}

/// Cuts the object off that a text begins with. Only its extent is found here; the reader judges the rest.
fn split_object(text: &str) -> Option<(Written<'_>, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut depth, mut members, mut at) = (0_usize, 0, 0);
    loop {
        match *bytes.get(at)? {
            b'"' => at = closing_quote(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b':' => members += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    let (text, after) = text.split_at(at + 1);
                    return Some((Written { text, members }, after));
                }
            }
            // The reader takes zero bytes for another encoding.
            0 => return None,
            _ => {}
        }
        at += 1;
    }
}

/// Where the string ends whose inside begins at an offset.
fn closing_quote(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// The pages that a hit names, or `None` where it is no hit. A member that says nothing may be missing; one that the
/// service does not write, or one that is written twice, could show a page that is not looked at.
fn pages_of(hit: Written<'_>) -> Option<Vec<Int>> {
    let value = Value::parse(hit.text.as_bytes()).ok()?;
    let object = value.as_object().filter(|object| object.len() == hit.members)?;
    object.get("page")?;
    let mut pages = Vec::with_capacity(2);
    for (key, member) in object {
        match (key.as_str()?, member) {
            ("page", page) => pages.push(page_number(page)?),
            ("file", file) => pages.push(page_of_file(file.as_str()?)?),
            ("score", ValueRef::Float(score)) if score.is_finite() => {}
            ("score", ValueRef::Int(_)) | ("text", ValueRef::Str(_)) => {}
            _ => return None,
        }
    }
    Some(pages)
}

fn page_number(page: ValueRef<'_>) -> Option<Int> {
    match page {
        ValueRef::Int(page) => Some(page.to_int()),
        ValueRef::Str(digits) => digits.as_str().and_then(unsigned),
        _ => None,
    }
}

/// `md/page_0012.md`: at least four digits.
fn page_of_file(file: &str) -> Option<Int> {
    let digits = file.strip_prefix("md/page_")?.strip_suffix(".md")?;
    if digits.len() >= 4 { unsigned(digits) } else { None }
}

fn unsigned(digits: &str) -> Option<Int> {
    if digits.starts_with('-') { None } else { Int::from_decimal(digits) }
}
