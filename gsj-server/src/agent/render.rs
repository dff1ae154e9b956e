use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::AgentError;
use super::install::{Installed, arch};
use super::manifest::PromptBy;
use super::placeholder::Values;
use crate::config::Thinking;

/// A text that is never shown: the retrieval URL holds the session's token.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Takes the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}

/// Which paths the agent will see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Those that the mounts give it.
    Sandbox,
    /// The host's own, where nothing is mounted (the `none` backend).
    Host,
}

/// What one session gives an agent.
#[derive(Debug)]
pub struct RenderContext<'a> {
    /// The model's name at the engine.
    pub model: &'a str,
    /// The model endpoint as the agent reaches it, with `/v1`; may hold the launcher's `{port:N}`.
    pub model_url: &'a str,
    /// The retrieval endpoint as the agent reaches it, token included; may hold `{port:N}`.
    pub mcp_url: &'a SecretText,
    /// The tools allowed, in the order in which the model is told of them.
    pub tools: &'a [String],
    /// The model's window, tokens.
    pub context_window: u32,
    /// The most tokens one answer may have.
    pub max_tokens: u32,
    /// How much to think.
    pub thinking: Thinking,
    /// The estate's settings document, in place of the manifest's.
    pub settings: Option<&'a Value>,
    /// What the agent is asked to do.
    pub prompt: &'a str,
    /// Where the checkout is, as the agent sees it; its working directory.
    pub workdir: &'a str,
    /// The host folder for the agent's own configuration: [`Rendered::files`] are written there, and it
    /// is mounted.
    pub home_dir: &'a Path,
    /// Which paths the agent will see.
    pub layout: Layout,
}

/// A file to write below [`RenderContext::home_dir`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path there.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A part of the host that the sandbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The host path.
    pub source: PathBuf,
    /// The path inside.
    pub target: PathBuf,
    /// Whether the agent may write there.
    pub writable: bool,
}

/// An agent made ready for one session.
#[derive(Clone, PartialEq)]
pub struct Rendered {
    /// What to write before the start.
    pub files: Vec<RenderedFile>,
    /// The command, program first.
    pub command: Vec<String>,
    /// The whole environment; holds the session's token.
    pub env: BTreeMap<String, String>,
    /// What to mount; empty in [`Layout::Host`].
    pub mounts: Vec<Mount>,
    /// The working directory.
    pub cwd: String,
    /// What to write to standard input.
    pub stdin: Vec<u8>,
    /// The settings document as rendered: `gsj_settings`.
    pub settings: Value,
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendered")
            .field("command", &self.command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("mounts", &self.mounts)
            .field("cwd", &self.cwd)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Renders an agent for one session. Pure: nothing is read or written.
///
/// # Errors
/// [`AgentError::UnknownTool`]: pi drops such a name without a word, and the model would be told of
/// other tools than the task's. [`AgentError::Render`] for a value that can't be passed on.
pub fn render(installed: &Installed, context: &RenderContext<'_>) -> Result<Rendered, AgentError> {
    let manifest = installed.manifest();
    let fail = |reason: &str| AgentError::Render { agent: manifest.name.clone(), reason: reason.to_owned() };
    check_tools(installed, context.tools)?;
    if context.model.is_empty() || context.model.starts_with('-') || context.model.chars().any(char::is_control) {
        return Err(fail("the model's name is empty, begins with `-` or holds a control character"));
    }
    if context.prompt.trim().is_empty() {
        return Err(fail("the prompt is blank, which the agent answers with no model call"));
    }
    let settings = context.settings.unwrap_or(&manifest.settings);
    if !settings.is_object() {
        return Err(fail("the settings document is not a mapping"));
    }

    let home_dir = context.home_dir.display().to_string();
    let (home, user_home) = match (context.layout, &manifest.home) {
        (Layout::Sandbox, Some(home)) => (home.to.clone(), "/home/agent".to_owned()),
        (Layout::Sandbox, None) => ("/home/agent".to_owned(), "/home/agent".to_owned()),
        (Layout::Host, _) => (home_dir.clone(), home_dir),
    };
    let mut values = BTreeMap::from([
        ("arch".to_owned(), arch().into()),
        ("context_window".to_owned(), context.context_window.into()),
        ("home".to_owned(), home.into()),
        ("max_tokens".to_owned(), context.max_tokens.into()),
        ("mcp_url".to_owned(), context.mcp_url.0.as_str().into()),
        ("model".to_owned(), context.model.into()),
        ("model_url".to_owned(), context.model_url.into()),
        ("settings".to_owned(), settings.clone()),
        ("thinking".to_owned(), context.thinking.as_str().into()),
        ("tools".to_owned(), context.tools.join(",").into()),
        ("user_home".to_owned(), user_home.into()),
        ("workdir".to_owned(), context.workdir.into()),
    ]);
    let mut mounts = Vec::new();
    for (name, rule) in &manifest.mounts {
        let source =
            installed.host_path(&rule.from).ok_or_else(|| fail("a mount names an npm tree that is not there"))?;
        match context.layout {
            Layout::Sandbox => {
                values.insert(name.clone(), rule.to.as_str().into());
                mounts.push(Mount { source, target: PathBuf::from(&rule.to), writable: false });
            }
            Layout::Host => {
                values.insert(name.clone(), source.display().to_string().into());
            }
        }
    }
    let values = Values(values);

    let mut files = Vec::new();
    if let Some(home) = &manifest.home {
        for (path, document) in &home.files {
            let mut bytes = values.document(document).to_string().into_bytes();
            bytes.push(b'\n');
            files.push(RenderedFile { path: path.clone(), bytes });
        }
        if context.layout == Layout::Sandbox {
            mounts.push(Mount {
                source: context.home_dir.to_path_buf(),
                target: PathBuf::from(&home.to),
                writable: true,
            });
        }
    }
    let mut command: Vec<String> = manifest.command.iter().map(|part| values.text(part)).collect();
    let stdin = match manifest.prompt {
        PromptBy::Stdin => context.prompt.as_bytes().to_vec(),
        PromptBy::Argument => {
            command.push(context.prompt.to_owned());
            Vec::new()
        }
    };
    Ok(Rendered {
        files,
        command,
        env: manifest.env.iter().map(|(name, text)| (name.clone(), values.text(text))).collect(),
        mounts,
        cwd: context.workdir.to_owned(),
        stdin,
        settings: settings.clone(),
    })
}

fn check_tools(installed: &Installed, tools: &[String]) -> Result<(), AgentError> {
    let manifest = installed.manifest();
    let fail = |reason: String| AgentError::Render { agent: manifest.name.clone(), reason };
    if tools.is_empty() {
        return Err(fail("tools_allowlist is empty".to_owned()));
    }
    let mut seen = BTreeSet::new();
    for tool in tools {
        if !seen.insert(tool) {
            return Err(fail(format!("tools_allowlist names `{tool}` twice")));
        }
        let retrieval = tool.strip_prefix(&manifest.retrieval_prefix).is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        });
        if !retrieval && !manifest.tools.contains(tool) {
            return Err(AgentError::UnknownTool {
                agent: manifest.name.clone(),
                tool: tool.clone(),
                known: format!(
                    "{}, and the retrieval tools `{}..`",
                    manifest.tools.join(", "),
                    manifest.retrieval_prefix
                ),
            });
        }
    }
    Ok(())
}
