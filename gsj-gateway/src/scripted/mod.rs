//! A scripted stand-in for an inference engine, for demonstrations and tests.
//!
//! It speaks the wire of vLLM or SGLang: it renders a chat template, tokenizes with a real
//! tokenizer and returns token ids with log-probabilities, but what it says is read from a script,
//! and the log-probabilities are a fixed function of position and token. It never passes for a
//! model: `/version` and `/v1/models` say `scripted`.

mod answer;
mod codec;
mod routes;
mod script;
mod serve;
mod template;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::{ApiKey, EngineKind};
use codec::Codec;
use routes::App;
use script::Script;
use template::ChatTemplate;

/// What a [`ScriptedEngine`] is made of.
///
/// `new` fills everything that may default; the other fields are public and may be set after.
#[derive(Debug)]
pub struct ScriptedOptions {
    /// JSON: a list of turns, or `{"scripts": {"<part of the user's prompt>": [..]}, "default": [..]}`.
    pub script: Vec<u8>,
    /// The bytes of a `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// The text of a chat template.
    pub template: String,
    /// Whose wire is spoken.
    pub dialect: EngineKind,
    /// The served model name; a request for another one is answered 404.
    pub model: String,
    /// Varies the log-probabilities.
    pub seed: u64,
    /// Context length in tokens.
    pub n_ctx: usize,
    /// When set, calls below `/v1` without it are answered 401.
    pub api_key: Option<ApiKey>,
    /// Waited before each chat answer begins.
    pub latency: Duration,
}

impl ScriptedOptions {
    /// Options with seed 0, a context of 32,768 tokens, no key and no latency.
    pub fn new(
        script: impl Into<Vec<u8>>,
        tokenizer: impl Into<Vec<u8>>,
        template: impl Into<String>,
        dialect: EngineKind,
        model: impl Into<String>,
    ) -> Self {
        Self {
            script: script.into(),
            tokenizer: tokenizer.into(),
            template: template.into(),
            dialect,
            model: model.into(),
            seed: 0,
            n_ctx: 32_768,
            api_key: None,
            latency: Duration::ZERO,
        }
    }
}

/// Why a scripted engine cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptedError {
    /// The script is not JSON of the expected shape.
    #[error("read the script: {reason}; it is a list of turns or an object with `scripts` and `default`")]
    Script {
        /// What is wrong, and where.
        reason: String,
    },
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] gsj_trace::tokenizer::TokenizerError),
    /// The tokenizer has no token that ends a turn.
    #[error("read tokenizer.json: it has none of the end-of-turn tokens {names}")]
    EndOfTurn {
        /// The names that were looked for.
        names: String,
    },
    /// The chat template does not compile.
    #[error(transparent)]
    Template(#[from] gsj_trace::rerender::TemplateError),
}

/// An engine that answers from a script.
#[derive(Clone)]
pub struct ScriptedEngine {
    app: Arc<App>,
}

impl std::fmt::Debug for ScriptedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedEngine").field("model", &self.app.options.model).finish_non_exhaustive()
    }
}

impl ScriptedEngine {
    /// Reads script, tokenizer and template.
    ///
    /// # Errors
    /// [`ScriptedError`] names the part that cannot be used.
    pub fn new(options: ScriptedOptions) -> Result<Self, ScriptedError> {
        let script = Script::read(&options.script)?;
        let codec = Codec::read(&options.tokenizer, options.seed)?;
        let template = ChatTemplate::compile(&options.template, codec.end_of_turn_text())?;
        Ok(Self { app: Arc::new(App::new(options, script, codec, template)) })
    }

    /// The id of the token that ends a turn.
    pub fn end_of_turn_token_id(&self) -> u32 {
        self.app.codec.end_of_turn()
    }

    /// The engine as a router, for a server of the caller's own.
    ///
    /// The fault `reset` needs the connection itself: under a foreign server it cuts the answer's
    /// body instead. [`ScriptedEngine::serve`] resets the connection before any answer.
    pub fn router(&self) -> axum::Router {
        routes::router(Arc::clone(&self.app))
    }

    /// Serves on `listener` until `stop` is cancelled; open connections are then dropped.
    ///
    /// # Errors
    /// When the listener cannot accept any more.
    pub async fn serve(&self, listener: tokio::net::TcpListener, stop: CancellationToken) -> std::io::Result<()> {
        serve::serve(self.router(), listener, stop).await
    }
}
