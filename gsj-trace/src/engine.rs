//! What an engine must be asked for, and what its answers mean (section 12).

use crate::json::{Object, Value, ValueRef};
use crate::reconstruct::{Ids, reading};

/// The dialect of an OpenAI-compatible engine: how it is asked for token ids and where it puts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// vLLM: prompt ids at the top of the answer, `token_ids` in the choice, `reasoning` in messages.
    Vllm,
    /// SGLang: prompt ids in the choice, ids and logprobs in `meta_info`.
    Sglang,
}

impl Dialect {
    /// The name as it stands in configurations and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
        }
    }

    /// The dialect of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Vllm, Self::Sglang].into_iter().find(|dialect| dialect.name() == name)
    }
}

/// Adds to a chat request what makes the engine state ids and logprobs (section 12.1).
///
/// Whether the answer is streamed is the caller's: `stream` and `stream_options` stay as they are. A request that is no
/// object is given back unchanged.
#[must_use]
pub fn prepare_request<'a>(dialect: Dialect, request: Value<'a>) -> Value<'a> {
    let mut request = request;
    if let Some(members) = request.as_object_mut() {
        members.insert("logprobs", true);
        match dialect {
            Dialect::Vllm => {
                members.insert("return_token_ids", true);
                // Without a number of alternatives vLLM leaves the logprobs of the sampled ids out.
                if !members.contains_key("top_logprobs") {
                    members.insert("top_logprobs", 0);
                }
                for message in members.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
                    move_member(message, "reasoning_content", "reasoning");
                }
            }
            Dialect::Sglang => {
                members.insert("return_prompt_token_ids", true);
                members.insert("return_meta_info", true);
            }
        }
    }
    request
}

/// Brings an engine's whole answer into the one form that records and traces use, as the reference does (section 12.2).
///
/// An answer without choices, as an error, stays as it is. Of an SGLang answer with one unusable pair the reference
/// loses a token, and with fewer logprobs than ids all of them (D10); [`normalize_whole`] does not.
pub fn normalize_response(dialect: Dialect, response: &mut Value<'_>) {
    for choice in choices(response) {
        match dialect {
            Dialect::Vllm => {
                name_reasoning(choice);
                stamp(choice);
            }
            Dialect::Sglang => {
                lift_prompt_ids(choice);
                lift_sampled_ids(choice);
                stamp(choice);
                if let Some(members) = choice.as_object_mut() {
                    members.remove("meta_info");
                }
            }
        }
    }
}

/// Brings an engine's whole answer into the one form that records and traces use, and loses nothing.
///
/// As [`normalize_response`], but the pairs of `meta_info.output_token_logprobs` are read together or not at all:
/// with one element that is no id and logprob no ids are taken from them. They stay where they are unless each id has
/// its logprob in `logprobs.content` as well, so that [`crate::reconstruct`] can read them, or say what is wrong with
/// them.
///
/// ```
/// use gsj_trace::engine::{Dialect, normalize_whole};
/// use gsj_trace::json::Value;
///
/// let mut answer =
///     Value::parse(br#"{"choices": [{"meta_info": {"id": "x", "output_token_logprobs": [[-0.5, 7, null], [-1, 9, null]]}}]}"#)?;
/// normalize_whole(Dialect::Sglang, &mut answer);
/// assert_eq!(
///     answer.to_json(),
///     r#"{"choices":[{"meta_info":{"output_token_logprobs":[[-0.5,7,null],[-1,9,null]]},"token_ids":[7,9]}]}"#
/// );
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
pub fn normalize_whole(dialect: Dialect, response: &mut Value<'_>) {
    for choice in choices(response) {
        match dialect {
            Dialect::Vllm => {
                name_reasoning(choice);
                stamp(choice);
            }
            Dialect::Sglang => {
                lift_prompt_ids(choice);
                take_whole_pairs(choice);
                stamp(choice);
                let stated = is_stated(choice);
                let Some(members) = choice.as_object_mut() else { continue };
                let pairs = members.get_mut("meta_info").and_then(Value::as_object_mut);
                match pairs.and_then(|meta| meta.remove("output_token_logprobs")).filter(|_| !stated) {
                    Some(pairs) => {
                        members.insert("meta_info", Object::from_iter([("output_token_logprobs", pairs)]));
                    }
                    None => {
                        members.remove("meta_info");
                    }
                }
            }
        }
    }
}

fn choices<'r, 'a>(response: &'r mut Value<'a>) -> impl Iterator<Item = &'r mut Value<'a>> {
    response.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten()
}

