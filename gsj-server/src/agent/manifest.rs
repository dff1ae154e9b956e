use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::AgentError;
use super::placeholder;

/// What `agent.yaml` says: everything that is particular to one agent.
///
/// Strings of `mounts`, `home`, `command` and `env` may hold placeholders: `{arch}` (`x64`, `arm64`),
/// `{model}`, `{model_url}`, `{mcp_url}`, `{tools}` (comma-separated), `{context_window}`,
/// `{max_tokens}`, `{thinking}`, `{settings}`, `{workdir}`, `{home}`, `{user_home}`, and the name of
/// each mount. A string of `home.files` that is one placeholder and nothing else takes the value's own
/// type (a number, an object). Unknown fields and unknown placeholders are refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentManifest {
    /// The name that tasks use: `[a-z0-9][a-z0-9-]*`.
    pub name: String,
    /// The agent's version.
    pub version: String,
    /// One line for people.
    pub about: String,
    /// Other names that tasks may use for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// How the agent speaks to its model.
    pub wire_api: WireApi,
    /// What installing it takes.
    pub install: InstallRule,
    /// The program that runs it, whose version is measured.
    #[serde(default)]
    pub runtime: Option<RuntimeRule>,
    /// What the sandbox shows of the installation, by name.
    #[serde(default)]
    pub mounts: BTreeMap<String, MountRule>,
    /// The folder of the agent's own configuration, written anew for each session.
    #[serde(default)]
    pub home: Option<HomeRule>,
    /// The settings document unless the estate has another.
    #[serde(default = "empty_object")]
    pub settings: Value,
    /// The agent's own tools.
    pub tools: Vec<String>,
    /// What the names of the retrieval service's tools begin with here.
    pub retrieval_prefix: String,
    /// The command, program first.
    pub command: Vec<String>,
    /// The whole environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How the prompt reaches the agent.
    pub prompt: PromptBy,
    /// How success is read from the output.
    pub outcome: OutcomeRule,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A dialect in which an agent speaks to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WireApi {
    /// OpenAI chat completions, `POST /v1/chat/completions`.
    OpenaiCompletions,
}

/// What installing an agent takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstallRule {
    /// Packages from npm.
    #[serde(default)]
    pub npm: Option<NpmRule>,
    /// Files of the agent's folder needed at run time; one that starts with `#!` is made executable.
    #[serde(default)]
    pub files: Vec<String>,
    /// Programs of the machine.
    #[serde(default)]
    pub programs: Vec<ProgramRule>,
}

/// Packages from npm, by a lock.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmRule {
    /// The `package.json`.
    pub package: String,
    /// The `package-lock.json`; its digest names the installation.
    pub lock: String,
    /// A `package.json` in the installed tree whose `version` must be the manifest's.
    pub version_file: String,
}

/// A program that must be on the machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRule {
    /// Absolute paths below `/usr`, one of which must be there.
    pub any_of: Vec<String>,
    /// The Debian package that has it.
    pub apt: String,
}

/// The program that runs the agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeRule {
    /// What it is called in `gsj_agent`: `node`, `python`.
    pub name: String,
    /// The version it must have; any if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// A command that prints the version.
    pub command: Vec<String>,
}

/// A part of the installation that the sandbox shows, read-only.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountRule {
    /// `npm` or `files`, with a path below it: in the npm tree, or among the agent's own files.
    pub from: String,
    /// The absolute path inside.
    pub to: String,
}

/// The folder of the agent's own configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeRule {
    /// The absolute path inside; the agent may write there.
    pub to: String,
    /// JSON files to write into it, by name.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
}

/// How the prompt reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    /// On standard input.
    Stdin,
    /// As the last argument.
    Argument,
}

/// How success is read from the output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeRule {
    /// What the output is.
    pub format: OutputFormat,
    /// What the last line must hold: JSON pointer to string.
    #[serde(default)]
    pub last_line: BTreeMap<String, String>,
    /// The lines that may decide, by JSON pointer to string; the last one does.
    pub message: BTreeMap<String, String>,
    /// Where the deciding line says why the model stopped.
    pub stop_reason: String,
    /// The stop reasons that are a success.
    pub success: Vec<String>,
    /// Where the deciding line says what failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// The form of an agent's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputFormat {
    /// One JSON object a line.
    JsonLines,
}

/// Placeholders with a value in every session.
pub(super) const VALUES: [&str; 12] = [
    "arch",
    "context_window",
    "home",
    "max_tokens",
    "mcp_url",
    "model",
    "model_url",
    "settings",
    "thinking",
    "tools",
    "user_home",
    "workdir",
];

impl AgentManifest {
    /// Reads a manifest; `origin` is its path, for messages.
    ///
    /// # Errors
    /// [`AgentError::Manifest`] where it is not as described here.
    pub fn from_yaml(text: &str, origin: &str) -> Result<Self, AgentError> {
        let fail = |reason: String| AgentError::Manifest { origin: origin.to_owned(), reason };
        let manifest: Self = serde_saphyr::from_str(text).map_err(|error| fail(error.to_string()))?;
        manifest.check().map_err(fail)?;
        Ok(manifest)
    }

