//! Messages, their text, and which tool a result belongs to (`checks.md` section 8.7).

use std::collections::HashMap;

use gsj_trace::json::{Array, IntRef, Object, Str, StrRef, ValueRef};

/// The tool whose results are held against the timestep.
pub(crate) const SEARCH: &str = "mcp_gsj_search_case";

/// "As array": the value if it is an array, else an empty one.
pub(crate) fn array_or_empty(value: Option<ValueRef<'_>>) -> &Array<'_> {
    static EMPTY: Array<'static> = Array::new();
    value.and_then(ValueRef::as_array).unwrap_or(&EMPTY)
}

/// "As object": the value if it is an object, else an empty one.
pub(crate) fn object_or_empty(value: Option<ValueRef<'_>>) -> &Object<'_> {
    static EMPTY: Object<'static> = Object::new();
    value.and_then(ValueRef::as_object).unwrap_or(&EMPTY)
}

/// Whether a value is this very string.
pub(crate) fn is_text(value: Option<ValueRef<'_>>, text: &str) -> bool {
    value.and_then(ValueRef::as_text).is_some_and(|found| found == *text)
}

/// The text of a message, parts joined without separator.
pub(crate) fn text<'v>(message: &'v Object<'v>) -> Str<'v> {
    let part = |part: ValueRef<'v>| match part {
        ValueRef::Str(text) => Some(text),
        ValueRef::Object(part) => part.get("text").and_then(ValueRef::as_text),
        _ => None,
    };
    match message.get("content") {
        Some(ValueRef::Array(parts)) => Str::concat(parts.iter().filter_map(part)),
        Some(content) => part(content).map_or_else(|| Str::from(""), StrRef::to_str),
        None => Str::from(""),
    }
}

/// A message of role `tool`, and the name of the tool that it answers for, if that is known.
pub(crate) struct ToolResult<'v> {
    name: Option<StrRef<'v>>,
    message: &'v Object<'v>,
}

impl<'v> ToolResult<'v> {
    pub(crate) fn is_of(&self, tool: &str) -> bool {
        self.name.is_some_and(|name| name == *tool)
    }

    pub(crate) fn text(&self) -> Str<'v> {
        text(self.message)
    }
}

/// The calls of a message: their ids and the names of their tools, where these are ids and names.
pub(crate) fn calls<'v>(message: &'v Object<'v>) -> impl Iterator<Item = (CallId<'v>, Option<StrRef<'v>>)> {
    array_or_empty(message.get("tool_calls")).iter().filter_map(ValueRef::as_object).filter_map(|call| {
        let function = call.get("function").and_then(ValueRef::as_object);
        let name = function.and_then(|function| function.get("name")).and_then(ValueRef::as_text);
        Some((CallId::of(call.get("id"))?, name))
    })
}

/// A call id: `1` and `true` are the same one, `"1"` is another; floats are none.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum CallId<'v> {
    Text(StrRef<'v>),
    Number(IntRef<'v>),
}

impl<'v> CallId<'v> {
    pub(crate) fn of(value: Option<ValueRef<'v>>) -> Option<Self> {
        match value? {
            ValueRef::Str(text) => Some(Self::Text(text)),
            ValueRef::Int(number) => Some(Self::Number(number)),
            ValueRef::Bool(flag) => Some(Self::Number(IntRef::from(i64::from(flag)))),
            _ => None,
        }
    }
}

/// The tool results among messages, each resolved by the calls registered so far.
pub(crate) fn tool_results<'v>(messages: impl Iterator<Item = &'v Object<'v>>) -> Vec<ToolResult<'v>> {
    let mut names: HashMap<CallId<'v>, Option<StrRef<'v>>> = HashMap::new();
    let mut results = Vec::new();
    for message in messages {
        names.extend(calls(message));
        if is_text(message.get("role"), "tool") {
            let name = CallId::of(message.get("tool_call_id")).and_then(|id| names.get(&id).copied().flatten());
            results.push(ToolResult { name, message });
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsj_trace::json::Value;

    #[test]
    fn text_takes_strings_and_text_parts_only() {
        for (content, expected) in [
            (r#""plain""#, "plain"),
            (r#"{"text":"one"}"#, "one"),
            (r#"["a",{"type":"image","text":"b"},{"text":7},["c"],null,{"type":"text","text":"d"}]"#, "abd"),
            ("7", ""),
            ("null", ""),
            ("[]", ""),
        ] {
            let json = format!(r#"{{"content":{content}}}"#);
            let message = Value::parse(json.as_bytes()).expect("json");
            assert_eq!(text(message.as_object().expect("object")), expected, "{content}");
        }
    }
}
