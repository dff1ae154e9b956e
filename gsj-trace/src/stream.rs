//! A streamed answer put together again as the whole answer that the engine would have given unstreamed.

use crate::json::{Array, Object, Str, StrRef, Value, ValueRef};

/// Takes the `chat.completion.chunk` values of one answer and gives the `chat.completion` value.
///
/// Both dialects may be mixed: token ids in `choice.token_ids` (vLLM) or `choice.meta_info.output_token_logprobs`
/// (SGLang), each chunk with its share; prompt ids at the top of the first chunk or in its choice; logprobs in
/// `choice.logprobs.content`; reasoning in `reasoning` or `reasoning_content`; usage in a chunk without choices. The
/// result is what the engine said and is normalised as a whole answer is ([`crate::engine::normalize_whole`]).
///
/// ```
/// use gsj_trace::json::Value;
/// use gsj_trace::stream::StreamAssembler;
///
/// let mut answer = StreamAssembler::new();
/// for data in [
///     r#"{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}],"prompt_token_ids":[1,2]}"#,
///     r#"{"id":"x","choices":[{"index":0,"delta":{"content":"y"},"token_ids":[7,8],"finish_reason":"stop"}]}"#,
/// ] {
///     answer.push(Value::parse(data.as_bytes())?.as_ref());
/// }
/// assert!(answer.is_complete());
/// let answer = answer.finish();
/// assert_eq!(answer.pointer("/choices/0/message/content").and_then(|v| v.as_str()), Some("Hey"));
/// assert_eq!(answer.pointer("/choices/0/token_ids/1").and_then(|v| v.as_i64()), Some(8));
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
#[derive(Debug, Default)]
pub struct StreamAssembler {
    /// Members of the answer other than the ones below; the first that is not null stays.
    members: Object<'static>,
    choices: Vec<Choice>,
    token_ids: Option<List>,
    usage: Option<Value<'static>>,
    error: Option<Value<'static>>,
}

impl StreamAssembler {
    /// An answer of which nothing has come yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk. A chunk that is no object, or an error in the stream's place, makes the answer incomplete.
    pub fn push(&mut self, chunk: ValueRef<'_>) {
        let Some(members) = chunk.as_object() else {
            self.error = Some(chunk.to_owned());
            return;
        };
        if chunk.get("object").and_then(ValueRef::as_str) == Some("error") {
            self.error = Some(chunk.to_owned());
            return;
        }
        for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            match key.as_str() {
                Some("choices") => {
                    for choice in value.as_array().into_iter().flat_map(Array::iter) {
                        self.choice(choice.get("index")).push(choice);
                    }
                }
                Some("error") => self.error = Some(value.to_owned()),
                Some("usage") => self.usage = Some(value.to_owned()),
                Some("object") => {}
                Some("token_ids") => List::extend(&mut self.token_ids, value),
                _ => keep_first(&mut self.members, key, value),
            }
        }
    }

    /// Whether the engine ended the answer itself: each choice has a finish reason, and no error came.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.error.is_none() && !self.choices.is_empty() && self.choices.iter().all(Choice::is_finished)
    }

    /// The error that came in the stream, if one did.
    #[must_use]
    pub fn error(&self) -> Option<ValueRef<'_>> {
        self.error.as_ref().map(Value::as_ref)
    }

    /// The whole answer, or as much of it as has come ([`StreamAssembler::is_complete`] says which).
    #[must_use]
    pub fn finish(self) -> Value<'static> {
        let mut out = Object::new();
        let mut rest = self.members;
        for key in ["id", "created", "model"] {
            if let Some(value) = rest.remove(key) {
                out.insert(key, value);
            }
            if key == "id" {
                out.insert("object", "chat.completion");
            }
        }
        let mut choices = self.choices;
        choices.sort_by_key(|choice| choice.index);
        out.insert("choices", choices.into_iter().map(Choice::finish).collect::<Vec<_>>());
        for (key, value) in rest {
            out.insert(key, value);
        }
        if let Some(ids) = self.token_ids {
            out.insert("token_ids", ids.finish());
        }
        if let Some(usage) = self.usage {
            out.insert("usage", usage);
        }
        if let Some(error) = self.error {
            out.insert("error", error);
        }
        Value::from(out)
    }

    fn choice(&mut self, index: Option<ValueRef<'_>>) -> &mut Choice {
        let index = index.and_then(ValueRef::as_i64).unwrap_or(0);
        let at = match self.choices.iter().position(|choice| choice.index == index) {
            Some(at) => at,
            None => {
                self.choices.push(Choice { index, ..Choice::default() });
                self.choices.len() - 1
            }
        };
        &mut self.choices[at]
    }
}

