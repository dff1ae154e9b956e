//! Chat answers in the two dialects, whole and streamed.

use std::io;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};

use super::routes::{App, is_vllm};
use super::script::Fault;
use super::template::python_json;

/// Characters of text that one event of a stream carries.
const PIECE: usize = 24;
/// Stands for NaN in a JSON tree, which cannot hold one; no log-probability is near it.
const NAN_MARK: f64 = -1.25e300;

/// What the engine says in one answer.
pub(super) struct Said {
    prompt: Vec<u32>,
    ids: Vec<u32>,
    logprobs: Vec<f64>,
    finish: String,
    content: Option<String>,
    reasoning: Option<String>,
    calls: Vec<Value>,
    fault: Option<Fault>,
}

impl Said {
    pub(super) fn new(app: &App, prompt: Vec<u32>, ids: Vec<u32>, finish: String, fault: Option<Fault>) -> Self {
        let mut logprobs = app.codec.logprobs(prompt.len(), &ids);
        if fault == Some(Fault::NanLogprob)
            && let Some(first) = logprobs.first_mut()
        {
            *first = NAN_MARK;
        }
        let end = app.codec.end_of_turn();
        let spoken: Vec<u32> = ids.iter().copied().filter(|id| *id != end).collect();
        let (content, reasoning, calls) = parse(&app.codec.text(&spoken), app.next_answer());
        let finish = if finish == "stop" && !calls.is_empty() { "tool_calls".to_owned() } else { finish };
        Self { prompt, ids, logprobs, finish, content, reasoning, calls, fault }
    }

    fn entries(&self, app: &App) -> Vec<Value> {
        self.ids
            .iter()
            .zip(&self.logprobs)
            .map(|(id, logprob)| {
                json!({"token": app.codec.text(&[*id]), "logprob": logprob, "bytes": app.codec.piece(*id), "top_logprobs": []})
            })
            .collect()
    }

    fn meta_pairs(&self) -> Vec<Value> {
        self.ids.iter().zip(&self.logprobs).map(|(id, logprob)| json!([logprob, id, null])).collect()
    }
}

/// Splits what was said into content, reasoning and tool calls, as a hermes parser does.
fn parse(text: &str, answer: u64) -> (Option<String>, Option<String>, Vec<Value>) {
    let mut text = text;
    let mut reasoning = None;
    if let Some((inside, after)) = text.strip_prefix("<think>").and_then(|t| t.split_once("</think>")) {
        reasoning = Some(inside.trim_matches('\n').to_owned());
        text = after.trim_start_matches('\n');
    }
    let mut calls = Vec::new();
    let mut rest = String::new();
    while let Some((before, after)) = text.split_once("<tool_call>") {
        let Some((raw, after)) = after.split_once("</tool_call>") else { break };
        rest.push_str(before);
        text = after;
        match call(raw, answer, calls.len()) {
            Some(call) => calls.push(call),
            None => {
                rest.push_str("<tool_call>");
                rest.push_str(raw);
                rest.push_str("</tool_call>");
            }
        }
    }
    rest.push_str(text);
    if calls.is_empty() {
        return (Some(rest), reasoning, calls);
    }
    let content = rest.trim_matches('\n');
    ((!content.is_empty()).then(|| content.to_owned()), reasoning, calls)
}

fn call(raw: &str, answer: u64, index: usize) -> Option<Value> {
    let parsed: Value = serde_json::from_str(raw).ok()?;
    let name = parsed.get("name")?;
    let empty = Value::Object(Map::new());
    let arguments = python_json(parsed.get("arguments").unwrap_or(&empty));
    Some(json!({"id": format!("call_{answer:08x}{index:04x}"), "type": "function",
        "function": {"name": name, "arguments": arguments}}))
}

struct Wanted {
    ids: bool,
    prompt_ids: bool,
    logprobs: bool,
}

impl Wanted {
    fn of(app: &App, request: &Value, said: &Said) -> Self {
        let asked = |key: &str| request.get(key).and_then(Value::as_bool).unwrap_or(false);
        let shown = said.fault != Some(Fault::NoTokenIds);
        if is_vllm(app) {
            let ids = asked("return_token_ids") && shown;
            Self { ids, prompt_ids: ids, logprobs: asked("logprobs") && said.fault != Some(Fault::NoLogprobs) }
        } else {
            Self {
                ids: asked("return_meta_info") && shown,
                prompt_ids: asked("return_prompt_token_ids"),
                logprobs: asked("logprobs") && said.fault != Some(Fault::NoLogprobs),
            }
        }
    }
}

fn reasoning_key(app: &App) -> &'static str {
    if is_vllm(app) { "reasoning" } else { "reasoning_content" }
}

