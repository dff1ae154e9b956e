//! An embeddings endpoint, named on the command line.

use std::sync::Arc;

use gsj_retrieval::{
    EmbedError, EmbedKey, EmbedOptions, Embedder, EmbeddingsConfig, Library, Progress, RetrievalError,
};

use crate::environment;
use crate::error::{CliError, Context as _, Kind};

/// The label of weights that nobody named; good for vectors that are not kept.
const UNNAMED: &str = "unnamed";

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Embeddings")]
pub(super) struct EmbeddingsArgs {
    /// Base URL of an endpoint that speaks OpenAI's /v1/embeddings; finds pages that say it in other words
    #[arg(long, value_name = "URL", requires = "embeddings_model")]
    embeddings_url: Option<String>,
    /// Model name, as the endpoint serves it
    #[arg(long, value_name = "NAME", requires = "embeddings_url")]
    embeddings_model: Option<String>,
    /// Your label of the endpoint's weights; vectors of another one are not used again
    #[arg(long, value_name = "LABEL", requires = "embeddings_url")]
    embeddings_revision: Option<String>,
    /// Name of the variable that holds the endpoint's API key
    #[arg(long, value_name = "VARIABLE", requires = "embeddings_url")]
    embeddings_key_env: Option<String>,
}

impl EmbeddingsArgs {
    /// The endpoint, where one is named. Vectors that are kept must say what they are of.
    pub(super) fn embedder(&self, kept: bool) -> Result<Option<Arc<Embedder>>, CliError> {
        let (Some(url), Some(model)) = (&self.embeddings_url, &self.embeddings_model) else { return Ok(None) };
        let revision = match &self.embeddings_revision {
            Some(revision) => revision.as_str(),
            None if kept => {
                let problem = "--embeddings-revision is missing: vectors are kept with the index, and must not be taken for \
                               those of other weights later; give any label that you change with the weights";
                return Err(CliError::usage(problem));
            }
            None => UNNAMED,
        };
        let mut options = EmbedOptions::new(url, model, revision);
        options.key = key(self.embeddings_key_env.as_deref(), "--embeddings-key-env")?;
        Ok(Some(Arc::new(Embedder::new(options).usage()?)))
    }

    /// A library with its sentences embedded, where an endpoint is named.
    pub(super) fn embed(&self, library: Library) -> Result<Library, CliError> {
        match self.embedder(false)? {
            Some(embedder) => library.embedded(embedder, &Progress::default()).map_err(|error| match &error {
                RetrievalError::Embed(fault) => told(fault),
                _ => CliError::from_error(Kind::Usage, &error),
            }),
            None => Ok(library),
        }
    }
}

/// An endpoint's fault: what another machine did is told apart from what was asked of us.
pub(super) fn told(fault: &EmbedError) -> CliError {
    if fault.is_remote() {
        CliError::from_error(Kind::Server, fault)
            .hint("--embeddings-url, --embeddings-model and --embeddings-key-env say which endpoint is asked, and how")
    } else {
        CliError::from_error(Kind::Usage, fault)
    }
}

/// The endpoint that a configuration names, where it does.
pub(super) fn configured(config: &EmbeddingsConfig) -> Result<Option<Arc<Embedder>>, CliError> {
    let key = key(config.api_key_env.as_deref(), "embeddings.api_key_env")?;
    let made = config.options(key).map(Embedder::new).transpose().usage()?;
    Ok(made.map(Arc::new))
}

fn key(variable: Option<&str>, named_by: &str) -> Result<Option<EmbedKey>, CliError> {
    let Some(name) = variable else { return Ok(None) };
    let Some(key) = environment::value(name) else {
        return Err(CliError::usage(format!("the variable {name} ({named_by}) is not set")));
    };
    EmbedKey::new(&key).map(Some).usage()
}