/// One choice of the answer.
#[derive(Debug, Default)]
struct Choice {
    index: i64,
    message: Message,
    /// Members other than the ones below; the latest that is not null stays, of prompt ids the first.
    members: Object<'static>,
    token_ids: Option<List>,
    logprobs: Option<Parts>,
    meta_info: Option<Parts>,
}

impl Choice {
    fn push(&mut self, chunk: ValueRef<'_>) {
        for (key, value) in members(chunk) {
            match key.as_str() {
                Some("index") => {}
                Some("delta" | "message") => self.message.push(value),
                Some("token_ids") => List::extend(&mut self.token_ids, value),
                Some("logprobs") => Parts::extend(&mut self.logprobs, value, &["content", "refusal"]),
                Some("meta_info") => Parts::extend(&mut self.meta_info, value, &["output_token_logprobs"]),
                Some("prompt_token_ids" | "input_token_ids") => keep_first(&mut self.members, key, value),
                _ => {
                    self.members.insert(owned_key(key), value.to_owned());
                }
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.members.contains_key("finish_reason")
    }

    fn finish(self) -> Value<'static> {
        let mut out = Object::new();
        let mut rest = self.members;
        out.insert("index", self.index);
        out.insert("message", self.message.finish());
        out.insert("finish_reason", rest.remove("finish_reason"));
        out.insert("logprobs", self.logprobs.map(Parts::finish));
        if let Some(ids) = self.token_ids {
            out.insert("token_ids", ids.finish());
        }
        if let Some(meta) = self.meta_info {
            out.insert("meta_info", meta.finish());
        }
        for (key, value) in rest {
            out.insert(key, value);
        }
        Value::from(out)
    }
}

/// The message of a choice, from its deltas.
#[derive(Debug, Default)]
struct Message {
    role: Option<Value<'static>>,
    /// `content`, `reasoning`, `reasoning_content`, `refusal` and whatever else comes as text, in pieces.
    texts: Vec<(Str<'static>, Vec<Str<'static>>)>,
    calls: Vec<Call>,
    /// Members that are no text.
    members: Object<'static>,
}

impl Message {
    fn push(&mut self, delta: ValueRef<'_>) {
        for (key, value) in members(delta) {
            match (key.as_str(), value) {
                (Some("role"), _) => {
                    self.role.get_or_insert_with(|| value.to_owned());
                }
                (Some("tool_calls"), ValueRef::Array(calls)) => calls.iter().for_each(|call| self.call(call)),
                (_, ValueRef::Str(piece)) => self.text(key).push(owned_key(piece)),
                _ => {
                    self.members.insert(owned_key(key), value.to_owned());
                }
            }
        }
    }

    fn text(&mut self, key: StrRef<'_>) -> &mut Vec<Str<'static>> {
        let at = match self.texts.iter().position(|(known, _)| known.as_ref() == key) {
            Some(at) => at,
            None => {
                self.texts.push((owned_key(key), Vec::new()));
                self.texts.len() - 1
            }
        };
        &mut self.texts[at].1
    }

    fn call(&mut self, delta: ValueRef<'_>) {
        let index = delta.get("index").and_then(ValueRef::as_i64);
        let at = match index {
            Some(_) => self.calls.iter().position(|call| call.index == index),
            // Without an index an id begins a call and anything else continues the last.
            None if delta.get("id").is_some_and(ValueRef::truthy) => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        });
        self.calls[at].push(delta);
    }

