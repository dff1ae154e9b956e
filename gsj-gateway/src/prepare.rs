//! From what the agent asks to what the engine is asked.

use std::borrow::Cow;

use bytes::Bytes;
use gsj_trace::engine::prepare_request;
use gsj_trace::json::{Object, Value, ValueRef};

use crate::engine::{EngineOptions, Sampling};

/// Fields of a request that say how tokens are sampled: the configuration's to set, never the agent's.
const SAMPLING_FIELDS: [&str; 4] = ["temperature", "top_p", "top_k", "seed"];

/// Fields that an agent may set. Engines know many more, with which whoever can call them bends what is sampled
/// (`logit_bias`, `guided_regex`, `lora_path`), replaces the template (`chat_template`) or makes the engine connect to
/// an address or run a program (`kv_transfer_params`, `bootstrap_host`, `custom_logit_processor`).
const AGENTS_FIELDS: [&str; 17] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "store",
    "user",
    "max_tokens",
    "max_completion_tokens",
    "chat_template_kwargs",
    "reasoning_effort",
    "logprobs",
    "return_token_ids",
    "return_prompt_token_ids",
    "return_meta_info",
];

/// What `chat_template_kwargs` must not hold: arguments of the engine's own call of the template.
const ENGINES_KWARGS: [&str; 9] = [
    "chat_template",
    "tokenize",
    "conversation",
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "tokenizer_kwargs",
];

/// Members of a part of a message's content. Others make engines fetch an address or unpack a tensor.
const PART_MEMBERS: [&str; 7] = ["type", "text", "refusal", "thinking", "signature", "cache_control", "image_url"];

/// How many ignored fields are named, and how much of each name.
const NAMED: usize = 32;
const LONGEST_NAME: usize = 64;

/// What of an answer the agent asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wants {
    pub(crate) stream: bool,
    pub(crate) usage: bool,
    pub(crate) logprobs: bool,
    pub(crate) token_ids: bool,
    pub(crate) prompt_ids: bool,
    pub(crate) meta_info: bool,
}

/// One request, made ready.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What the agent sent, one line of JSON.
    pub(crate) original: Original,
    /// The same with model and sampling set: what the record keeps as `request`.
    pub(crate) request: String,
    /// With the engine's extras: what is sent.
    pub(crate) upstream: Bytes,
    pub(crate) wants: Wants,
    /// `gsj_sampling`.
    pub(crate) sampling: Value<'static>,
    pub(crate) model_requested: Option<String>,
}

/// The agent's request for the record: its own bytes wherever they can stand in a line of JSON.
#[derive(Debug)]
pub(crate) enum Original {
    Verbatim(Bytes),
    Rewritten(String),
}

impl Original {
    fn of(body: &Bytes, value: &Value<'_>) -> Self {
        // Other encodings than plain UTF-8 are read too, but cannot stand in the log as they are.
        let plain =
            body.trim_ascii_start().starts_with(b"{") && !body.contains(&0) && std::str::from_utf8(body).is_ok();
        if plain { Self::Verbatim(body.clone()) } else { Self::Rewritten(value.to_json()) }
    }

    /// One line. Line breaks stand only between JSON tokens, where a blank means the same.
    pub(crate) fn line(&self) -> Cow<'_, str> {
        match self {
            Self::Rewritten(text) => Cow::Borrowed(text),
            Self::Verbatim(bytes) => {
                let text = String::from_utf8_lossy(bytes.trim_ascii());
                if text.contains(['\n', '\r']) { Cow::Owned(text.replace(['\n', '\r'], " ")) } else { text }
            }
        }
    }
}

/// Why a request is refused before the engine sees it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the request body is not JSON: {0}")]
    Json(#[from] gsj_trace::json::ReadError),
    #[error("the request body is not a JSON object")]
    NotAnObject,
    #[error("the request has no list `messages`")]
    NoMessages,
    #[error("a part of a message holds `{0}`: text is taken, and images as `data:` URLs")]
    Part(String),
}

