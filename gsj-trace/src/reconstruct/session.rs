//! Reading a completion session (section 10.1) and setting records aside that are no part of the episode (11.1).

use crate::json::{Object, Str, StrRef, Value, ValueRef};

use super::ids::Ids;

/// Messages nested deeper than this cannot be written by the reference.
const MAX_MESSAGE_DEPTH: usize = 250;

/// What a session says of itself, its completions aside.
pub(super) struct Header<'v> {
    pub(super) value: ValueRef<'v>,
    pub(super) metadata: ValueRef<'v>,
    /// Paths of members of the wrong type, which count as absent.
    pub(super) faults: Vec<String>,
}

/// A session as read; what was of the wrong type is replaced by its default and named in `faults`.
pub(super) struct Session<'v> {
    pub(super) header: Header<'v>,
    /// In the order of their time stamps and ids.
    pub(super) records: Vec<Record<'v>>,
    /// Paths of members of the wrong type, in the order of reading.
    pub(super) faults: Vec<String>,
}

/// One model call.
pub(super) struct Record<'v> {
    pub(super) id: Str<'v>,
    timestamp: Str<'v>,
    survey: Survey,
    pub(super) request: ValueRef<'v>,
    pub(super) original_request: ValueRef<'v>,
    pub(super) response: ValueRef<'v>,
    pub(super) metadata: ValueRef<'v>,
}

impl<'v> Header<'v> {
    pub(super) fn read(value: ValueRef<'v>) -> Self {
        let mut faults = Faults::default();
        if value.get("session_id").is_none_or(|id| !is_text(id)) {
            faults.push("session_id");
        }
        for key in ["created_at", "task_id", "model_requested", "model_used", "api_type"] {
            if value.get(key).is_some_and(|v| !v.is_null() && !is_text(v)) {
                faults.push(key);
            }
        }
        if value.get("completion_count").is_some_and(|v| Ids::default().strict(v).is_err()) {
            faults.push("completion_count");
        }
        let metadata = faults.object(value, "metadata", "");
        if value.get("completions").is_some_and(|list| !is_array(list)) {
            faults.push("completions");
        }
        Self { value, metadata, faults: faults.0 }
    }

    /// The completions in the order of the document.
    pub(super) fn completions(&self) -> impl Iterator<Item = ValueRef<'v>> + use<'v> {
        elements(self.value.get("completions"))
    }
}

impl<'v> Session<'v> {
    /// Reads a header and its completions, in the reference's order.
    pub(super) fn read(header: Header<'v>, completions: impl Iterator<Item = ValueRef<'v>>) -> Self {
        let mut faults = header.faults.clone();
        let mut records: Vec<Record<'v>> =
            completions.enumerate().filter_map(|(at, value)| Record::read(value, at, &mut faults)).collect();
        // Strings compare by code point; the sort is stable.
        records.sort_by(|a, b| a.place().cmp(&b.place()));
        Self { header, records, faults }
    }
}

/// Paths of members of the wrong type.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn push(&mut self, path: &str) {
        self.0.push(path.to_owned());
    }

    fn object<'v>(&mut self, of: ValueRef<'v>, key: &str, prefix: &str) -> ValueRef<'v> {
        match of.get(key) {
            None => ValueRef::Null,
            Some(member) if is_object(member) => member,
            Some(_) => {
                self.push(&format!("{prefix}{key}"));
                ValueRef::Null
            }
        }
    }
}

impl<'v> Record<'v> {
    /// Reads the completion that stands at an index of the document; `None` when it is no object.
    pub(super) fn read(value: ValueRef<'v>, at: usize, out: &mut Vec<String>) -> Option<Self> {
        let mut faults = Faults(std::mem::take(out));
        let record = Self::checked(value, at, &mut faults);
        *out = faults.0;
        record
    }

    fn checked(value: ValueRef<'v>, at: usize, faults: &mut Faults) -> Option<Self> {
        if !is_object(value) {
            faults.push(&format!("completions[{at}]"));
            return None;
        }
        let prefix = format!("completions[{at}].");
        let id = value.get("completion_id").filter(|v| is_text(*v));
        if id.is_none() {
            faults.push(&format!("{prefix}completion_id"));
        }
        let timestamp = value.get("timestamp").filter(|v| !v.is_null());
        if timestamp.is_some_and(|v| !is_text(v)) {
            faults.push(&format!("{prefix}timestamp"));
        }
        Some(Self {
            id: text(id),
            timestamp: text(timestamp),
            survey: Survey::of(value),
            request: faults.object(value, "request", &prefix),
            original_request: faults.object(value, "original_request", &prefix),
            response: faults.object(value, "response", &prefix),
            metadata: faults.object(value, "metadata", &prefix),
        })
    }

    /// Where the reference puts the record.
    fn place(&self) -> (StrRef<'_>, StrRef<'_>) {
        (self.timestamp.as_ref(), self.id.as_ref())
    }