    fn finish(self) -> Value<'static> {
        let mut out = Object::new();
        out.insert("role", self.role.unwrap_or_else(|| Value::from("assistant")));
        out.insert("content", Value::Null);
        let mut calls = self.calls;
        calls.sort_by_key(|call| call.index.unwrap_or(i64::MAX));
        for (key, pieces) in self.texts {
            let text = Str::concat(pieces.iter().map(Str::as_ref)).into_owned();
            // Unstreamed, a message that only calls tools has no content; the stream opened it with an empty one.
            if text.as_ref().is_empty() && (!calls.is_empty() || key.as_str() != Some("content")) {
                continue;
            }
            out.insert(key, text);
        }
        for (key, value) in self.members {
            out.insert(key, value);
        }
        if !calls.is_empty() {
            out.insert("tool_calls", calls.into_iter().map(Call::finish).collect::<Vec<_>>());
        }
        Value::from(out)
    }
}

/// One tool call, from its deltas.
#[derive(Debug, Default)]
struct Call {
    index: Option<i64>,
    /// `id`, `type`; the first that is not empty stays, since some servers repeat them.
    members: Object<'static>,
    name: Option<Value<'static>>,
    arguments: Vec<Str<'static>>,
}

impl Call {
    fn push(&mut self, delta: ValueRef<'_>) {
        for (key, value) in members(delta) {
            match key.as_str() {
                Some("index") => {}
                Some("function") => {
                    if let Some(name) = value.get("name").filter(|name| name.truthy()) {
                        self.name.get_or_insert_with(|| name.to_owned());
                    }
                    match value.get("arguments") {
                        Some(ValueRef::Str(piece)) => self.arguments.push(owned_key(piece)),
                        Some(ValueRef::Null) | None => {}
                        // Some servers send the arguments whole and as an object.
                        Some(whole) => self.arguments.push(Str::from(whole.to_json())),
                    }
                }
                _ if value.truthy() => keep_first(&mut self.members, key, value),
                _ => {}
            }
        }
    }

    fn finish(self) -> Value<'static> {
        let mut out = Object::new();
        let mut rest = self.members;
        out.insert("id", rest.remove("id"));
        out.insert("type", rest.remove("type").unwrap_or_else(|| Value::from("function")));
        let mut function = Object::new();
        function.insert("name", self.name);
        function.insert("arguments", Str::concat(self.arguments.iter().map(Str::as_ref)).into_owned());
        out.insert("function", function);
        for (key, value) in rest {
            out.insert(key, value);
        }
        Value::from(out)
    }
}

/// An object some of whose members are lists that come in pieces.
#[derive(Debug, Default)]
struct Parts {
    lists: Vec<(&'static str, Option<List>)>,
    members: Object<'static>,
}

impl Parts {
    fn extend(slot: &mut Option<Self>, value: ValueRef<'_>, lists: &[&'static str]) {
        if value.as_object().is_none() {
            return;
        }
        let parts = slot.get_or_insert_with(Self::default);
        for (key, member) in members(value) {
            if let Some(name) = lists.iter().find(|name| key.as_str() == Some(**name))
                && member.as_array().is_some()
            {
                let at = parts.lists.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    parts.lists.push((*name, None));
                    parts.lists.len() - 1
                });
                List::extend(&mut parts.lists[at].1, member);
            } else {
                parts.members.insert(owned_key(key), member.to_owned());
            }
        }
    }

    fn finish(self) -> Value<'static> {
        let mut out = Object::new();
        for (key, list) in self.lists {
            out.insert(key, list.map(List::finish));
        }
        for (key, value) in self.members {
            out.insert(key, value);
        }
        Value::from(out)
    }
}

/// A list that comes in pieces; ids stay bare numbers as long as nothing else comes.
#[derive(Debug)]
enum List {
    Ids(Vec<u32>),
    Values(Vec<Value<'static>>),
}

impl List {
    /// Appends the elements of an array; anything else is no share of a list.
    fn extend(slot: &mut Option<Self>, value: ValueRef<'_>) {
        let Some(array) = value.as_array() else { return };
        let list = slot.get_or_insert(Self::Ids(Vec::new()));
        match (&mut *list, array.as_u32s()) {
            (Self::Ids(ids), Some(more)) => ids.extend_from_slice(more),
            (Self::Ids(ids), None) => {
                let mut values: Vec<Value<'static>> = ids.drain(..).map(Value::from).collect();
                values.extend(array.iter().map(ValueRef::to_owned));
                *list = Self::Values(values);
            }
            (Self::Values(values), _) => values.extend(array.iter().map(ValueRef::to_owned)),
        }
    }

