//! The form of the fidelity certificate (`checks.md` section 11.6).

use gsj_trace::json::{Object, ValueRef};
use gsj_trace::reconstruct::ContextKind;

/// One merged completion of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'v> {
    pub(crate) kind: ContextKind,
    pub(crate) context_sha256: &'v str,
}

const MODES: [&str; 3] = ["exact", "same_text", "reference"];
const OTHER_COUNTS: [&str; 2] = ["completions", "superseded"];

/// Whether the trajectory's part has its form: a mode, the counts, the tokenizer's id or null.
pub(crate) fn is_of_session(value: ValueRef<'_>) -> bool {
    let Some(object) = value.as_object() else { return false };
    let mode = object.get("continuity").and_then(ValueRef::as_str);
    let tokenizer = object.get("tokenizer");
    let mut counts = ContextKind::ALL.into_iter().map(ContextKind::name).chain(OTHER_COUNTS);
    mode.is_some_and(|mode| MODES.contains(&mode))
        && tokenizer.is_some_and(|id| id.is_null() || is_hex(id, 40).is_some())
        && counts.all(|name| count(object, name).is_some())
}

/// The turns of a trace's part, or `None` where it has not its form. The context of the first turn is the prompt
/// itself, and an exact one differs in nothing.
pub(crate) fn turns(value: ValueRef<'_>) -> Option<Vec<Turn<'_>>> {
    let list = value.get("turns")?.as_array().filter(|turns| !turns.is_empty())?;
    let mut turns = Vec::with_capacity(list.len());
    for entry in list {
        let entry = entry.as_object()?;
        entry.get("completion_id")?.as_text()?;
        let kind = ContextKind::from_name(entry.get("kind")?.as_str()?)?;
        let context_sha256 = is_hex(entry.get("context_sha256")?, 64)?;
        let differing = count(entry, "differing_tokens")?;
        if kind == ContextKind::Exact && differing != 0 {
            return None;
        }
        turns.push(Turn { kind, context_sha256 });
    }
    (turns.first()?.kind == ContextKind::Exact).then_some(turns)
}

fn count(object: &Object<'_>, name: &str) -> Option<u64> {
    object.get(name)?.as_int()?.as_u64()
}

/// A text of so many lower-case hex digits.
fn is_hex(value: ValueRef<'_>, digits: usize) -> Option<&str> {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    value.as_str().filter(|text| text.len() == digits && text.bytes().all(is_digit))
}