    /// The objects among the request's messages.
    pub(super) fn messages(&self) -> Vec<ValueRef<'v>> {
        elements(self.request.get("messages")).filter(|m| is_object(*m)).collect()
    }

    /// The reply as a message, where the engine gave one.
    pub(super) fn reply(&self) -> Option<ValueRef<'v>> {
        self.choice().get("message").filter(|m| is_object(*m))
    }

    /// The objects among the tools that were offered.
    pub(super) fn tools(&self) -> Vec<ValueRef<'v>> {
        elements(self.request.get("tools")).filter(|t| is_object(*t)).collect()
    }

    /// Why the engine stopped, as text in the reference's notation, arrays and objects included (unlike in findings).
    pub(super) fn finish_reason(&self) -> Option<Str<'static>> {
        let reason = self.choice().get("finish_reason").filter(|v| !v.is_null())?;
        Some(reason.as_text().map_or_else(|| Str::from(reason.python_text()), |text| text.to_str().into_owned()))
    }

    /// Whether one of its messages is nested deeper than the reference can write.
    pub(super) fn is_too_deep(&self, mut messages: impl Iterator<Item = ValueRef<'v>>) -> bool {
        self.survey.depth > MAX_MESSAGE_DEPTH && messages.any(|message| depth(message) > MAX_MESSAGE_DEPTH)
    }

    /// Whether the engine says that generation was aborted.
    pub(super) fn is_aborted(&self) -> bool {
        self.choice().get("finish_reason").is_some_and(|v| is_word(v, "abort"))
    }

    /// The record's metadata, an empty object where it has none.
    pub(super) fn owned_metadata(&self) -> Value<'static> {
        owned_object(self.metadata)
    }

    /// The first choice when it is an object, else null, of which every member is absent.
    pub(super) fn choice(&self) -> ValueRef<'v> {
        elements(self.response.get("choices")).next().filter(|c| is_object(*c)).unwrap_or(ValueRef::Null)
    }

    /// What the agent sent, where that is recorded.
    fn asked(&self) -> ValueRef<'v> {
        if self.original_request.truthy() { self.original_request } else { self.request }
    }

    /// Whether the request looks like one of an agent: a system message among at least two, tools, a stream flag.
    pub(super) fn is_agent_shaped(&self) -> bool {
        let asked = self.asked();
        let messages = asked.get("messages");
        elements(messages).count() >= 2
            && elements(messages).any(|m| m.get("role").is_some_and(|role| is_word(role, "system")))
            && elements(asked.get("tools")).next().is_some()
            && asked.get("stream").is_some()
    }

    /// Why the record is no part of the episode.
    pub(super) fn exclusion(&self) -> Option<&'static str> {
        if self.survey.truncated {
            return Some("persisted_truncated_completion");
        }
        if !elements(self.response.get("choices")).next().is_some_and(is_object) {
            return Some("empty_completion");
        }
        self.is_side_call().then_some("non_agent_side_completion")
    }

    fn is_side_call(&self) -> bool {
        let asked = self.asked();
        let mut messages = elements(asked.get("messages"));
        let lone_user = messages.next().is_some_and(|m| m.get("role").is_some_and(|role| is_word(role, "user")))
            && messages.next().is_none();
        lone_user
            && asked.get("system").is_none_or(ValueRef::is_null)
            && elements(asked.get("tools")).next().is_none()
            && ["context_management", "thinking", "output_config", "stream"].iter().all(|key| asked.get(key).is_none())
    }
}

/// How many containers stand inside one another.
pub(super) fn depth(value: ValueRef<'_>) -> usize {
    if is_container(value) { Survey::of(value).depth } else { 0 }
}

/// What one walk over a value shows.
#[derive(Clone, Copy, Default)]
struct Survey {
    /// How many containers stand inside one another.
    depth: usize,
    /// Whether an object at any depth says that the record was cut when it was stored.
    truncated: bool,
}

impl Survey {
    /// Walks over a container level by level, so that no document is too deep. Packed arrays of numbers are not entered.
    fn of(container: ValueRef<'_>) -> Self {
        let mut out = Self::default();
        let (mut level, mut below) = (vec![container], Vec::new());
        while !level.is_empty() {
            out.depth += 1;
            for value in level.drain(..) {
                match value {
                    ValueRef::Object(object) => {
                        for (key, member) in object {
                            match member {
                                ValueRef::Bool(true) => out.truncated |= key == "__truncated",
                                ValueRef::Array(_) | ValueRef::Object(_) => below.push(member),
                                _ => {}
                            }
                        }
                    }
                    ValueRef::Array(array) if array.as_u32s().is_none() && array.as_f64s().is_none() => {
                        below.extend(array.iter().filter(|element| is_container(*element)));
                    }
                    _ => {}
                }
            }
            std::mem::swap(&mut level, &mut below);
        }
        out
    }
}

/// The elements of an array; of anything else none.
pub(super) fn elements<'v>(value: Option<ValueRef<'v>>) -> impl Iterator<Item = ValueRef<'v>> + use<'v> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(|array| array.iter())
}

/// A copy of an object; of anything else an empty one.
pub(super) fn owned_object(value: ValueRef<'_>) -> Value<'static> {
    if is_object(value) { value.to_owned() } else { Value::from(Object::new()) }
}

/// The text that a value is; of anything else an empty one.
fn text(value: Option<ValueRef<'_>>) -> Str<'_> {
    value.and_then(ValueRef::as_text).map(StrRef::to_str).unwrap_or_default()
}

fn is_container(value: ValueRef<'_>) -> bool {
    is_array(value) || is_object(value)
}

pub(super) fn is_array(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Array(_))
}

pub(super) fn is_object(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Object(_))
}

fn is_text(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Str(_))
}

pub(super) fn is_word(value: ValueRef<'_>, word: &str) -> bool {
    value.as_str().is_some_and(|text| text == word)
}
