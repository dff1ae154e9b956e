//! An engine of the user's: its key by the name of a variable, and what has to be asked of it before an episode.

use gsj_gateway::{ApiKey, EngineOptions, GenerationTail};

use super::engine::Dialect;
use crate::environment;
use crate::error::{CliError, Context as _};

/// Where an engine is and how it is spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Given<'a> {
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) dialect: Dialect,
    pub(crate) api_key_env: Option<&'a str>,
}

impl Given<'_> {
    /// Asks the engine how it ends a prompt, with its own tokenizer and template.
    pub(crate) async fn tail(&self, thinking: bool) -> Result<GenerationTail, CliError> {
        let mut options = EngineOptions::new(self.dialect.into(), self.url, self.model);
        if let Some(name) = self.api_key_env {
            options.api_key = Some(ApiKey::new(&key(name)?).usage()?);
        }
        let engine = gsj_gateway::Engine::new(options).usage()?;
        engine.generation_tail(thinking).await.server().map_err(|error| {
            error.hint("what ends each prompt is pinned before the first episode, so the engine's /tokenize is asked").hint(
                "check --engine-url (without /v1), --engine-model and --engine; vLLM and SGLang both have /tokenize",
            )
        })
    }
}

/// The key in a variable.
pub(crate) fn key(name: &str) -> Result<String, CliError> {
    environment::value(name).ok_or_else(|| {
        CliError::usage(format!("the environment variable {name} is not set")).hint(format!("export {name}=.."))
    })
}