pub(crate) fn prepare(engine: &EngineOptions, sampling: &Sampling, body: &Bytes) -> Result<Prepared, Malformed> {
    let mut value = Value::parse(body)?;
    let original = Original::of(body, &value);
    let members = value.as_object_mut().ok_or(Malformed::NotAnObject)?;
    if members.get("messages").and_then(ValueRef::as_array).is_none() {
        return Err(Malformed::NoMessages);
    }
    check_parts(members)?;
    let wants = wants(members);
    let ignored = keep_agents_fields(members);
    let model_requested = members.get("model").and_then(ValueRef::as_str).map(str::to_owned);
    members.insert("model", engine.model.clone());
    let max_tokens = set_sampling(members, sampling);
    let sampling = sampling_sent(members, max_tokens, ignored);
    let request = value.to_json();

    let mut asked = prepare_request(engine.kind.dialect(), value);
    if let Some(members) = asked.as_object_mut() {
        members.insert("stream", engine.stream);
        members.remove("stream_options");
        if engine.stream {
            members.insert("stream_options", Object::from_iter([("include_usage", true)]));
        }
    }
    let upstream = Bytes::from(asked.to_json());
    Ok(Prepared { original, request, upstream, wants, sampling, model_requested })
}

fn wants(request: &Object<'_>) -> Wants {
    let asked = |key: &str| request.get(key).and_then(ValueRef::as_bool).unwrap_or(false);
    let usage = request.get("stream_options").and_then(|o| o.get("include_usage")).and_then(ValueRef::as_bool);
    Wants {
        stream: asked("stream"),
        usage: usage.unwrap_or(false),
        logprobs: asked("logprobs"),
        token_ids: asked("return_token_ids"),
        prompt_ids: asked("return_token_ids") || asked("return_prompt_token_ids"),
        meta_info: asked("return_meta_info"),
    }
}

/// Takes out what is not the agent's to say; gives the names.
fn keep_agents_fields(request: &mut Object<'_>) -> Vec<String> {
    let mut ignored = Vec::new();
    // Put together anew: taking members out one by one takes quadratic time, and their number is the agent's.
    for (name, value) in std::mem::take(request) {
        let kept = match name.as_str() {
            // Any other choice makes the engine sample under a grammar.
            Some("tool_choice") => value.is_null() || matches!(value.as_str(), Some("auto" | "none")),
            Some(known) => AGENTS_FIELDS.contains(&known),
            None => false,
        };
        if kept {
            request.insert(name, value);
        } else if ignored.len() < NAMED {
            ignored.push(name.as_ref().lossy().chars().take(LONGEST_NAME).collect());
        }
    }
    if let Some(kwargs) = request.get_mut("chat_template_kwargs").and_then(Value::as_object_mut) {
        for name in ENGINES_KWARGS {
            if kwargs.remove(name).is_some() {
                ignored.push(format!("chat_template_kwargs.{name}"));
            }
        }
    }
    ignored
}

/// An engine has a network: it must not be asked to fetch anything for an agent that has none.
fn check_parts(request: &Object<'_>) -> Result<(), Malformed> {
    let messages = request.get("messages").and_then(ValueRef::as_array);
    let contents = messages.into_iter().flat_map(|list| list.iter()).filter_map(|message| message.get("content"));
    for part in contents.filter_map(ValueRef::as_array).flat_map(|parts| parts.iter()).filter_map(ValueRef::as_object) {
        for (name, value) in part {
            let name = name.lossy();
            let url = value.as_str().or_else(|| value.get("url").and_then(ValueRef::as_str));
            let fetched = name == "image_url" && !url.is_some_and(|url| url.starts_with("data:"));
            if fetched || !PART_MEMBERS.contains(&&*name) {
                return Err(Malformed::Part(name.into_owned()));
            }
        }
    }
    Ok(())
}

