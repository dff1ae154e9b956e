//! The engine of the demo: the scripted one in this process, or one of the user's.

use std::net::SocketAddr;

use gsj_gateway::GenerationTail;
use gsj_gateway::scripted::{ScriptedEngine, ScriptedOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::estate::fixture;
use super::{Args, Dialect};
use crate::commands::given::Given;
use crate::commands::runtime;
use crate::error::{CliError, Context as _};
use crate::terminal::warn;

/// Name of the model that the scripted engine serves.
const SCRIPTED_MODEL: &str = "gsj-scripted";

/// An engine that answers, and what had to be asked of it before the episode.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) url: String,
    pub(crate) model: String,
    pub(crate) dialect: Dialect,
    pub(crate) api_key_env: Option<String>,
    /// What ends each prompt, measured by the engine's own tokenizer; absent for the scripted one, whose tail is part
    /// of the fixtures' pins.
    pub(crate) tail: Option<GenerationTail>,
    scripted: Option<(JoinHandle<std::io::Result<()>>, CancellationToken)>,
}

impl Engine {
    /// Starts the scripted engine on a free port of the loopback.
    pub(crate) async fn scripted(dialect: Dialect) -> Result<Self, CliError> {
        let template = String::from_utf8_lossy(&fixture("template/chat_template.jinja")?).into_owned();
        let options = ScriptedOptions::new(
            fixture("scripts/demo.json")?,
            fixture("tokenizer/tokenizer.json")?,
            template,
            dialect.into(),
            SCRIPTED_MODEL,
        );
        let engine = ScriptedEngine::new(options).failed()?;
        let (listener, address) = runtime::listen(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { engine.serve(listener, stopped).await });
        Ok(Self {
            url: format!("http://{address}"),
            model: SCRIPTED_MODEL.into(),
            dialect,
            api_key_env: None,
            tail: None,
            scripted: Some((serving, stop)),
        })
    }

    /// Asks the user's engine how it ends a prompt, with its own tokenizer and template.
    pub(crate) async fn given(url: &str, model: &str, args: &Args) -> Result<Self, CliError> {
        let api_key_env = args.engine_api_key_env.as_deref();
        let tail = Given { url, model, dialect: args.engine, api_key_env }.tail(false).await?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            dialect: args.engine,
            api_key_env: args.engine_api_key_env.clone(),
            tail: Some(tail),
            scripted: None,
        })
    }

    /// One line about it.
    pub(crate) fn about(&self) -> String {
        let what = if self.scripted.is_some() { "scripted engine (answers from a script)" } else { "engine" };
        format!("{what} on {}, model {}", self.url, self.model)
    }

    /// Stops what was started.
    pub(crate) async fn stop(self) {
        let Some((serving, stop)) = self.scripted else { return };
        stop.cancel();
        match serving.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn(&format!("the scripted engine stopped: {error}")),
            Err(error) => warn(&format!("the scripted engine stopped: {error}")),
        }
    }
}
