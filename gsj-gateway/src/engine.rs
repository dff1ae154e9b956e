//! The inference engine: how it is reached, and what it says it is.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use gsj_trace::engine::Dialect;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url, redirect};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::key::ApiKey;

/// The longest error body that is read.
const ERROR_BODY: usize = 64 << 10;
/// The longest text of an engine that is quoted in a sentence.
const QUOTED: usize = 400;
/// The longest answer to a question beside the chat calls.
const SMALL_ANSWER: usize = 16 << 20;
/// For questions beside the chat calls.
const ASIDE: Duration = Duration::from_secs(30);

/// Whose wire an engine speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// vLLM, 0.10.2 or later (the first with `return_token_ids`).
    Vllm,
    /// SGLang.
    Sglang,
}

impl EngineKind {
    /// `vllm` or `sglang`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
        }
    }

    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Vllm => Dialect::Vllm,
            Self::Sglang => Dialect::Sglang,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EngineKind {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        match text {
            "vllm" => Ok(Self::Vllm),
            "sglang" => Ok(Self::Sglang),
            other => Err(EngineError::Kind { kind: other.to_owned() }),
        }
    }
}

/// Sampling fields put on every call. One that is `None` is not sent, whatever the agent asks for, so that the
/// engine's own default holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `top_p`.
    pub top_p: Option<f64>,
    /// `top_k`; -1 means all.
    pub top_k: Option<i64>,
    /// `seed`.
    pub seed: Option<i64>,
    /// Tokens of one answer: caps what the agent asks for, and stands when it asks for nothing.
    pub max_tokens: Option<u32>,
}

/// How an [`Engine`] is reached and asked.
///
/// `Debug` leaves out the key and the base URL's user information.
#[derive(Clone)]
pub struct EngineOptions {
    /// Whose wire it speaks.
    pub kind: EngineKind,
    /// `http(s)://host:port[/prefix]`, with or without `/v1` at the end.
    pub base_url: String,
    /// The served model name, put into every call.
    pub model: String,
    /// Sent as `Authorization: Bearer`.
    pub api_key: Option<ApiKey>,
    /// Whether the engine is asked to stream.
    pub stream: bool,
    /// Sampling fields of every call.
    pub sampling: Sampling,
    /// Further attempts of one call after a connection error, 429, 500, 502 or 503, as long as
    /// nothing of an answer went to the agent.
    pub retries: u32,
    /// The first wait between attempts; doubles each time, up to 16 times this.
    pub backoff: Duration,
    /// For making a connection.
    pub connect_timeout: Duration,
    /// For the answer's head and for each further piece of it.
    pub read_timeout: Duration,
}

