//! A tiny tokenizer, engines, a gateway, and an agent's side.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gsj_gateway::scripted::{ScriptedEngine, ScriptedOptions};
use gsj_gateway::{Engine, EngineKind, EngineOptions, Recorded, Session, SessionOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const MODEL: &str = "tiny";

/// ChatML, as plain as can be, with tools and reasoning.
pub(crate) const TEMPLATE: &str =
    "{%- for t in tools or [] %}{{ t | tojson }}\n{%- endfor %}{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}{{ '\\n' }}{% endif %}<tool_call>
{\"name\": {{ c.function.name | tojson }}, \"arguments\": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}";

/// A byte-level tokenizer without merges: a token a byte, and the special tokens.
pub(crate) fn tokenizer() -> Vec<u8> {
    let mut vocab = BTreeMap::new();
    let mut next = 0x100;
    for byte in 0..=255_u32 {
        let own = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if own { byte } else { next };
        next += u32::from(!own);
        vocab.insert(char::from_u32(code).unwrap().to_string(), byte);
    }
    let special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
    let added: Vec<Value> = special
        .iter()
        .enumerate()
        .map(|(i, text)| {
            json!({"id": 256 + i, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
        })
        .collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []},
    })
    .to_string()
    .into_bytes()
}

pub(crate) fn scripted_options(script: &Value, kind: EngineKind) -> ScriptedOptions {
    ScriptedOptions::new(script.to_string(), tokenizer(), TEMPLATE, kind, MODEL)
}

/// Something that serves until it is dropped.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    stop: CancellationToken,
}

impl Served {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) async fn scripted(options: ScriptedOptions) -> Self {
        let engine = ScriptedEngine::new(options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = Self { addr: listener.local_addr().unwrap(), stop: CancellationToken::new() };
        let stop = served.stop.clone();
        tokio::spawn(async move { engine.serve(listener, stop).await });
        served
    }

    pub(crate) async fn router(router: axum::Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = Self { addr: listener.local_addr().unwrap(), stop: CancellationToken::new() };
        let stop = served.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = axum::serve(listener, router) => {}
                () = stop.cancelled() => {}
            }
        });
        served
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Options for tests: hardly any wait between attempts.
pub(crate) fn engine_options(kind: EngineKind, url: impl Into<String>) -> EngineOptions {
    EngineOptions {
        backoff: Duration::from_millis(5),
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_secs(20),
        ..EngineOptions::new(kind, url, MODEL)
    }
}

/// A gateway for one session.
pub(crate) struct Gateway {
    pub(crate) session: Session,
    pub(crate) log: PathBuf,
    pub(crate) served: Served,
    pub(crate) client: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Gateway {
    pub(crate) async fn open(engine: EngineOptions) -> Self {
        Self::open_with(engine, |_| {}).await
    }

    pub(crate) async fn open_with(engine: EngineOptions, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("session.log");
        let engine = Arc::new(Engine::new(engine).unwrap());
        let mut options = SessionOptions::new("ses-1", &log);
        change(&mut options);
        let session = Session::open(engine, options).unwrap();
        let served = Served::router(session.router()).await;
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { session, log, served, client, _folder: folder }
    }

    pub(crate) async fn post(&self, request: &Value) -> reqwest::Result<reqwest::Response> {
        let url = format!("{}/v1/chat/completions", self.served.url());
        self.client.post(url).header("authorization", "Bearer agent-key").body(request.to_string()).send().await
    }

    /// A call that must succeed: the message, the finish reason, the usage, and the bytes.
    pub(crate) async fn ask(&self, request: &Value) -> Answer {
        let response = self.post(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let streamed = response.headers()["content-type"] == "text/event-stream";
        assert_eq!(streamed, request["stream"] == true, "the agent gets the form that it asked for");
        let text = response.text().await.unwrap();
        if streamed { Answer::from_stream(text) } else { Answer::from_whole(text) }
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn outcomes(&self) -> Vec<String> {
        self.records().iter().map(|r| r["outcome"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn finish(&self) -> Recorded {
        self.session.finish().await
    }
}

/// What the agent understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) message: Value,
    pub(crate) finish_reason: Value,
    pub(crate) usage: Value,
    pub(crate) text: String,
}

impl Answer {
    fn from_whole(text: String) -> Self {
        let body: Value = serde_json::from_str(&text).unwrap();
        let message = &body["choices"][0]["message"];
        Self {
            message: plain(message),
            finish_reason: body["choices"][0]["finish_reason"].clone(),
            usage: body["usage"].clone(),
            text,
        }
    }

    /// Puts the deltas together as an agent's client does.
    fn from_stream(text: String) -> Self {
        assert!(text.ends_with("data: [DONE]\n\n"), "the stream ends: {text}");
        let (mut content, mut reasoning) = (String::new(), String::new());
        let mut calls: Vec<Value> = Vec::new();
        let (mut finish_reason, mut usage) = (Value::Null, Value::Null);
        for event in text.split("\n\n").filter(|e| !e.is_empty() && *e != "data: [DONE]") {
            let chunk: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(chunk["object"], "chat.completion.chunk");
            if !chunk["usage"].is_null() {
                usage = chunk["usage"].clone();
            }
            let Some(choice) = chunk["choices"].get(0) else { continue };
            let delta = &choice["delta"];
            content += delta["content"].as_str().unwrap_or("");
            reasoning += delta["reasoning_content"].as_str().unwrap_or("");
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                if index == calls.len() {
                    calls.push(json!({"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": ""}}));
                }
                let more = call["function"]["arguments"].as_str().unwrap_or("");
                let known = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
                calls[index]["function"]["arguments"] = json!(known + more);
            }
            if !choice["finish_reason"].is_null() {
                finish_reason = choice["finish_reason"].clone();
            }
        }
        let message =
            json!({"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls});
        Self { message: plain(&message), finish_reason, usage, text }
    }
}

/// The message without what is empty, which the forms of an answer differ in.
fn plain(message: &Value) -> Value {
    let kept = ["content", "reasoning_content", "tool_calls"].iter().filter_map(|key| {
        let value = &message[*key];
        let empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        (!empty).then(|| ((*key).to_owned(), value.clone()))
    });
    Value::Object(kept.collect())
}

pub(crate) fn user(text: &str) -> Value {
    json!({"model": "whatever", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": text}],
        "stream": true, "stream_options": {"include_usage": true}})
}

pub(crate) const KINDS: [EngineKind; 2] = [EngineKind::Vllm, EngineKind::Sglang];
