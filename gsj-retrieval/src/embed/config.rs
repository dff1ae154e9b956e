//! The section `embeddings` of a configuration.

use super::{EmbedKey, EmbedOptions, OnFailure};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::time::Duration;

/// An embeddings endpoint, by which pages are found that say a thing in other words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// Base URL of an endpoint that speaks OpenAI's `/v1/embeddings`, with or without `/v1`. Absent: pages are ranked by
    /// words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Model name, sent with every request. Needed with `base_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Your label of the weights that the endpoint serves; change it whenever they change, and every sentence is embedded
    /// anew. Needed with `base_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of the environment variable that holds the endpoint's API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How many numbers a vector shall have. Absent: what the model gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Longest wait for one request, and for a query's vector in all, in seconds.
    pub timeout_s: f64,
    /// Most sentences of one request; all of them are of one page.
    pub batch: u32,
    /// Requests under way at once, for pages and queries. More than 1 is faster, and lets the endpoint put texts of several
    /// requests together, which must not change a vector.
    pub concurrency: u32,
    /// What a search does when its query cannot be embedded: `error` fails the call, `lexical` ranks by words alone.
    pub on_failure: OnFailure,
}

impl Default for EmbeddingsConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            model: None,
            revision: None,
            api_key_env: None,
            dimensions: None,
            timeout_s: 30.0,
            batch: 32,
            concurrency: 1,
            on_failure: OnFailure::Error,
        }
    }
}

impl EmbeddingsConfig {
    /// How the endpoint is asked; nothing when there is none.
    #[must_use]
    pub fn options(&self, key: Option<EmbedKey>) -> Option<EmbedOptions> {
        let named = |text: &Option<String>| text.clone().unwrap_or_default();
        let many = |count: u32| usize::try_from(count).ok().and_then(NonZeroUsize::new);
        let mut options = EmbedOptions::new(self.base_url.clone()?, named(&self.model), named(&self.revision));
        options.key = key;
        options.dimensions = self.dimensions.and_then(many);
        options.timeout = Duration::try_from_secs_f64(self.timeout_s).unwrap_or(options.timeout);
        options.batch = many(self.batch).unwrap_or(options.batch);
        options.concurrency = many(self.concurrency).unwrap_or(options.concurrency);
        options.on_failure = self.on_failure;
        Some(options)
    }

    /// The key that cannot be used, and why.
    #[must_use]
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let absent = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().is_empty());
        let Some(url) = &self.base_url else {
            let named = !absent(&self.model) || !absent(&self.revision) || self.api_key_env.is_some();
            return named.then_some(("embeddings.base_url", "is missing; name the endpoint, or remove the section"));
        };
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Some(("embeddings.base_url", "must start with http:// or https://"));
        }
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        if authority.is_some_and(|authority| authority.contains('@')) {
            return Some((
                "embeddings.base_url",
                "must not hold a user or password; name the key's variable in api_key_env",
            ));
        }
        if absent(&self.model) {
            return Some(("embeddings.model", "is missing; give the name that the endpoint serves the model by"));
        }
        if absent(&self.revision) {
            return Some((
                "embeddings.revision",
                "is missing; give a label of the weights that changes whenever they do",
            ));
        }
        if self.api_key_env.as_deref().is_some_and(str::is_empty) {
            return Some(("embeddings.api_key_env", "must name an environment variable"));
        }
        if !(self.timeout_s.is_finite() && self.timeout_s > 0.0 && self.timeout_s <= 1e7) {
            return Some(("embeddings.timeout_s", "must be a number of seconds above 0"));
        }
        if self.dimensions.is_some_and(|count| count == 0 || count > 65_536) {
            return Some(("embeddings.dimensions", "must be from 1 to 65536"));
        }
        if self.batch == 0 || self.batch > 4096 {
            return Some(("embeddings.batch", "must be from 1 to 4096"));
        }
        if self.concurrency == 0 || self.concurrency > 256 {
            return Some(("embeddings.concurrency", "must be from 1 to 256"));
        }
        None
    }
}