    /// Every tool that the agent can offer: its own, then the retrieval service's in their fixed order.
    #[must_use]
    pub fn roster(&self) -> Vec<String> {
        let retrieval = gsj_retrieval::TOOL_NAMES.iter().map(|name| format!("{}{name}", self.retrieval_prefix));
        self.tools.iter().cloned().chain(retrieval).collect()
    }

    /// Whether a task may mean this agent by `name`.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    fn check(&self) -> Result<(), String> {
        let plain = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
        };
        if !plain(&self.name) {
            return Err(format!("name: `{}` is not of the form [a-z0-9][a-z0-9_-]*", self.name));
        }
        if self.command.is_empty() {
            return Err("command: is empty".to_owned());
        }
        if !self.settings.is_object() {
            return Err("settings: is not a mapping".to_owned());
        }
        for (field, names) in [("tools", &self.tools), ("outcome.success", &self.outcome.success)] {
            if names.is_empty() || names.iter().collect::<BTreeSet<_>>().len() != names.len() {
                return Err(format!("{field}: is empty or names one twice"));
            }
        }
        let mut relative: Vec<(&str, &str)> =
            self.install.files.iter().map(|file| ("install.files", file.as_str())).collect();
        if let Some(npm) = &self.install.npm {
            relative.extend([
                ("install.npm.package", npm.package.as_str()),
                ("install.npm.lock", npm.lock.as_str()),
                ("install.npm.version_file", npm.version_file.as_str()),
            ]);
        }
        for (name, mount) in &self.mounts {
            if !plain(name) || VALUES.contains(&name.as_str()) {
                return Err(format!("mounts.{name}: can't be used as a name"));
            }
            relative.push(("mounts.from", &mount.from));
            let root = mount.from.split('/').next().unwrap_or_default();
            if !["npm", "files"].contains(&root) || (root == "npm" && self.install.npm.is_none()) {
                return Err(format!(
                    "mounts.{name}.from: `{}` begins with neither `npm` (and there is an install.npm) nor `files`",
                    mount.from
                ));
            }
            absolute(&format!("mounts.{name}.to"), &mount.to)?;
        }
        if let Some(home) = &self.home {
            absolute("home.to", &home.to)?;
            relative.extend(home.files.keys().map(|file| ("home.files", file.as_str())));
        }
        for (field, path) in relative {
            let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
            if path.is_empty() || !inside {
                return Err(format!("{field}: `{path}` is not a path inside the folder"));
            }
        }
        for program in &self.install.programs {
            for path in &program.any_of {
                absolute("install.programs.any_of", path)?;
            }
            if program.any_of.is_empty() {
                return Err("install.programs.any_of: is empty".to_owned());
            }
        }
        for pointer in self
            .outcome
            .last_line
            .keys()
            .chain(self.outcome.message.keys())
            .chain([&self.outcome.stop_reason])
            .chain(&self.outcome.error)
        {
            if !pointer.starts_with('/') {
                return Err(format!("outcome: `{pointer}` is not a JSON pointer (it begins with `/`)"));
            }
        }
        self.check_placeholders()
    }

    fn check_placeholders(&self) -> Result<(), String> {
        let known = |allowed: &[&str], field: &str, text: &str| match placeholder::names(text)
            .find(|name| !allowed.contains(name) && !self.mounts.contains_key(*name))
        {
            Some(name) => Err(format!("{field}: `{{{name}}}` stands for nothing")),
            None => Ok(()),
        };
        for (name, mount) in &self.mounts {
            if let Some(other) = placeholder::names(&mount.from).find(|other| *other != "arch") {
                return Err(format!("mounts.{name}.from: `{{{other}}}` stands for nothing here"));
            }
        }
        for part in self.runtime.iter().flat_map(|runtime| &runtime.command) {
            known(&["arch"], "runtime.command", part)?;
        }
        for part in &self.command {
            if placeholder::names(part).any(|name| name == "mcp_url") {
                return Err("command: `{mcp_url}` holds a token and belongs into env".to_owned());
            }
            known(&VALUES, "command", part)?;
        }
        for (name, text) in &self.env {
            known(&VALUES, &format!("env.{name}"), text)?;
        }
        for (name, document) in self.home.iter().flat_map(|home| &home.files) {
            let mut result = Ok(());
            placeholder::strings(document, &mut |text| {
                if result.is_ok() {
                    result = known(&VALUES, &format!("home.files.{name}"), text);
                }
            });
            result?;
        }
        Ok(())
    }
}

fn absolute(field: &str, path: &str) -> Result<(), String> {
    let normal = path.strip_prefix('/').is_some_and(|rest| {
        !rest.is_empty() && Path::new(rest).components().all(|part| matches!(part, Component::Normal(_)))
    });
    if normal { Ok(()) } else { Err(format!("{field}: `{path}` is not an absolute path")) }
}
