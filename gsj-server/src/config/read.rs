//! From YAML text to a checked [`Config`]: defaults, paths, warnings.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Config;

/// What reading needs to know about its surroundings; libraries look at neither environment nor home.
#[derive(Debug, Clone)]
pub struct ReadContext {
    /// The file's path, for messages; relative paths in it start at its folder.
    pub path: PathBuf,
    /// State folder when the file names none.
    pub default_state_dir: PathBuf,
    /// Value of `GSJ_PINS_PATH`, when set and not empty; it wins over `checks.pins`.
    pub pins_path: Option<PathBuf>,
}

/// A key that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Path of the key, for example `polar.gateway.public_url`.
    pub path: String,
    /// Why it does not count.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

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
        field: String,
        /// What is wrong with it and what would do.
        message: String,
    },
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the line or the field.
    pub fn read(context: &ReadContext) -> Result<(Self, Vec<Warning>), ConfigError> {
        let text = std::fs::read_to_string(&context.path)
            .map_err(|source| ConfigError::Read { path: context.path.clone(), source })?;
        Self::from_yaml(&text, context)
    }

    /// Reads a configuration from text; see [`Config::read`].
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the line or the field.
    pub fn from_yaml(text: &str, context: &ReadContext) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut config: Self = if text.trim().is_empty() {
            Self::default()
        } else {
            // No excerpt of the text: somebody's key may stand in it, where it does not belong.
            let options = serde_saphyr::options! { with_snippet: false };
            serde_saphyr::from_str_with_options(text, options)
                .map_err(|error| ConfigError::Yaml { path: context.path.clone(), message: yaml_message(&error) })?
        };
        let warnings = config.warnings();
        config.fill(context);
        config.check(&context.path)?;
        Ok((config, warnings))
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut found = Vec::new();
        let sections = [
            ("harness", &self.harness.other),
            ("receiver", &self.receiver.other),
            ("runtime", &self.runtime.other),
            ("polar", &self.polar.other),
        ];
        for (section, other) in sections {
            for (key, value) in other {
                leaves(&format!("{section}.{key}"), value, &mut found);
            }
        }
        found
    }

    fn fill(&mut self, context: &ReadContext) {
        let base = context.path.parent().unwrap_or_else(|| Path::new(""));
        let state = self.server.state_dir.clone().unwrap_or_else(|| context.default_state_dir.clone());
        let state = base.join(state);
        let traces = self.receiver.traces_dir.take().map_or_else(|| state.join("traces"), |p| base.join(p));
        let quarantine = self.receiver.quarantine_dir.take().map_or_else(
            || traces.parent().map_or_else(|| state.join("quarantine"), |parent| parent.join("quarantine")),
            |p| base.join(p),
        );
        self.receiver.traces_dir = Some(traces);
        self.receiver.quarantine_dir = Some(quarantine);
        self.harness.artifacts_dir =
            Some(self.harness.artifacts_dir.take().map_or_else(|| state.join("artifacts"), |p| base.join(p)));
        self.harness.installed_in =
            Some(self.harness.installed_in.take().map_or_else(|| state.clone(), |p| base.join(p)));
        self.retrieval.index_dir =
            Some(self.retrieval.index_dir.take().map_or_else(|| state.join("index"), |p| base.join(p)));
        self.server.state_dir = Some(state);
        for path in [
            &mut self.estate.lock,
            &mut self.harness.agents_dir,
            &mut self.retrieval.tools_file,
            &mut self.retrieval.decisions_file,
            &mut self.builder.tokenizer,
        ] {
            *path = path.take().map(|p| base.join(p));
        }
        let pins = context.pins_path.clone().or_else(|| self.checks.pins.take().map(|p| base.join(p)));
        self.checks.pins = Some(pins.unwrap_or_else(|| PathBuf::from("pins/pins.gsj.json")));
        self.engine.base_url = self.engine.base_url.take().or_else(|| self.estate.serving_base_url.clone());
        self.engine.model = self.engine.model.take().or_else(|| self.estate.model.clone());
    }

    fn check(&self, path: &Path) -> Result<(), ConfigError> {
        let fault = |field: &str, message: &str| {
            Err(ConfigError::Value { path: path.to_owned(), field: field.into(), message: message.into() })
        };
        if !self.estate.clone_url_for.contains("{case_id}") {
            return fault(
                "estate.clone_url_for",
                "must hold `{case_id}`, for example `file:///srv/repos/owner/{case_id}.git`",
            );
        }
        if has_userinfo(&self.estate.clone_url_for) {
            return fault("estate.clone_url_for", "must not hold a user or password");
        }
        if !matches!(self.estate.recipe.as_str(), "sealed" | "reference") {
            return fault("estate.recipe", "must be `sealed` or `reference`");
        }
        if self.estate.split_wall && self.estate.lock.is_none() {
            return fault("estate.lock", "is missing; `estate.split_wall` needs the corpus's `corpus.lock.json`");
        }
        if self.estate.token_secret_env.is_empty() {
            return fault("estate.token_secret_env", "must name an environment variable");
        }
        if self.estate.token_ttl_s == 0 {
            return fault("estate.token_ttl_s", "must be at least 1");
        }
        let Some(url) = self.engine.base_url.as_deref() else {
            return fault("engine.base_url", "is missing; name the engine, for example `http://127.0.0.1:8000`");
        };
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return fault("engine.base_url", "must start with http:// or https://");
        }
        if has_userinfo(url) {
            return fault(
                "engine.base_url",
                "must not hold a user or password; name the key's variable in engine.api_key_env",
            );
        }
        if self.engine.model.as_deref().is_none_or(str::is_empty) {
            return fault("engine.model", "is missing; give the name that the engine serves the model by");
        }
        for (field, value) in [
            ("engine.connect_timeout_s", self.engine.connect_timeout_s),
            ("engine.read_timeout_s", self.engine.read_timeout_s),
            ("limits.timeout_s", self.limits.timeout_s),
            ("server.callback.timeout_s", self.server.callback.timeout_s),
        ] {
            if !(value.is_finite() && value > 0.0 && value <= 1e7) {
                return fault(field, "must be a number of seconds above 0");
            }
        }
        if self.engine.sampling.temperature.is_some_and(|t| !(t.is_finite() && t >= 0.0)) {
            return fault("engine.sampling.temperature", "must be a number of at least 0");
        }
        if self.engine.sampling.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            return fault("engine.sampling.top_p", "must be above 0 and at most 1");
        }
        if let Some((key, problem)) = self.retrieval.embeddings.fault() {
            return fault(&format!("retrieval.{key}"), problem);
        }
        if !self.harness.settings.is_object() {
            return fault("harness.settings", "must be a mapping");
        }
        for (field, value) in [
            ("workers.init", self.workers.init),
            ("workers.run", self.workers.run),
            ("workers.post", self.workers.post),
        ] {
            if value == 0 || value > 4096 {
                return fault(field, "must be from 1 to 4096");
            }
        }
        if self.server.listen.parse::<std::net::SocketAddr>().is_err() {
            return fault("server.listen", "must be an address and port, for example `127.0.0.1:8080`");
        }
        if self.sandbox.uid == Some(0) {
            return fault("sandbox.uid", "must not be 0; the sandbox runs unprivileged");
        }
        Ok(())
    }
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

fn has_userinfo(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().is_some_and(|authority| authority.contains('@'))
}

/// One warning per leaf, so that each key that is passed over is named.
fn leaves(path: &str, value: &Value, found: &mut Vec<Warning>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                leaves(&format!("{path}.{key}"), value, found);
            }
        }
        _ => found.push(Warning { path: path.into(), message: "means nothing to gsj and is ignored".into() }),
    }
}
