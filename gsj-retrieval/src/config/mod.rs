//! The configuration file of a service of its own.

mod sections;

pub use sections::{
    AuthConfig, ChunkingConfig, DecisionsConfig, EmbeddingConfig, IndexConfig, LimitsConfig, RecipeName, SearchConfig,
    ServerConfig, ServiceConfig, SourceConfig,
};

use crate::hosted::{Hosted, Layout};
use crate::source::TIMESTEP;
use crate::{LogField, Options};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("read configuration `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The text is not the YAML that is wanted.
    #[error("configuration `{path}`: {message}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Line, column and what was wrong there.
        message: String,
    },
    /// A value can't be used.
    #[error("configuration `{path}`: `{field}` {message}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Path of the field.
        field: &'static str,
        /// What is wrong with it and what would do.
        message: String,
    },
}

impl ServiceConfig {
    /// Reads a file; relative paths in it start at its folder.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the line or the field.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::from_yaml(&text, path)
    }

    /// Reads a configuration from text; `path` is the file's, for messages and relative paths.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_yaml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        // No excerpt of the text: somebody's secret may stand in it, where it does not belong.
        let options = serde_saphyr::options! { with_snippet: false };
        let mut config: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ConfigError::Yaml { path: path.to_owned(), message: yaml_message(&error) })?;
        config.check().map_err(|(field, message)| ConfigError::Value { path: path.to_owned(), field, message })?;
        let base = path.parent().unwrap_or_else(|| Path::new(""));
        config.index.path = base.join(&config.index.path);
        for file in [
            &mut config.source.clone_cache_dir,
            &mut config.source.certificates,
            &mut config.decisions.file,
            &mut config.server.tools_file,
        ] {
            *file = file.take().map(|file| base.join(file));
        }
        Ok(config)
    }

    /// The keys that stand in the file and mean nothing here.
    #[must_use]
    pub fn not_used(&self) -> Vec<&'static str> {
        let (embedding, chunking) = (&self.embedding, &self.chunking);
        let keys = [
            ("embedding.model", embedding.model.is_some()),
            ("embedding.revision", embedding.revision.is_some()),
            ("embedding.device", embedding.device.is_some()),
            ("embedding.batch_size", embedding.batch_size.is_some()),
            ("embedding.normalize", embedding.normalize.is_some()),
            ("chunking.max_tokens", chunking.max_tokens.is_some()),
            ("chunking.overlap", chunking.overlap.is_some()),
            ("search.method", self.search.method.as_deref().is_some_and(|method| method != "lexical")),
            ("decisions.seed", self.decisions.seed.is_some()),
            ("decisions.corpus_size", self.decisions.corpus_size.is_some()),
        ];
        keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
    }

    /// Puts what the file says of calls into a service's options.
    pub fn apply(&self, options: &mut Options) {
        options.leeway_s = i64::from(self.auth.leeway_s);
        options.max_k = self.search.max_k;
        options.default_k = self.search.default_k;
        if self.server.dns_rebinding_protection {
            options.allowed_hosts = Some(self.server.allowed_hosts.clone());
        }
        let limits = &self.limits;
        if let Some(chars) = limits.query_chars {
            options.max_query_chars = if chars == 0 { usize::MAX } else { chars };
        }
        if let Some(rate) = limits.calls_per_second {
            options.calls_per_second = NonZeroU32::new(rate);
        }
        if let Some(rate) = limits.calls_per_second_per_episode {
            options.calls_per_second_per_episode = NonZeroU32::new(rate);
        }
        if let Some(searches) = limits.concurrent_searches {
            options.concurrent_searches = NonZeroUsize::new(searches).unwrap_or(NonZeroUsize::MAX);
        }
    }

    /// Where the repositories are; how a host's are copied is the caller's to add.
    #[must_use]
    pub fn hosted(&self) -> Hosted {
        let source = &self.source;
        let mut hosted = Hosted::new(source.base_url.trim_end_matches('/'), source.repos.clone());
        hosted.owner.clone_from(&source.owner);
        hosted.ref_main.clone_from(&source.ref_main);
        hosted.ref_pattern.clone_from(&source.ref_pattern);
        hosted.layout = source.recipe.map(|recipe| match recipe {
            RecipeName::Sealed => Layout::Sealed,
            RecipeName::Reference => Layout::Reference,
        });
        hosted
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let fault = |field: &'static str, message: &str| Err((field, message.to_owned()));
        let (source, embedding, chunking) = (&self.source, &self.embedding, &self.chunking);
        let hosted = source.base_url.starts_with("https://") || source.base_url.starts_with("http://");
        if !hosted && !source.base_url.starts_with("file:///") {
            return fault("source.base_url", "must start with file:///, https:// or http://");
        }
        let authority = source.base_url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if authority.contains('@') {
            return fault(
                "source.base_url",
                "must not hold a user or password; name the credential's variable in source.auth_token_env",
            );
        }
        if source.base_url.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '?' | '#')) {
            return fault("source.base_url", "must be a plain URL");
        }
        if hosted && source.clone_cache_dir.is_none() {
            return fault("source.clone_cache_dir", "is missing; name the folder for copies of the repositories");
        }
        if source.owner.as_deref().is_some_and(|owner| !is_name(owner)) {
            return fault("source.owner", "must be one name of letters, digits, `.`, `_` and `-`, or null");
        }
        if source.repos.is_empty() {
            return fault("source.repos", "must name at least one repository");
        }
        if let Some(name) = source.repos.iter().find(|name| !is_repository(name)) {
            let message = format!(
                "holds `{}`: a name has 3 to 512 letters, digits, `.`, `_` and `-`, with a letter or digit at both ends",
                name.escape_debug()
            );
            return Err(("source.repos", message));
        }
        let mut names = source.repos.clone();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.last()) {
            return Err(("source.repos", format!("holds `{}` twice", twice.first().map_or("", String::as_str))));
        }
        if source.ref_main.is_empty() {
            return fault("source.ref_main", "must name a branch");
        }
        if !source.ref_pattern.contains(TIMESTEP) {
            return fault("source.ref_pattern", "must hold `{T}`, as `timestep-{T}` does");
        }
        if source.auth_token_env.as_deref() == Some("") {
            return fault("source.auth_token_env", "must name an environment variable, or be null");
        }
        if embedding.model.is_some() && embedding.revision.as_deref().is_none_or(str::is_empty) {
            return fault("embedding.revision", "is missing; a model without its revision is no fixed thing");
        }
        if embedding.normalize == Some(false) {
            return fault("embedding.normalize", "must be true");
        }
        if embedding.batch_size == Some(0) {
            return fault("embedding.batch_size", "must be at least 1");
        }
        let tokens = chunking.max_tokens.unwrap_or(220);
        if tokens < 16 {
            return fault("chunking.max_tokens", "must be at least 16");
        }
        if chunking.overlap.unwrap_or(40.min(tokens - 1)) >= tokens {
            return fault("chunking.overlap", "must be less than chunking.max_tokens");
        }
        if chunking.respect_page_boundaries == Some(false) {
            return fault("chunking.respect_page_boundaries", "must be true: nothing may cross a page");
        }
        if self.search.max_k == 0 {
            return fault("search.max_k", "must be at least 1");
        }
        if self.search.default_k == 0 {
            return fault("search.default_k", "must be at least 1");
        }
        match self.search.method.as_deref() {
            None | Some("lexical" | "chroma") => {}
            Some("exact") => return fault("search.method", "`exact` is gone; leave the key out"),
            Some(_) => return fault("search.method", "must be `lexical`, or `chroma` as the reference has it"),
        }
        if let Some((key, message)) = self.embeddings.fault() {
            return Err((key, message.to_owned()));
        }
        if self.auth.token_secret_env.is_empty() {
            return fault("auth.token_secret_env", "must name an environment variable");
        }
        self.check_server()
    }

    fn check_server(&self) -> Result<(), (&'static str, String)> {
        const LEVELS: [&str; 7] = ["trace", "debug", "info", "warning", "warn", "error", "critical"];
        let server = &self.server;
        if server.host.is_empty() {
            return Err(("server.host", "must be an address, as 127.0.0.1".to_owned()));
        }
        if !LEVELS.contains(&server.log_level.to_ascii_lowercase().as_str()) {
            return Err(("server.log_level", format!("must be one of {}", LEVELS.join(", "))));
        }
        if server.dns_rebinding_protection && server.allowed_hosts.is_empty() {
            let message = "names no host, so with `server.dns_rebinding_protection` nobody would be answered";
            return Err(("server.allowed_hosts", message.to_owned()));
        }
        for name in server.request_log_fields.iter().flatten() {
            if LogField::named(name).is_none() {
                let known: Vec<&str> = LogField::ALL.into_iter().map(LogField::as_str).collect();
                let message = format!("holds `{}`; there are {}", name.escape_debug(), known.join(", "));
                return Err(("server.request_log_fields", message));
            }
        }
        Ok(())
    }
}

/// One part of a path that leads nowhere else.
fn is_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    plain && !name.is_empty() && !name.starts_with(['.', '-'])
}

fn is_repository(name: &str) -> bool {
    let ends = [name.bytes().next(), name.bytes().next_back()];
    is_name(name)
        && (3..=512).contains(&name.len())
        && ends.into_iter().flatten().all(|byte| byte.is_ascii_alphanumeric())
}

/// The place and the fault, in one line.
fn yaml_message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let fault = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match error.location() {
        Some(place) if !fault.contains("line ") => format!("line {}, column {}: {fault}", place.line(), place.column()),
        _ => fault.to_owned(),
    }
}
