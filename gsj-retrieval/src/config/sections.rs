//! The sections of the file as plain data (retrieval.md section 11).

use crate::{EmbeddingsConfig, LogField, Rebuild};
use serde::Deserialize;
use std::path::PathBuf;

/// A service's whole configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Where the case repositories are.
    pub source: SourceConfig,
    /// What makes vectors; the reference's keys mean nothing here.
    #[serde(deserialize_with = "section")]
    pub embedding: EmbeddingConfig,
    /// An endpoint of vectors, by which pages are found that say a thing in other words.
    #[serde(default, deserialize_with = "section")]
    pub embeddings: EmbeddingsConfig,
    /// The reference's windows; sentences are the units here, so its keys mean nothing.
    #[serde(deserialize_with = "section")]
    pub chunking: ChunkingConfig,
    /// Where the index is kept.
    pub index: IndexConfig,
    /// How many hits there are.
    #[serde(deserialize_with = "section")]
    pub search: SearchConfig,
    /// The decisions.
    #[serde(default, deserialize_with = "section")]
    pub decisions: DecisionsConfig,
    /// Who may ask.
    #[serde(default, deserialize_with = "section")]
    pub auth: AuthConfig,
    /// Where the service listens, and what it says.
    #[serde(default, deserialize_with = "section")]
    pub server: ServerConfig,
    /// How much may be asked.
    #[serde(default, deserialize_with = "section")]
    pub limits: LimitsConfig,
}

/// A section that is there and empty is one with all defaults.
fn section<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Where the case repositories are.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SourceConfig {
    /// `file:///FOLDER`, `https://HOST` or `http://HOST`.
    pub base_url: String,
    /// The folder below it (`gsj-admin`); null for trees without one.
    #[serde(default = "admin")]
    pub owner: Option<String>,
    /// The repositories' names without `.git`, which are the case ids.
    pub repos: Vec<String>,
    /// The branch with all pages (`main`).
    #[serde(default = "main")]
    pub ref_main: String,
    /// How the branch of a timestep is called; holds `{T}` (`timestep-{T}`).
    #[serde(default = "timestep")]
    pub ref_pattern: String,
    /// Name of the variable with the git host's credential.
    #[serde(default)]
    pub auth_token_env: Option<String>,
    /// Where copies of a host's repositories are kept; needed for `http(s)://`.
    #[serde(default)]
    pub clone_cache_dir: Option<PathBuf>,
    /// How the repositories were made. Absent: in a folder, whatever is there; on a host, `reference`.
    #[serde(default)]
    pub recipe: Option<RecipeName>,
    /// A file of certificates to trust instead of the system's.
    #[serde(default)]
    pub certificates: Option<PathBuf>,
}

fn admin() -> Option<String> {
    Some("gsj-admin".to_owned())
}

fn main() -> String {
    "main".to_owned()
}

fn timestep() -> String {
    format!("timestep-{}", crate::source::TIMESTEP)
}

/// How repositories were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecipeName {
    /// The document in a repository of its own, `CASE.full.git`.
    Sealed,
    /// Everything in one.
    Reference,
}

/// What makes vectors.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbeddingConfig {
    /// The reference's model; not used.
    pub model: Option<String>,
    /// Its revision, which must be named with a model; not used.
    pub revision: Option<String>,
    /// Where it runs; not used.
    pub device: Option<String>,
    /// How many texts it is given at once; not used.
    pub batch_size: Option<u32>,
    /// Only true; not used.
    pub normalize: Option<bool>,
}

/// The reference's windows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ChunkingConfig {
    /// At least 16; not used.
    pub max_tokens: Option<u32>,
    /// Less than `max_tokens`; not used.
    pub overlap: Option<u32>,
    /// Only true, which holds here too.
    pub respect_page_boundaries: Option<bool>,
}

/// Where the index is kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IndexConfig {
    /// Its folder.
    pub path: PathBuf,
    /// When one that is there is used again.
    #[serde(default)]
    pub rebuild: Rebuild,
}

/// How many hits there are.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SearchConfig {
    /// Hits of a call that names no number (5).
    pub default_k: u32,
    /// Most hits (20).
    pub max_k: u32,
    /// `lexical`; the reference's `chroma` is taken for it.
    pub method: Option<String>,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { default_k: 5, max_k: 20, method: None }
    }
}

/// The decisions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DecisionsConfig {
    /// A file of decisions. Absent: the built-in ones.
    pub file: Option<PathBuf>,
    /// What the reference makes its set from; not used.
    pub seed: Option<i64>,
    /// How many it makes; not used.
    pub corpus_size: Option<u32>,
}

/// Who may ask.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Name of the variable with the secret that signs tokens (`GSJ_MCP_TOKEN_SECRET`).
    pub token_secret_env: String,
    /// How late a token may be, in seconds (30).
    pub leeway_s: u32,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self { token_secret_env: "GSJ_MCP_TOKEN_SECRET".to_owned(), leeway_s: 30 }
    }
}

/// Where the service listens, and what it says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The address (127.0.0.1).
    pub host: String,
    /// The port (8790).
    pub port: u16,
    /// `info` and below: a line for each tool call; above: none (`info`).
    pub log_level: String,
    /// Whether only `allowed_hosts` are answered.
    pub dns_rebinding_protection: bool,
    /// The hosts by whose names the service is called: `NAME`, `NAME:PORT` or `NAME:*`.
    pub allowed_hosts: Vec<String>,
    /// The members of a call's line, in order. Absent: all.
    pub request_log_fields: Option<Vec<String>>,
    /// Tool declarations in the form of a `tools/list` answer. Absent: the built-in ones.
    pub tools_file: Option<PathBuf>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8790,
            log_level: "info".to_owned(),
            dns_rebinding_protection: false,
            allowed_hosts: Vec::new(),
            request_log_fields: None,
            tools_file: None,
        }
    }
}

impl ServerConfig {
    /// The members of a call's line, in order; nothing where calls are not logged.
    #[must_use]
    pub fn log_fields(&self) -> Option<Vec<LogField>> {
        if matches!(self.log_level.to_ascii_lowercase().as_str(), "warning" | "warn" | "error" | "critical") {
            return None;
        }
        Some(match &self.request_log_fields {
            Some(names) => names.iter().filter_map(|name| LogField::named(name)).collect(),
            None => LogField::ALL.to_vec(),
        })
    }
}

/// How much may be asked. 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// The longest query, in characters (32,768).
    pub query_chars: Option<usize>,
    /// The most tool calls a second, all together (no limit).
    pub calls_per_second: Option<u32>,
    /// The most tool calls a second of one episode (5,000).
    pub calls_per_second_per_episode: Option<u32>,
    /// How many searches run at once; more wait (one for each processor).
    pub concurrent_searches: Option<usize>,
}
