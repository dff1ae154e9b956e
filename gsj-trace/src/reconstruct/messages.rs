//! Which messages of a request are new (D14): by what they say, not by how many there are.

use crate::json::ValueRef;

use super::session::{elements, is_array, is_object, is_word};

/// The messages of a request that follow the last reply.
///
/// `known` are the messages of the chain before that reply, `expected` of them; `reply` is the reply as the engine
/// gave it.
pub(super) fn new<'m, 'v, 'k>(
    messages: &'m [ValueRef<'v>],
    expected: usize,
    known: impl Iterator<Item = ValueRef<'k>>,
    reply: Option<ValueRef<'_>>,
) -> &'m [ValueRef<'v>] {
    let is_reply = |message: ValueRef<'_>| reply.is_some_and(|reply| says_the_same(message, reply));
    let after = if messages.get(expected).is_some_and(|m| is_reply(*m)) {
        expected + 1
    } else {
        let said = messages.iter().rposition(|m| is_reply(*m));
        let last_reply = said.or_else(|| messages.iter().rposition(|m| is_role(*m, "assistant")));
        last_reply.map_or_else(|| messages.iter().zip(known).take_while(|(a, b)| **a == *b).count(), |at| at + 1)
    };
    messages.get(after..).unwrap_or_default()
}

pub(super) fn is_role(message: ValueRef<'_>, role: &str) -> bool {
    message.get("role").is_some_and(|r| is_word(r, role))
}

/// Whether a message of a request is the reply that an engine gave: an agent drops members that are null, and writes
/// content in parts.
fn says_the_same(message: ValueRef<'_>, reply: ValueRef<'_>) -> bool {
    is_role(message, "assistant") && text(message).trim() == text(reply).trim() && same_calls(message, reply)
}

fn same_calls(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    let (a, b) = (calls(a), calls(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            let member =
                |call: &ValueRef<'_>, key: &str| call.get("function").and_then(|f| f.get(key)).map(ValueRef::show);
            let ids = a.get("id").zip(b.get("id"));
            member(a, "name") == member(b, "name")
                && (ids.is_some_and(|(a, b)| a == b) || member(a, "arguments") == member(b, "arguments"))
        })
}

fn calls(message: ValueRef<'_>) -> Vec<ValueRef<'_>> {
    elements(message.get("tool_calls")).filter(|call| is_object(*call)).collect()
}

/// The texts of a message's content.
pub(super) fn texts(message: ValueRef<'_>) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    let content = message.get("content");
    let parts = elements(content.filter(|c| is_array(*c))).filter_map(|part| part.get("text").or(Some(part)));
    let alone = content.filter(|c| !is_array(*c));
    alone.into_iter().chain(parts).filter_map(|value| value.as_text().map(|text| text.escaped()))
}

fn text(message: ValueRef<'_>) -> String {
    texts(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    fn new_of(messages: &str, known: &str, reply: &str) -> String {
        let parse = |text: &str| Value::parse(text.as_bytes()).unwrap().into_owned();
        let (messages, known, reply) = (parse(messages), parse(known), parse(reply));
        let messages: Vec<ValueRef<'_>> = messages.as_array().unwrap().iter().collect();
        let known = known.as_array().unwrap().iter();
        let new = new(&messages, known.len(), known, Some(reply.as_ref()).filter(|r| !r.is_null()));
        new.iter().map(|m| m.get("content").unwrap().show()).collect::<Vec<_>>().join(",")
    }

    const USER: &str = r#"{"role":"user","content":"u"}"#;

    #[test]
    fn what_follows_the_reply_is_new_wherever_the_reply_stands() {
        let reply = r#"{"role":"assistant","content":"a","refusal":null}"#;
        let said = r#"{"role":"assistant","content":[{"type":"text","text":"a"}]}"#;
        let tool = r#"{"role":"tool","content":"t"}"#;
        let known = format!("[{USER}]");
        assert_eq!(new_of(&format!("[{USER},{said},{tool}]"), &known, reply), "t");
        assert_eq!(new_of(&format!("[{USER},{USER},{said},{tool}]"), &known, reply), "t", "one message more before it");
        assert_eq!(new_of(&format!("[{said},{tool},{USER}]"), &known, reply), "t,u", "one message less before it");
        assert_eq!(
            new_of(&format!("[{USER},{said},{tool},{said},{USER}]"), &known, reply),
            "t,[{\"text\":\"a\",\"type\":\"text\"}],u"
        );
        let edited = r#"{"role":"assistant","content":"b"}"#;
        assert_eq!(new_of(&format!("[{USER},{edited},{tool}]"), &known, reply), "t", "an edited reply");
        assert_eq!(new_of(&format!("[{USER},{tool}]"), &known, reply), "t", "no reply at all");
        assert_eq!(new_of("[]", &known, reply), "");
        assert_eq!(new_of(&format!("[{USER},{tool}]"), &known, "null"), "t");
    }

    #[test]
    fn calls_are_the_same_by_their_ids_or_their_arguments() {
        let call = |id: &str, arguments: &str| {
            let function = format!(r#"{{"name":"read","arguments":"{arguments}"}}"#);
            let text = format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","function":{function}}}]}}"#
            );
            Value::parse(text.as_bytes()).unwrap().into_owned()
        };
        let same = |a: &Value<'_>, b: &Value<'_>| says_the_same(a.as_ref(), b.as_ref());
        assert!(same(&call("1", "{}"), &call("1", "{ }")));
        assert!(same(&call("1", "{}"), &call("2", "{}")));
        assert!(!same(&call("1", "{}"), &call("2", "{ }")));
        let none = Value::parse(br#"{"role":"assistant","content":""}"#).unwrap();
        assert!(!same(&call("1", "{}"), &none));
    }
}
