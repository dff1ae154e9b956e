//! Agents: data in a folder, installed from a lock, rendered for one session, judged by their output.
//!
//! An agent is a folder `agents/<name>/` with a manifest `agent.yaml` ([`AgentManifest`]), for agents
//! from npm a `package.json` with its lock, and the files that it needs at run time. Adding an agent
//! touches no Rust: [`Agents::builtin`] are the ones embedded in the program, [`Agents::add_folder`]
//! reads more.
//!
//! ```no_run
//! use gsj_server::agent::{self, Agents, InstallOptions, Layout, RenderContext, SecretText, Thinking};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agents = Agents::builtin()?;
//! let installed = agent::install(agents.find("pi")?, "/var/lib/gsj".as_ref(), &InstallOptions::default())?;
//! let rendered = agent::render(&installed, &RenderContext {
//!     model: "stub",
//!     model_url: "http://127.0.0.1:8080/v1",
//!     mcp_url: &SecretText::new("http://127.0.0.1:8790/mcp/TOKEN"),
//!     tools: &["read".to_owned(), "mcp_gsj_search_case".to_owned()],
//!     context_window: 32_768,
//!     max_tokens: 8_192,
//!     thinking: Thinking::Off,
//!     settings: None,
//!     prompt: "Summarize the case.",
//!     workdir: "/workspace",
//!     home_dir: "/var/lib/gsj/sessions/s1/agent".as_ref(),
//!     layout: Layout::Sandbox,
//! })?;
//! assert_eq!(rendered.cwd, "/workspace");
//! # Ok(()) }
//! ```

mod catalog;
mod error;
mod install;
mod manifest;
mod outcome;
mod placeholder;
mod program;
mod render;
mod tree;

pub use crate::config::Thinking;
pub use catalog::{Agent, Agents};
pub use error::AgentError;
pub(crate) use error::install_command;
pub use install::{AgentIdentity, Depth, InstallOptions, Installed, Listed, Presence, install, list, open, verify};
pub use manifest::{
    AgentManifest, HomeRule, InstallRule, MountRule, NpmRule, OutcomeRule, OutputFormat, ProgramRule, PromptBy,
    RuntimeRule, WireApi,
};
pub use outcome::Outcome;
pub use render::{Layout, Mount, RenderContext, Rendered, RenderedFile, SecretText, render};
