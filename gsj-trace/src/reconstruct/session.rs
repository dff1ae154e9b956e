//! Reading a completion session (section 10.1) and setting records aside that are no part of the episode (11.1).

use crate::json::ValueRef;

use super::ids::Ids;

/// A session as read; what was of the wrong type is replaced by its default and named in `faults`.
pub(super) struct Session<'v> {
    pub(super) value: ValueRef<'v>,
    pub(super) metadata: ValueRef<'v>,
    /// In the order of their time stamps and ids.
    pub(super) records: Vec<Record<'v>>,
    /// Paths of members of the wrong type, in the order of reading.
    pub(super) faults: Vec<String>,
}

/// One model call.
pub(super) struct Record<'v> {
    pub(super) id: String,
    timestamp: String,
    pub(super) value: ValueRef<'v>,
    pub(super) request: ValueRef<'v>,
    pub(super) original_request: ValueRef<'v>,
    pub(super) response: ValueRef<'v>,
    pub(super) metadata: ValueRef<'v>,
}

impl<'v> Session<'v> {
    pub(super) fn read(value: ValueRef<'v>) -> Self {
        let mut reader = Reader { faults: Vec::new() };
        if value.get("session_id").is_none_or(|id| !is_text(id)) {
            reader.fault("session_id");
        }
        for key in ["created_at", "task_id", "model_requested", "model_used", "api_type"] {
            if value.get(key).is_some_and(|v| !v.is_null() && !is_text(v)) {
                reader.fault(key);
            }
        }
        if value.get("completion_count").is_some_and(|v| Ids::default().strict(v).is_err()) {
            reader.fault("completion_count");
        }
        let metadata = reader.object(value, "metadata", "");
        let mut records = Vec::new();
        match value.get("completions") {
            None => {}
            Some(list) if is_array(list) => {
                for (i, element) in elements(Some(list)).enumerate() {
                    records.extend(reader.record(element, i));
                }
            }
            Some(_) => reader.fault("completions"),
        }
        // Strings compare by code point, as UTF-8 bytes do; the sort is stable.
        records.sort_by(|a, b| (&a.timestamp, &a.id).cmp(&(&b.timestamp, &b.id)));
        Self { value, metadata, records, faults: reader.faults }
    }
}

struct Reader {
    faults: Vec<String>,
}

impl Reader {
    fn fault(&mut self, path: &str) {
        self.faults.push(path.to_owned());
    }

    fn object<'v>(&mut self, of: ValueRef<'v>, key: &str, prefix: &str) -> ValueRef<'v> {
        match of.get(key) {
            None => ValueRef::Null,
            Some(member) if is_object(member) => member,
            Some(_) => {
                self.fault(&format!("{prefix}{key}"));
                ValueRef::Null
            }
        }
    }

    fn record<'v>(&mut self, value: ValueRef<'v>, at: usize) -> Option<Record<'v>> {
        if !is_object(value) {
            self.fault(&format!("completions[{at}]"));
            return None;
        }
        let prefix = format!("completions[{at}].");
        let id = value.get("completion_id").filter(|v| is_text(*v));
        if id.is_none() {
            self.fault(&format!("{prefix}completion_id"));
        }
        let timestamp = value.get("timestamp").filter(|v| !v.is_null());
        if timestamp.is_some_and(|v| !is_text(v)) {
            self.fault(&format!("{prefix}timestamp"));
        }
        Some(Record {
            id: id.map(ValueRef::show).unwrap_or_default(),
            timestamp: timestamp.filter(|v| is_text(*v)).map(ValueRef::show).unwrap_or_default(),
            value,
            request: self.object(value, "request", &prefix),
            original_request: self.object(value, "original_request", &prefix),
            response: self.object(value, "response", &prefix),
            metadata: self.object(value, "metadata", &prefix),
        })
    }
}

impl<'v> Record<'v> {
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
        if is_truncated(self.value) {
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

/// Whether an object at any depth says that the record was cut when it was stored.
fn is_truncated(value: ValueRef<'_>) -> bool {
    containers(value).any(|(inner, _)| inner.get("__truncated").and_then(ValueRef::as_bool) == Some(true))
}

/// How many containers stand inside one another.
pub(super) fn depth(value: ValueRef<'_>) -> usize {
    containers(value).map(|(_, depth)| depth).max().unwrap_or(0)
}

/// Every array and object in a value, itself included, with the number of containers around and including it.
///
/// Packed arrays of numbers are not entered. The walk keeps its own stack, so that no document is too deep for it.
fn containers(value: ValueRef<'_>) -> impl Iterator<Item = (ValueRef<'_>, usize)> {
    let mut open = Vec::new();
    if is_container(value) {
        open.push((value, 1));
    }
    std::iter::from_fn(move || {
        let (value, depth) = open.pop()?;
        match value {
            ValueRef::Object(object) => {
                let members = object.iter().map(|(_, member)| member);
                open.extend(members.filter(|m| is_container(*m)).map(|m| (m, depth + 1)));
            }
            ValueRef::Array(array) if array.as_u32s().is_none() && array.as_f64s().is_none() => {
                open.extend(array.iter().filter(|e| is_container(*e)).map(|e| (e, depth + 1)));
            }
            _ => {}
        }
        Some((value, depth))
    })
}

/// The elements of an array; of anything else none.
pub(super) fn elements<'v>(value: Option<ValueRef<'v>>) -> impl Iterator<Item = ValueRef<'v>> + use<'v> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(|array| array.iter())
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

fn is_word(value: ValueRef<'_>, word: &str) -> bool {
    value.as_str().is_some_and(|text| text == word)
}