    fn finish(self) -> Value<'static> {
        match self {
            Self::Ids(ids) => Value::from(ids),
            Self::Values(values) => Value::from(values),
        }
    }
}

/// The members of an object that are not null.
fn members<'v>(value: ValueRef<'v>) -> impl Iterator<Item = (StrRef<'v>, ValueRef<'v>)> {
    value.as_object().into_iter().flat_map(Object::iter).filter(|(_, member)| !member.is_null())
}

fn keep_first(members: &mut Object<'static>, key: StrRef<'_>, value: ValueRef<'_>) {
    if members.get_key(key).is_none() {
        members.insert(owned_key(key), value.to_owned());
    }
}

fn owned_key(text: StrRef<'_>) -> Str<'static> {
    text.to_str().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(chunks: &[&str]) -> (bool, String) {
        let mut stream = StreamAssembler::new();
        for chunk in chunks {
            stream.push(Value::parse(chunk.as_bytes()).unwrap().as_ref());
        }
        (stream.is_complete(), stream.finish().to_json())
    }

    #[test]
    fn a_vllm_stream_with_reasoning_and_two_calls_is_one_answer() {
        let (complete, answer) = assemble(&[
            r#"{"id":"c","created":5,"model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"prompt_token_ids":[1,2,3]}"#,
            r#"{"id":"c","created":5,"model":"m","choices":[{"index":0,"delta":{"reasoning":"think"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]},"token_ids":[7]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning":"ing"},"logprobs":{"content":[]},"token_ids":[]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"k0","type":"function","function":{"name":"ls","arguments":""}}]},"logprobs":{"content":[{"token":"b","logprob":-1}]},"token_ids":[8]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"k1","type":"function","function":{"name":"read","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","stop_reason":null,"logprobs":null}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        ]);
        assert!(complete);
        assert_eq!(
            answer,
            r#"{"id":"c","object":"chat.completion","created":5,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning":"thinking","tool_calls":[{"id":"k0","type":"function","function":{"name":"ls","arguments":"{\"p\":1}"}},{"id":"k1","type":"function","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls","logprobs":{"content":[{"token":"a","logprob":-0.5},{"token":"b","logprob":-1}]},"token_ids":[7,8]}],"prompt_token_ids":[1,2,3],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#
        );
    }

    #[test]
    fn an_sglang_stream_keeps_pairs_and_prompt_ids_in_the_choice() {
        let (complete, answer) = assemble(&[
            r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"prompt_token_ids":[1,2]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"},"meta_info":{"output_token_logprobs":[[-0.5,7,null]]},"prompt_token_ids":[9]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"\ude00"},"meta_info":{"output_token_logprobs":[[-0.25,8,null]],"id":"z"},"finish_reason":"stop"}]}"#,
        ]);
        assert!(complete);
        assert_eq!(
            answer,
            r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"\ud83d\ude00"},"finish_reason":"stop","logprobs":null,"meta_info":{"output_token_logprobs":[[-0.5,7,null],[-0.25,8,null]],"id":"z"},"prompt_token_ids":[1,2]}]}"#
        );
    }

    #[test]
    fn a_cut_or_failed_stream_is_not_complete() {
        let open = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}"#;
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let other = r#"{"choices":[{"index":1,"delta":{"content":"y"}}]}"#;
        assert!(!assemble(&[]).0);
        assert!(!assemble(&[open]).0);
        assert!(assemble(&[open, end]).0);
        assert!(!assemble(&[open, other, end]).0, "the second choice has no end");
        for error in [r#"{"error":{"message":"gone"}}"#, r#"{"object":"error","message":"gone"}"#, "5"] {
            assert!(!assemble(&[open, end, error]).0, "{error}");
        }
    }

    #[test]
    fn ids_that_are_no_numbers_are_kept_for_the_finding() {
        let (_, answer) = assemble(&[
            r#"{"choices":[{"index":0,"delta":{},"token_ids":[1]}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"token_ids":[null,"2"]}]}"#,
        ]);
        assert!(answer.contains(r#""token_ids":[1,null,"2"]"#), "{answer}");
    }
}