impl EngineOptions {
    /// Options with streaming on, no key, no sampling fields, 3 retries from 0.5 s on, 10 s to
    /// connect and 600 s for each piece of an answer.
    pub fn new(kind: EngineKind, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            kind,
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            stream: true,
            sampling: Sampling::default(),
            retries: 3,
            backoff: Duration::from_millis(500),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(600),
        }
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = Url::parse(&self.base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
        f.debug_struct("EngineOptions")
            .field("kind", &self.kind)
            .field("host", &host)
            .field("model", &self.model)
            .field("stream", &self.stream)
            .field("sampling", &self.sampling)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Why an engine cannot be used, or did not answer a question beside the chat calls.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The base URL is none.
    #[error("the engine's base URL {reason}; give it as http://host:port")]
    BaseUrl {
        /// What is wrong with it. The URL itself may hold a secret and is not shown.
        reason: String,
    },
    /// The kind is unknown.
    #[error("`{kind}` is no engine kind; use `vllm` or `sglang`")]
    Kind {
        /// As given.
        kind: String,
    },
    /// The API key is empty or cannot stand in a header.
    #[error("the engine's API key is empty or holds characters that no header can carry")]
    ApiKey,
    /// The HTTP client cannot be made.
    #[error("prepare the HTTP client for {url}: {reason}")]
    Client {
        /// The engine, without user information.
        url: String,
        /// What the client library says.
        reason: String,
    },
    /// No answer came.
    #[error("ask {url}: {reason}; is the engine running there")]
    Unreachable {
        /// The asked URL, without user information.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The engine refused.
    #[error("ask {url}: HTTP {status}: {message}")]
    Refused {
        /// The asked URL, without user information.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the engine says, shortened.
        message: String,
    },
    /// The answer is not what such an engine gives.
    #[error("read the answer of {url}: {reason}")]
    Answer {
        /// The asked URL, without user information.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What an engine says it is; `gsj_engine` in trace metadata. What is not known is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineIdentity {
    /// `vllm`, `sglang`, or `scripted` when the engine says so of itself.
    pub kind: String,
    /// What `/version` says.
    pub version: Option<String>,
    /// The configured model's name, when the engine lists it.
    pub model: Option<String>,
    /// Git blob id of its `tokenizer.json`.
    pub tokenizer_hash: Option<String>,
    /// SHA-256 of its chat template.
    pub chat_template_hash: Option<String>,
    /// Which log-probabilities it returns (raw or after the sampling filters).
    pub logprobs_mode: Option<String>,
    /// The fields above that the engine itself stated; the others are configuration or unknown.
    pub measured: Vec<String>,
}

/// An engine's client: one pool of connections, shared by all sessions.
pub struct Engine {
    options: EngineOptions,
    client: reqwest::Client,
    base: Url,
    shown: String,
    password: Option<String>,
}

/// Why one attempt of a chat call has no answer.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The connection was not made, broke, or stayed silent.
    Transport { reason: String },
    /// An HTTP error.
    Status { status: StatusCode, message: String },
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("url", &self.shown).field("options", &self.options).finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes the client; nothing is asked yet.
    ///
    /// # Errors
    /// [`EngineError::BaseUrl`] and [`EngineError::Client`].
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let wrong = |reason: &str| EngineError::BaseUrl { reason: reason.to_owned() };
        let mut base = Url::parse(options.base_url.trim()).map_err(|e| wrong(&format!("is none: {e}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("has a scheme other than http and https"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has a query or a fragment"));
        }
        let path = base.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        base.set_path(&path);

        let mut bare = base.clone();
        // Both fail only for URLs without a host, which http and https always have.
        let _without = (bare.set_username(""), bare.set_password(None));
        let shown = bare.as_str().trim_end_matches('/').to_owned();
        let password = base.password().map(str::to_owned);
        if options.api_key.is_some() {
            base = bare;
        }

        let client = client(&options, base.scheme() == "https")
            .map_err(|e| EngineError::Client { url: shown.clone(), reason: describe(&e) })?;
        Ok(Self { options, client, base, shown, password })
    }

    /// The options that it was made with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The base URL, without user information: fit for messages.
    pub fn url(&self) -> &str {
        &self.shown
    }

    /// Asks the engine what it is. What it does not say stays null; this never fails.
    pub async fn identity(&self) -> EngineIdentity {
        let mut identity = EngineIdentity {
            kind: self.options.kind.as_str().to_owned(),
            version: None,
            model: None,
            tokenizer_hash: None,
            chat_template_hash: None,
            logprobs_mode: None,
            measured: Vec::new(),
        };
        if let Ok(models) = self.get("/v1/models").await
            && let Some(entry) = entries(&models).find(|entry| name(entry) == Some(&self.options.model))
        {
            identity.model = name(entry).map(str::to_owned);
            identity.measured.push("model".to_owned());
            let owner = entry.get("owned_by").and_then(Value::as_str);
            if let Some(owner @ ("vllm" | "sglang" | "scripted")) = owner {
                owner.clone_into(&mut identity.kind);
                identity.measured.push("kind".to_owned());
            }
        }
        let mut version = self.get("/version").await;
        if version.is_err() && self.options.kind == EngineKind::Sglang {
            version = self.get("/get_server_info").await;
        }
        if let Some(text) = version.ok().as_ref().and_then(|v| v.get("version")).and_then(Value::as_str) {
            identity.version = Some(text.to_owned());
            identity.measured.push("version".to_owned());
        }
        identity.measured.sort_unstable();
        identity
    }

    /// The model names that the engine lists.
    ///
    /// # Errors
    /// When it does not answer with a list of models.
    pub async fn models(&self) -> Result<Vec<String>, EngineError> {
        let answer = self.get("/v1/models").await?;
        if !answer.get("data").is_some_and(Value::is_array) {
            return Err(self.unreadable("/v1/models", "it has no list `data`"));
        }
        Ok(entries(&answer).filter_map(name).map(str::to_owned).collect())
    }

    /// The engine's own token ids of `text`, without any special token added.
    ///
    /// # Errors
    /// When the engine has no `/tokenize`, or does not answer with a list of ids.
    pub async fn tokenize(&self, text: &str) -> Result<Vec<u32>, EngineError> {
        self.tokens(serde_json::json!({"model": self.options.model, "prompt": text, "add_special_tokens": false})).await
    }

    /// The engine's own token ids of a conversation, rendered by its template up to where a reply begins.
    pub(crate) async fn tokenize_chat(&self, messages: &Value, thinking: bool) -> Result<Vec<u32>, EngineError> {
        let kwargs = serde_json::json!({"enable_thinking": thinking});
        self.tokens(serde_json::json!({
            "model": self.options.model, "messages": messages, "add_generation_prompt": true,
            "add_special_tokens": false, "chat_template_kwargs": kwargs,
        }))
        .await
    }

    async fn tokens(&self, ask: Value) -> Result<Vec<u32>, EngineError> {
        let path = "/tokenize";
        let answer = self.ask(path, Some(Bytes::from(ask.to_string()))).await?;
        answer
            .get("tokens")
            .and_then(Value::as_array)
            .and_then(|ids| ids.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect())
            .ok_or_else(|| self.unreadable(path, "it has no list `tokens` of token ids"))
    }

    /// One attempt of a chat call: the answer's head.
    pub(crate) async fn chat(&self, body: Bytes) -> Result<reqwest::Response, AttemptError> {
        let accept = if self.options.stream { "text/event-stream" } else { "application/json" };
        let sent = self.post("/v1/chat/completions", body).header(ACCEPT, accept).send().await;
        let response = sent.map_err(|e| AttemptError::Transport { reason: self.redact(&describe(&e)).into_owned() })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let message = self.quoted(&read_up_to(response, ERROR_BODY).await.unwrap_or_default());
        Err(AttemptError::Status { status, message })
    }

    /// `text` without the secrets that reach this engine.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.options.api_key.as_ref().map_or(Cow::Borrowed(text), |key| key.redact(text));
        match self.password.as_deref().filter(|p| !p.is_empty() && text.contains(p)) {
            Some(password) => Cow::Owned(text.replace(password, "[password]")),
            None => text,
        }
    }

