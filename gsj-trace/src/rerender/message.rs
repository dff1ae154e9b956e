//! A message of the wire as engines hand it to a template.

use crate::json::{Object, Str, StrRef, Value, ValueRef};

/// The message with its text parts joined, its reasoning under both names that templates know, the arguments of its
/// tool calls parsed, and without members that are null: what vLLM makes of a request.
pub(super) fn prepared(message: ValueRef<'_>, separator: &str) -> Value<'static> {
    let ValueRef::Object(fields) = message else { return message.to_owned() };
    let mut out = Object::default();
    for (key, value) in fields {
        match key.as_str() {
            Some("content") => {
                out.insert("content", flat(Some(value), separator));
            }
            Some("reasoning" | "reasoning_content") => {}
            Some("tool_calls") => {
                if let ValueRef::Array(calls) = value
                    && !calls.is_empty()
                {
                    out.insert("tool_calls", calls.iter().map(call).collect::<Value<'_>>());
                }
            }
            _ if value.is_null() => {}
            _ => {
                out.insert(key.to_str().into_owned(), value.to_owned());
            }
        }
    }
    if !out.contains_key("content") {
        out.insert("content", "");
    }
    let given = |key: &str| fields.get(key).filter(|value| !value.is_null());
    if let Some(reasoning) = given("reasoning").or_else(|| given("reasoning_content")) {
        out.insert("reasoning", reasoning.to_owned());
        out.insert("reasoning_content", reasoning.to_owned());
    }
    Value::Object(out)
}

/// The text of a message's content: a string as it is, text parts joined, nothing otherwise.
pub fn flat(content: Option<ValueRef<'_>>, separator: &str) -> Str<'static> {
    match content {
        Some(ValueRef::Str(text)) => text.to_str().into_owned(),
        Some(ValueRef::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.as_text().or_else(|| part.get("text")?.as_text()));
            let mut all: Vec<StrRef<'_>> = Vec::new();
            for text in texts {
                if !all.is_empty() {
                    all.push(separator.into());
                }
                all.push(text);
            }
            Str::concat(all).into_owned()
        }
        _ => "".into(),
    }
}

/// A tool call with its arguments as a value: a string is read as JSON, nothing becomes an empty object. A string
/// that is no JSON stays one.
fn call(call: ValueRef<'_>) -> Value<'static> {
    let mut call = call.to_owned();
    if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
        let parsed = match function.get("arguments") {
            None | Some(ValueRef::Null) => Some(Value::Object(Object::default())),
            Some(ValueRef::Str(text)) => match text.as_str() {
                Some("") => Some(Value::Object(Object::default())),
                Some(text) => Value::parse(text.as_bytes()).ok().map(Value::into_owned),
                None => None,
            },
            Some(_) => None,
        };
        if let Some(parsed) = parsed {
            function.insert("arguments", parsed);
        }
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(json: &str) -> String {
        prepared(Value::parse(json.as_bytes()).expect("json").as_ref(), "\n").to_json()
    }

    #[test]
    fn parts_are_joined_arguments_parsed_and_nulls_dropped() {
        assert_eq!(
            prepare(r#"{"role":"user","content":[{"type":"text","text":"a"},"b",{"type":"image"}],"name":null}"#),
            r#"{"role":"user","content":"a\nb"}"#
        );
        assert_eq!(
            prepare(
                r#"{"role":"assistant","content":null,"refusal":null,"reasoning_content":"r","tool_calls":[
                {"id":"1","type":"function","function":{"name":"f","arguments":"{\"b\": 1, \"a\": NaN}"}},
                {"function":{"name":"g","arguments":{"k":1}}},{"function":{"name":"h","arguments":"{broken"}},
                {"function":{"name":"i","arguments":null}}]}"#
            ),
            concat!(
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"b":1,"a":NaN}}},"#,
                r#"{"function":{"name":"g","arguments":{"k":1}}},{"function":{"name":"h","arguments":"{broken"}},"#,
                r#"{"function":{"name":"i","arguments":{}}}],"reasoning":"r","reasoning_content":"r"}"#
            )
        );
        assert_eq!(
            prepare(r#"{"role":"assistant","tool_calls":[],"reasoning":"x","reasoning_content":null}"#),
            r#"{"role":"assistant","content":"","reasoning":"x","reasoning_content":"x"}"#
        );
        assert_eq!(prepare("3"), "3");
    }

    #[test]
    fn lone_surrogates_of_two_parts_are_not_made_a_pair() {
        let parts = r#"{"content":["\ud83d","\ude00"]}"#;
        let value = Value::parse(parts.as_bytes()).expect("json");
        assert_eq!(flat(value.get("content"), "").as_ref().code_points().count(), 2);
    }
}