fn name_reasoning(choice: &mut Value<'_>) {
    if let Some(message) = choice.get_mut("message")
        && message.get("reasoning_content").is_none_or(ValueRef::is_null)
    {
        move_member(message, "reasoning", "reasoning_content");
    }
}

/// The ids of `meta_info`'s pairs as the list of ids, unless there is one already or a pair is unusable.
fn take_whole_pairs(choice: &mut Value<'_>) {
    let Some(members) = choice.as_object_mut() else { return };
    if members.get("token_ids").is_some_and(|v| v.as_array().is_some()) {
        return;
    }
    let pairs = members.get("meta_info").and_then(|meta| meta.get("output_token_logprobs"));
    let whole = pairs.and_then(ValueRef::as_array).and_then(reading::whole_pairs);
    if let Some(ids) = whole.filter(|ids| !ids.is_empty()) {
        members.insert("token_ids", ids);
    }
}

/// Whether `logprobs.content` gives each id its logprob.
fn is_stated(choice: &Value<'_>) -> bool {
    let ids = choice.get("token_ids").and_then(ValueRef::as_array);
    let content = choice.get("logprobs").and_then(|l| l.get("content")).and_then(ValueRef::as_array);
    ids.zip(content).is_some_and(|(ids, content)| {
        let says = |entry: ValueRef<'_>, id: ValueRef<'_>| {
            entry.get("token_id") == Some(id) && entry.get("logprob").and_then(reading::logprob).is_some()
        };
        ids.len() == content.len() && content.iter().zip(ids).all(|(entry, id)| says(entry, id))
    })
}

/// Renames a member that is not null, replacing one that bears the new name.
fn move_member<'a>(of: &mut Value<'a>, from: &str, to: &'static str) {
    let Some(members) = of.as_object_mut() else { return };
    if members.get(from).is_some_and(|value| !value.is_null())
        && let Some(value) = members.remove(from)
    {
        members.insert(to, value);
    }
}

fn lift_prompt_ids(choice: &mut Value<'_>) {
    let Some(members) = choice.as_object_mut() else { return };
    if members.get("input_token_ids").is_none_or(ValueRef::is_null) {
        let prompt = members.get("prompt_token_ids").filter(|v| v.as_array().is_some()).map(ValueRef::to_owned);
        if let Some(prompt) = prompt {
            members.insert("input_token_ids", prompt);
        }
    }
}

fn lift_sampled_ids(choice: &mut Value<'_>) {
    let Some(members) = choice.as_object_mut() else { return };
    if members.get("token_ids").is_some_and(|v| v.as_array().is_some()) {
        return;
    }
    let mut ids = Ids::default();
    let listed = members.get("meta_info").and_then(|meta| meta.get("output_token_logprobs"));
    let found: Vec<u32> = listed
        .and_then(ValueRef::as_array)
        .into_iter()
        .flat_map(|array| array.iter())
        .filter_map(|entry| entry.index(1).or_else(|| entry.get("token_id")))
        .filter_map(|id| ids.coerced(id).ok())
        .collect();
    if !found.is_empty() {
        members.insert("token_ids", ids.to_value(&found));
    }
}

/// Writes each sampled id beside its logprob, when there are as many of one as of the other.
fn stamp(choice: &mut Value<'_>) {
    let Some(ids) = choice.get("token_ids").and_then(ValueRef::as_array) else { return };
    let ids: Vec<Value<'static>> = ids.iter().map(ValueRef::to_owned).collect();
    let content = choice.get_mut("logprobs").and_then(|l| l.get_mut("content"));
    let Some(entries) = content.filter(|c| c.as_array().is_some_and(|a| a.len() == ids.len())) else { return };
    for (entry, id) in entries.as_array_mut().into_iter().flatten().zip(ids) {
        if let Some(members) = entry.as_object_mut()
            && !members.contains_key("token_id")
        {
            members.insert("token_id", id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_request_keeps_what_the_agent_asked_for() {
        let request = Value::parse(br#"{"stream":true,"temperature":0.5,"top_logprobs":3}"#).unwrap();
        assert_eq!(
            prepare_request(Dialect::Vllm, request).to_json(),
            r#"{"stream":true,"temperature":0.5,"top_logprobs":3,"logprobs":true,"return_token_ids":true}"#
        );
        assert_eq!(prepare_request(Dialect::Sglang, Value::from(5)).to_json(), "5");
    }

    #[test]
    fn names_and_dialects_are_one_to_one() {
        for dialect in [Dialect::Vllm, Dialect::Sglang] {
            assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
        }
        assert_eq!(Dialect::from_name("vLLM"), None);
    }
}