/// Sets what is configured; gives back the token limit of this call, if there is one.
fn set_sampling(request: &mut Object<'_>, sampling: &Sampling) -> Option<i64> {
    if let Some(value) = sampling.temperature {
        request.insert("temperature", value);
    }
    if let Some(value) = sampling.top_p {
        request.insert("top_p", value);
    }
    if let Some(value) = sampling.top_k {
        request.insert("top_k", value);
    }
    if let Some(value) = sampling.seed {
        request.insert("seed", value);
    }
    let names = ["max_completion_tokens", "max_tokens"];
    let asked = names.iter().filter_map(|name| request.get(name)?.as_i64()).min();
    let cap = sampling.max_tokens.map(i64::from);
    let limit = match (asked, cap) {
        (Some(asked), Some(cap)) => Some(asked.min(cap)),
        (one, other) => one.or(other),
    };
    if let (Some(limit), Some(_)) = (limit, cap) {
        // One field only, the one that the agent knows, so that two cannot disagree.
        let newer = request.contains_key("max_completion_tokens");
        let (kept, dropped) = if newer { (names[0], names[1]) } else { (names[1], names[0]) };
        request.remove(dropped);
        request.insert(kept, limit);
    }
    limit
}

fn sampling_sent(request: &Object<'_>, max_tokens: Option<i64>, ignored: Vec<String>) -> Value<'static> {
    let mut out = Object::new();
    for name in SAMPLING_FIELDS {
        if let Some(value) = request.get(name) {
            out.insert(name, value.to_owned());
        }
    }
    if let Some(limit) = max_tokens {
        out.insert("max_tokens", limit);
    }
    out.insert("logprobs_mode", Value::Null);
    // What the configuration has put in its place is not named: the policy says what it is.
    let ignored: Vec<Value<'_>> =
        ignored.into_iter().filter(|name| !request.contains_key(name)).map(Value::from).collect();
    if !ignored.is_empty() {
        out.insert("ignored", ignored);
    }
    Value::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineKind;

    fn engine(kind: EngineKind, stream: bool) -> EngineOptions {
        EngineOptions { stream, ..EngineOptions::new(kind, "http://h", "served") }
    }

    #[test]
    fn the_engine_is_asked_for_ids_and_the_record_does_not_show_it() {
        let body = Bytes::from_static(
            br#"{"model":"stub","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"r"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":8192}"#,
        );
        let sampling =
            Sampling { temperature: Some(0.7), top_k: Some(-1), max_tokens: Some(512), ..Sampling::default() };
        let prepared = prepare(&engine(EngineKind::Vllm, false), &sampling, &body).unwrap();
        assert_eq!(prepared.original.line().as_bytes(), body, "the agent's bytes are kept as they came");
        assert_eq!(
            prepared.request,
            r#"{"model":"served","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"r"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":512,"temperature":0.7,"top_k":-1}"#
        );
        let sent = std::str::from_utf8(&prepared.upstream).unwrap();
        assert_eq!(
            sent,
            r#"{"model":"served","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning":"r"}],"stream":false,"max_completion_tokens":512,"temperature":0.7,"top_k":-1,"logprobs":true,"return_token_ids":true,"top_logprobs":0}"#
        );
        assert_eq!(
            prepared.sampling.to_json(),
            r#"{"temperature":0.7,"top_k":-1,"max_tokens":512,"logprobs_mode":null}"#
        );
        assert_eq!(prepared.model_requested.as_deref(), Some("stub"));
    }

    #[test]
    fn a_streaming_engine_is_asked_for_usage() {
        let body = Bytes::from_static(b"{\n \"messages\": []\n}");
        let prepared = prepare(&engine(EngineKind::Sglang, true), &Sampling::default(), &body).unwrap();
        assert_eq!(prepared.original.line(), "{  \"messages\": [] }", "line breaks would break the log's lines");
        assert_eq!(
            std::str::from_utf8(&prepared.upstream).unwrap(),
            r#"{"messages":[],"model":"served","logprobs":true,"return_prompt_token_ids":true,"return_meta_info":true,"stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!(prepared.sampling.to_json(), r#"{"logprobs_mode":null}"#);
    }

    #[test]
    fn the_smaller_limit_holds_and_only_one_field_names_it() {
        let limit = |body: &'static str, cap| {
            let sampling = Sampling { max_tokens: cap, ..Sampling::default() };
            let body = Bytes::from_static(body.as_bytes());
            prepare(&engine(EngineKind::Vllm, true), &sampling, &body).unwrap().request
        };
        assert!(
            limit(r#"{"messages":[],"max_tokens":9}"#, Some(50)).contains(r#""max_tokens":9"#),
            "the agent asks for less"
        );
        assert!(limit(r#"{"messages":[]}"#, Some(50)).contains(r#""max_tokens":50"#), "the agent asks for nothing");
        let both = limit(r#"{"messages":[],"max_tokens":9,"max_completion_tokens":70}"#, Some(50));
        assert!(both.contains(r#""max_completion_tokens":9"#) && !both.contains(r#""max_tokens""#), "{both}");
        assert!(!limit(r#"{"messages":[]}"#, None).contains("max_"), "nothing is invented");
    }

    #[test]
    fn an_agent_bends_neither_the_sampling_nor_the_engine() {
        let body = Bytes::from_static(
            br#"{"messages":[],"temperature":0,"n":3,"logit_bias":{"5":100},"guided_regex":"a+","lora_path":"/x","tool_choice":"required","kv_transfer_params":{"remote_host":"10.0.0.1"},"chat_template_kwargs":{"enable_thinking":false,"chat_template":"{{ 1 }}"},"temperature":1,"max_tokens":9}"#,
        );
        for kind in [EngineKind::Vllm, EngineKind::Sglang] {
            let prepared = prepare(&engine(kind, false), &Sampling::default(), &body).unwrap();
            assert_eq!(
                prepared.request,
                r#"{"messages":[],"chat_template_kwargs":{"enable_thinking":false},"max_tokens":9,"model":"served"}"#
            );
            let sent = std::str::from_utf8(&prepared.upstream).unwrap();
            for gone in ["temperature", "bias", "regex", "lora", "required", "10.0.0.1", "{{"] {
                assert!(!sent.contains(gone), "{gone} reaches the engine: {sent}");
            }
            assert_eq!(
                prepared.sampling.to_json(),
                r#"{"max_tokens":9,"logprobs_mode":null,"ignored":["temperature","n","logit_bias","guided_regex","lora_path","tool_choice","kv_transfer_params","chat_template_kwargs.chat_template"]}"#
            );
        }
        let auto = Bytes::from_static(br#"{"messages":[],"tool_choice":"auto"}"#);
        let prepared = prepare(&engine(EngineKind::Vllm, false), &Sampling::default(), &auto).unwrap();
        assert!(prepared.request.contains(r#""tool_choice":"auto""#), "what changes nothing stays");
    }

    #[test]
    fn an_engine_is_not_made_to_fetch() {
        let parts = |parts: &str| {
            let body = Bytes::from(format!(r#"{{"messages":[{{"role":"user","content":[{parts}]}}]}}"#));
            prepare(&engine(EngineKind::Vllm, true), &Sampling::default(), &body).map(drop)
        };
        for fetched in [
            r#"{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}"#,
            r#"{"type":"text","text":"x"},{"image_url":"file:///etc/passwd"}"#,
            r#"{"type":"video_url","video_url":{"url":"data:x"}}"#,
            r#"{"type":"image_embeds","image_embeds":"AAAA"}"#,
        ] {
            assert!(matches!(parts(fetched), Err(Malformed::Part(_))), "{fetched} is refused");
        }
        for fine in [
            r#"{"type":"text","text":"see http://169.254.169.254/","cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#,
            r#""just text""#,
        ] {
            assert!(parts(fine).is_ok(), "{fine} is taken");
        }
    }

    #[test]
    fn what_is_no_chat_request_is_refused() {
        let refuse = |body: &'static [u8]| {
            prepare(&engine(EngineKind::Vllm, true), &Sampling::default(), &Bytes::from_static(body))
                .unwrap_err()
                .to_string()
        };
        assert!(refuse(b"{").starts_with("the request body is not JSON"));
        assert_eq!(refuse(b"[]"), "the request body is not a JSON object");
        assert_eq!(refuse(b"{}"), "the request has no list `messages`");
    }
}
