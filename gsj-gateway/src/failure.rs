//! Why a session cannot go on.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Serialize;

use crate::engine::{AttemptError, Engine, EngineKind};

/// How long the engine is asked for its model names, to name them in a sentence.
const NAMES: Duration = Duration::from_secs(5);
/// Model names that a sentence lists.
const LISTED: usize = 8;

/// The kind of a [`SessionFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// Nothing answers at the engine's address, or its connection breaks each time.
    EngineUnreachable,
    /// The engine answers, each time with an error of its own (429, 5xx) or half an answer.
    EngineFailing,
    /// The engine wants another key, or one at all.
    KeyRefused,
    /// The engine does not serve the configured model.
    ModelUnknown,
    /// The engine refused the request for another reason.
    RequestRefused,
    /// The prompt does not fit into the model's context.
    ContextOverflow,
    /// The engine's answer holds no token ids.
    NoTokenIds,
    /// The engine's answer holds no log-probabilities.
    NoLogprobs,
    /// A limit of the session was reached.
    Limit,
    /// The session's log could not be written.
    Log,
}

impl FailureKind {
    /// The stable name: what [`Serialize`] gives.
    pub fn code(self) -> &'static str {
        match self {
            Self::EngineUnreachable => "engine_unreachable",
            Self::EngineFailing => "engine_failing",
            Self::KeyRefused => "key_refused",
            Self::ModelUnknown => "model_unknown",
            Self::RequestRefused => "request_refused",
            Self::ContextOverflow => "context_overflow",
            Self::NoTokenIds => "no_token_ids",
            Self::NoLogprobs => "no_logprobs",
            Self::Limit => "limit",
            Self::Log => "log",
        }
    }
}

/// Why a session cannot go on; `Display` is the sentence for the user.
///
/// The sentence names the engine's URL without user information, the fact, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionFailure {
    /// What it is.
    pub kind: FailureKind,
    /// The limit's name when [`FailureKind::Limit`]: `max_turns` or `max_tokens`.
    pub limit: Option<&'static str>,
    /// The sentence.
    pub message: String,
}

impl SessionFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, limit: None, message: message.into() }
    }

    pub(crate) fn limit(name: &'static str, value: u64) -> Self {
        let what = match name {
            "max_turns" => "model calls",
            _ => "sampled tokens",
        };
        Self {
            kind: FailureKind::Limit,
            limit: Some(name),
            message: format!("the session reached its limit `{name}` of {value} {what}"),
        }
    }
}

impl AttemptError {
    /// Whether the same request may do better in a while.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Transport { .. } => true,
            Self::Status { status, .. } => matches!(status.as_u16(), 429 | 500 | 502..=504),
        }
    }
}

/// The sentences.
impl SessionFailure {
    /// The engine gave no answer, `tried` times.
    pub(crate) async fn refused(engine: &Engine, error: &AttemptError, tried: u32) -> Self {
        let url = engine.url();
        let (status, message) = match error {
            AttemptError::Transport { reason } => {
                return Self::new(
                    FailureKind::EngineUnreachable,
                    format!(
                        "the engine at {url} cannot be reached ({reason}; {}); start it, or configure the address where it listens",
                        times(tried)
                    ),
                );
            }
            AttemptError::Status { status, message } => (*status, message.as_str()),
        };
        let lower = message.to_lowercase();
        let code = status.as_u16();
        let about_model =
            lower.contains("model") && ["exist", "not found", "unknown"].iter().any(|w| lower.contains(w));
        let too_long =
            ["context length", "maximum context", "context window", "input is too long", "exceeds the model"];
        match status {
            _ if error.is_passing() => Self::new(
                FailureKind::EngineFailing,
                format!("the engine at {url} answers HTTP {code} (`{message}`; {}); look at its own log", times(tried)),
            ),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let cure = if engine.options().api_key.is_some() {
                    "configure the key that the engine was started with"
                } else {
                    "it wants an API key and none is configured"
                };
                let what = if engine.options().api_key.is_some() { "refused the API key" } else { "refused the call" };
                Self::new(FailureKind::KeyRefused, format!("the engine at {url} {what} (HTTP {code}); {cure}"))
            }
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if about_model => {
                Self::new(FailureKind::ModelUnknown, unknown_model(engine).await)
            }
            StatusCode::NOT_FOUND => Self::new(
                FailureKind::RequestRefused,
                format!(
                    "{url} has no /v1/chat/completions (HTTP 404); configure the base URL of an OpenAI-compatible engine"
                ),
            ),
            _ if too_long.iter().any(|words| lower.contains(words)) => Self::new(
                FailureKind::ContextOverflow,
                format!(
                    "the prompt does not fit into the context of the engine at {url} (`{message}`); serve the model with a longer context, or lower the agent's context window"
                ),
            ),
            _ if status.is_redirection() => Self::new(
                FailureKind::RequestRefused,
                format!(
                    "{url} answers with a redirect (HTTP {code}), which is not followed; configure the engine's own address"
                ),
            ),
            _ => {
                let cure = if lower.contains("tool") && engine.options().kind == EngineKind::Vllm {
                    "; vLLM needs --enable-auto-tool-choice and a --tool-call-parser that fits the model (hermes for Qwen3)"
                } else {
                    ""
                };
                Self::new(
                    FailureKind::RequestRefused,
                    format!("the engine at {url} refused the request with HTTP {code} (`{message}`){cure}"),
                )
            }
        }
    }

    /// The engine's answers broke off, `tried` times.
    pub(crate) fn incomplete(engine: &Engine, reason: &str, tried: u32) -> Self {
        Self::new(
            FailureKind::EngineFailing,
            format!(
                "the engine at {} gave no whole answer ({reason}; {}); look at its own log",
                engine.url(),
                times(tried)
            ),
        )
    }

    pub(crate) fn no_token_ids(engine: &Engine) -> Self {
        let cure = match engine.options().kind {
            EngineKind::Vllm => "vLLM must be 0.10.2 or later, which knows `return_token_ids`",
            EngineKind::Sglang => {
                "SGLang must be a version that knows `return_prompt_token_ids` and `return_meta_info` for chat completions"
            }
        };
        Self::new(
            FailureKind::NoTokenIds,
            format!(
                "the engine at {} returns no token ids with its answers, so nothing can be trained on them; {cure}",
                engine.url()
            ),
        )
    }

    pub(crate) fn no_logprobs(engine: &Engine) -> Self {
        Self::new(
            FailureKind::NoLogprobs,
            format!(
                "the engine at {} returns no log-probabilities with its answers though `logprobs` is asked for; check that nothing in front of it drops the field, and that it was not started with log-probabilities off",
                engine.url()
            ),
        )
    }
}

fn times(tried: u32) -> String {
    if tried == 1 { "tried once".to_owned() } else { format!("tried {tried} times") }
}

async fn unknown_model(engine: &Engine) -> String {
    let (url, model) = (engine.url(), &engine.options().model);
    let served = match tokio::time::timeout(NAMES, engine.models()).await {
        Ok(Ok(names)) => names,
        _ => Vec::new(),
    };
    let cure = if served.is_empty() {
        format!("configure a name from {url}/v1/models")
    } else {
        let names: Vec<String> = served.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        format!("configure one that it serves: {}", names.join(", "))
    };
    format!("the engine at {url} does not serve the model `{model}`; {cure}")
}

impl fmt::Display for SessionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SessionFailure {}
