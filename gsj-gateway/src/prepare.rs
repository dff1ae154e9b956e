//! From what the agent asks to what the engine is asked.

use std::borrow::Cow;

use bytes::Bytes;
use gsj_trace::engine::prepare_request;
use gsj_trace::json::{Object, Value, ValueRef};

use crate::engine::{EngineOptions, Sampling};

/// Fields of a request that say how tokens are sampled.
const SAMPLING_FIELDS: [&str; 11] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "stop",
    "n",
    "logit_bias",
];

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
}

pub(crate) fn prepare(engine: &EngineOptions, sampling: &Sampling, body: &Bytes) -> Result<Prepared, Malformed> {
    let mut value = Value::parse(body)?;
    let original = Original::of(body, &value);
    let members = value.as_object_mut().ok_or(Malformed::NotAnObject)?;
    if members.get("messages").and_then(ValueRef::as_array).is_none() {
        return Err(Malformed::NoMessages);
    }
    let wants = wants(members);
    let model_requested = members.get("model").and_then(ValueRef::as_str).map(str::to_owned);
    members.insert("model", engine.model.clone());
    let max_tokens = set_sampling(members, sampling);
    let sampling = sampling_sent(members, max_tokens);
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

fn sampling_sent(request: &Object<'_>, max_tokens: Option<i64>) -> Value<'static> {
    let mut out = Object::new();
    for name in SAMPLING_FIELDS {
        if let Some(value) = request.get(name).filter(|value| !value.is_null()) {
            out.insert(name, value.to_owned());
        }
    }
    if let Some(limit) = max_tokens {
        out.insert("max_tokens", limit);
    }
    out.insert("logprobs_mode", Value::Null);
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