    async fn get(&self, path: &str) -> Result<Value, EngineError> {
        self.ask(path, None).await
    }

    async fn ask(&self, path: &str, body: Option<Bytes>) -> Result<Value, EngineError> {
        let url = || format!("{}{path}", self.shown);
        let request = match body {
            Some(body) => self.post(path, body),
            None => self.client.get(self.endpoint(path)).headers(self.headers()),
        };
        let unreachable = |e: &reqwest::Error| EngineError::Unreachable {
            url: url(),
            reason: self.redact(&describe(e)).into_owned(),
        };
        let response = request.timeout(ASIDE).send().await.map_err(|e| unreachable(&e))?;
        let status = response.status();
        let limit = if status.is_success() { SMALL_ANSWER } else { ERROR_BODY };
        let bytes = read_up_to(response, limit).await.map_err(|e| unreachable(&e))?;
        if !status.is_success() {
            return Err(EngineError::Refused { url: url(), status: status.as_u16(), message: self.quoted(&bytes) });
        }
        serde_json::from_slice(&bytes).map_err(|e| self.unreadable(path, &e.to_string()))
    }

    fn post(&self, path: &str, body: Bytes) -> reqwest::RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        self.client.post(self.endpoint(path)).headers(self.headers()).header(CONTENT_TYPE, json).body(body)
    }

    fn headers(&self) -> HeaderMap {
        let key = self.options.api_key.as_ref().map(ApiKey::header);
        key.map(|value| (AUTHORIZATION, value)).into_iter().collect()
    }

    fn endpoint(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    pub(crate) fn unreadable(&self, path: &str, reason: &str) -> EngineError {
        EngineError::Answer { url: format!("{}{path}", self.shown), reason: reason.to_owned() }
    }

    /// What an error body says: its `error.message`, `message` or `detail`, else its text.
    fn quoted(&self, body: &[u8]) -> String {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let told = parsed.as_ref().and_then(|v| {
            ["/error/message", "/message", "/detail", "/error"].iter().find_map(|at| v.pointer(at)?.as_str())
        });
        let text = told.map_or_else(|| String::from_utf8_lossy(body), Cow::Borrowed);
        let text = self.redact(&text).split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(QUOTED) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn client(options: &EngineOptions, tls: bool) -> reqwest::Result<reqwest::Client> {
    // Another part of the process may have installed a provider first: that one serves as well.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .pool_idle_timeout(Duration::from_secs(60));
    // A machine without certificate roots can still speak plain HTTP.
    if tls { builder.build() } else { builder.tls_certs_only([]).build() }
}

fn entries(models: &Value) -> impl Iterator<Item = &Value> {
    models.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

fn name(entry: &Value) -> Option<&str> {
    entry.get("id").and_then(Value::as_str)
}

async fn read_up_to(mut response: reqwest::Response, limit: usize) -> reqwest::Result<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - out.len();
        out.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() >= room {
            break;
        }
    }
    Ok(out)
}

/// What happened, from the innermost cause, never with the URL.
pub(crate) fn describe(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut told = None;
    while let Some(inner) = cause {
        told = Some(inner.to_string());
        cause = inner.source();
    }
    match told {
        _ if error.is_timeout() && error.is_connect() => "no connection in time".to_owned(),
        _ if error.is_timeout() => "no answer in time".to_owned(),
        Some(told) => told,
        None if error.is_connect() => "no connection".to_owned(),
        None => "the exchange broke".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(base: &str) -> Result<Engine, EngineError> {
        Engine::new(EngineOptions::new(EngineKind::Vllm, base, "m"))
    }

    #[test]
    fn a_base_url_is_taken_with_or_without_v1() {
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            let engine = engine(base).unwrap();
            assert_eq!(engine.url(), "http://h:1");
            assert_eq!(engine.endpoint("/v1/models").as_str(), "http://h:1/v1/models");
        }
        assert_eq!(engine("https://h/llm/v1").unwrap().endpoint("/v1/models").as_str(), "https://h/llm/v1/models");
        for bad in ["h:1", "ftp://h", "http://h?x=1", "not a url"] {
            assert!(matches!(engine(bad), Err(EngineError::BaseUrl { .. })), "{bad}");
        }
    }

    #[test]
    fn user_information_is_never_shown() {
        let engine = engine("http://bob:canary@h:1/v1").unwrap();
        assert_eq!(engine.url(), "http://h:1");
        assert_eq!(engine.redact("x canary y"), "x [password] y");
        let error = super::Engine::new(EngineOptions::new(EngineKind::Vllm, "http://bob:canary@h:1?q", "m"));
        assert!(!error.unwrap_err().to_string().contains("canary"), "an error does not repeat the URL");
    }

    #[test]
    fn an_error_body_is_quoted_by_its_message_and_shortened() {
        let engine = engine("http://h:1").unwrap();
        assert_eq!(engine.quoted(br#"{"error":{"message":"no\n such  model","code":404}}"#), "no such model");
        assert_eq!(engine.quoted(b"<html>bad gateway</html>"), "<html>bad gateway</html>");
        assert_eq!(engine.quoted("ä".repeat(500).as_bytes()).chars().count(), QUOTED + 1);
    }
}