fn usage(said: &Said) -> Value {
    let (prompt, completion) = (said.prompt.len(), said.ids.len());
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn text_of(value: &Value) -> String {
    value.to_string().replace(&Value::from(NAN_MARK).to_string(), "NaN")
}

/// The end of a connection in the middle of an answer.
pub(super) fn cut() -> io::Result<Bytes> {
    Err(io::ErrorKind::ConnectionReset.into())
}

pub(super) fn whole(app: &App, request: &Value, said: &Said) -> Response {
    let wanted = Wanted::of(app, request, said);
    let mut message = json!({"role": "assistant", "content": said.content, "refusal": null, "tool_calls": said.calls});
    message[reasoning_key(app)] = json!(said.reasoning);
    let logprobs = if wanted.logprobs { json!({"content": said.entries(app)}) } else { Value::Null };
    let mut choice = json!({"index": 0, "message": message, "finish_reason": said.finish, "stop_reason": null, "logprobs": logprobs});
    let mut body = json!({"id": format!("chatcmpl-scripted-{:08x}", app.next_answer()), "object": "chat.completion", "created": 0, "model": app.options.model});
    if is_vllm(app) {
        choice["token_ids"] = if wanted.ids { json!(said.ids) } else { Value::Null };
        body["prompt_token_ids"] = if wanted.prompt_ids { json!(said.prompt) } else { Value::Null };
    } else {
        if wanted.ids {
            choice["meta_info"] = json!({"output_token_logprobs": said.meta_pairs()});
        }
        if wanted.prompt_ids {
            choice["prompt_token_ids"] = json!(said.prompt);
        }
    }
    body["choices"] = json!([choice]);
    body["usage"] = usage(said);
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text_of(&body)).into_response()
}

pub(super) fn streamed(app: &App, request: &Value, said: &Said) -> Response {
    // A pause before each event lets the server send the ones before it, as an engine does.
    let events = futures_util::stream::iter(events(app, request, said)).then(async |event| {
        tokio::task::yield_now().await;
        event
    });
    (StatusCode::OK, [(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

fn events(app: &App, request: &Value, said: &Said) -> Vec<io::Result<Bytes>> {
    let wanted = Wanted::of(app, request, said);
    let id = format!("chatcmpl-scripted-{:08x}", app.next_answer());
    let chunk = |choices: Value| json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": app.options.model, "choices": choices});
    let event = |value: &Value| Ok(Bytes::from(format!("data: {}\n\n", text_of(value))));

    let mut first = chunk(json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]));
    if wanted.prompt_ids {
        if is_vllm(app) {
            first["prompt_token_ids"] = json!(said.prompt);
        } else {
            first["choices"][0]["prompt_token_ids"] = json!(said.prompt);
        }
    }
    let mut out = vec![event(&first)];

    let deltas = deltas(app, said);
    let entries = said.entries(app);
    let pairs = said.meta_pairs();
    let share = said.ids.len().div_ceil(deltas.len()).max(1);
    let last = deltas.len() - 1;
    let cut_at = (said.fault == Some(Fault::CutStream)).then_some(deltas.len() / 2);
    for (n, delta) in deltas.into_iter().enumerate() {
        if cut_at.is_some_and(|at| n >= at) {
            out.push(cut());
            return out;
        }
        let from = (n * share).min(said.ids.len());
        let to = if n == last { said.ids.len() } else { ((n + 1) * share).min(said.ids.len()) };
        let logprobs = if wanted.logprobs { json!({"content": entries[from..to]}) } else { Value::Null };
        let mut choice = json!({"index": 0, "delta": delta, "finish_reason": null, "logprobs": logprobs});
        if wanted.ids && is_vllm(app) {
            choice["token_ids"] = json!(said.ids[from..to]);
        } else if wanted.ids {
            choice["meta_info"] = json!({"output_token_logprobs": pairs[from..to]});
        }
        out.push(event(&chunk(json!([choice]))));
    }
    out.push(event(&chunk(json!([{"index": 0, "delta": {}, "finish_reason": said.finish, "logprobs": null}]))));
    if request.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false) {
        let mut end = chunk(json!([]));
        end["usage"] = usage(said);
        out.push(event(&end));
    }
    out.push(Ok(Bytes::from_static(b"data: [DONE]\n\n")));
    out
}

/// Reasoning, then content, then each call, in small pieces; never none.
fn deltas(app: &App, said: &Said) -> Vec<Value> {
    let mut out = Vec::new();
    let texts = [(reasoning_key(app), &said.reasoning), ("content", &said.content)];
    for (key, text) in texts {
        out.extend(pieces(text.as_deref().unwrap_or("")).iter().map(|piece| json!({key: piece})));
    }
    for (n, call) in said.calls.iter().enumerate() {
        let function = &call["function"];
        out.push(json!({"tool_calls": [{"index": n, "id": call["id"], "type": "function",
            "function": {"name": function["name"], "arguments": ""}}]}));
        out.extend(
            pieces(function["arguments"].as_str().unwrap_or(""))
                .iter()
                .map(|piece| json!({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})),
        );
    }
    if out.is_empty() {
        out.push(json!({"content": ""}));
    }
    out
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
