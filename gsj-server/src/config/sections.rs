//! The sections of `rollout.yaml` as plain data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gsj_trace::reconstruct::{Continuity, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EmbeddingsConfig;

/// Everything a server reads from `rollout.yaml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where cases, tokens and the model come from.
    pub estate: EstateConfig,
    /// The inference engine that the gateway calls.
    pub engine: EngineConfig,
    /// The agent that runs in the sandbox, and what it is offered.
    pub harness: HarnessConfig,
    /// What one session may use up.
    pub limits: AgentLimits,
    /// The retrieval service that each session gets on a socket of its own.
    pub retrieval: RetrievalConfig,
    /// How the agent is isolated.
    pub sandbox: SandboxConfig,
    /// How one trajectory is built from many completions.
    pub builder: BuilderConfig,
    /// The validators and their pins.
    pub checks: ChecksConfig,
    /// The API, the state folder and what is kept.
    pub server: ServerConfig,
    /// How many sessions may be in each stage at once.
    pub workers: WorkersConfig,
    /// Where accepted and rejected results are written.
    pub receiver: ReceiverConfig,
    /// Of the reference's file: container image and network. Kept to compare requests with.
    pub runtime: RuntimeConfig,
    /// Of the reference's file: settings of its own server. Nothing here is used.
    pub polar: PolarConfig,
    /// Anything; kept, never read.
    pub user: Value,
}

/// Where cases, tokens and the model come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EstateConfig {
    /// Pattern of a case repository's URL, with `{case_id}`. `file://` URLs are read here; repositories behind `https://`
    /// and `http://` are copied into the state folder, and their cases must be listed in `cases`.
    pub clone_url_for: String,
    /// Pattern of the repository that retrieval reads the full document from. Absent: `{case_id}.full.git` beside
    /// the case repository when it exists (on a host: when the recipe is `sealed`), else the case repository itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_url_for: Option<String>,
    /// Name of the environment variable that holds what the git host asks for: an access token, or `USER:PASSWORD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_env: Option<String>,
    /// Case ids that are served. Absent: every repository that matches `clone_url_for`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<String>>,
    /// The commit recipe of the estate's repositories, `sealed` or `reference`; stated in the evidence.
    pub recipe: String,
    /// Whether a task is refused unless its `metadata.split` is the split of its case, by the lock; tasks of eval cases
    /// are refused altogether, unless `evaluation` is true.
    pub split_wall: bool,
    /// Whether this server is there for evaluation: then tasks of eval cases pass the wall. Also `gsj serve --evaluation`.
    pub evaluation: bool,
    /// The corpus's `corpus.lock.json`, which tells each case's split. Needed by `split_wall`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<PathBuf>,
    /// URL of a retrieval service elsewhere. gsj serves retrieval itself; the value is only compared with requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_url_base: Option<String>,
    /// Base URL of the engine, as the reference's file names it; `engine.base_url` wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_base_url: Option<String>,
    /// Name of the served model, as the reference's file names it; `engine.model` wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the environment variable that holds the secret which signs retrieval tokens (at least 32 bytes).
    pub token_secret_env: String,
    /// Life of a retrieval token, in seconds.
    pub token_ttl_s: u32,
}

impl Default for EstateConfig {
    fn default() -> Self {
        Self {
            clone_url_for: String::new(),
            full_url_for: None,
            credential_env: None,
            cases: None,
            recipe: "sealed".into(),
            split_wall: false,
            evaluation: false,
            lock: None,
            mcp_url_base: None,
            serving_base_url: None,
            model: None,
            token_secret_env: "GSJ_MCP_TOKEN_SECRET".into(),
            token_ttl_s: 3600,
        }
    }
}

/// Which dialect an engine speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKindName {
    /// vLLM's OpenAI-compatible server.
    #[default]
    Vllm,
    /// SGLang's OpenAI-compatible server.
    Sglang,
}

/// The inference engine that the gateway calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Dialect: `vllm` or `sglang`.
    pub kind: EngineKindName,
    /// Base URL without `/v1`, for example `http://127.0.0.1:8000`. Absent: `estate.serving_base_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Model name as the engine serves it. Absent: `estate.model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the environment variable that holds the engine's API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Whether the gateway asks the engine for streamed answers. The agent is answered as it asked either way.
    pub stream: bool,
    /// How often a call is tried again before any byte of its answer went to the agent.
    pub retries: u32,
    /// Longest wait for a connection, in seconds.
    pub connect_timeout_s: f64,
    /// Longest wait for the next bytes of an answer, in seconds.
    pub read_timeout_s: f64,
    /// The sampling policy, set on every call and recorded.
    pub sampling: SamplingConfig,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            kind: EngineKindName::Vllm,
            base_url: None,
            model: None,
            api_key_env: None,
            stream: true,
            retries: 2,
            connect_timeout_s: 10.0,
            read_timeout_s: 300.0,
            sampling: SamplingConfig::default(),
        }
    }
}

/// Sampling fields; an absent one is not sent, so the engine's own default holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingConfig {
    /// Temperature, at least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus share, above 0 and at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Number of candidates; -1 for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<i64>,
    /// Seed of the engine's sampler for a task's first session; the next ones count on from it. Absent: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Most tokens of one answer; caps what the agent asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// How much the model may think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// No thinking.
    #[default]
    Off,
    /// The least.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More.
    Xhigh,
    /// The most.
    Max,
}

impl Thinking {
    /// The word on the wire and on the agent's command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// The agent that runs in the sandbox, and what it is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HarnessConfig {
    /// Name of the agent when a task names none.
    pub agent: String,
    /// Folder with further agents, one folder each with an `agent.yaml`, beside the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents_dir: Option<PathBuf>,
    /// State folder in which agents are installed. Absent: the server's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_in: Option<PathBuf>,
    /// Tools that the model is offered, in this order. Empty: all that the agent has, its own before the retrieval tools.
    pub tools_allowlist: Vec<String>,
    /// Where transcripts, session logs and deliverables are kept. Absent: `artifacts` in the state folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts_dir: Option<PathBuf>,
    /// Tokens of the model's context window, as told to the agent.
    pub context_window: u32,
    /// Most tokens of one answer, as told to the agent.
    pub max_tokens: u32,
    /// How much the model may think when a task does not say.
    pub thinking: Thinking,
    /// The agent's settings document; its hash is pinned.
    pub settings: Value,
    /// Keys of the reference's file that mean nothing here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

impl Default for HarnessConfig {
    fn default() -> Self {
        Self {
            agent: "pi".into(),
            agents_dir: None,
            installed_in: None,
            tools_allowlist: Vec::new(),
            artifacts_dir: None,
            context_window: 32_768,
            max_tokens: 8192,
            thinking: Thinking::Off,
            settings: serde_json::json!({"compaction": {"enabled": false}}),
            other: BTreeMap::new(),
        }
    }
}

/// What one session may use up; past a limit the gateway answers no further call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Most model calls of one session.
    pub max_turns: u32,
    /// Most sampled tokens of one session.
    pub max_completion_tokens: u64,
    /// Longest run of the agent in seconds when a task does not say.
    pub timeout_s: f64,
    /// Largest deliverable file, in bytes.
    pub artifact_file_bytes: u64,
    /// Largest sum of all deliverables of a session, in bytes.
    pub artifact_total_bytes: u64,
    /// Most deliverable files of a session.
    pub artifact_files: u32,
    /// Largest transcript of the agent, in bytes; what comes after is cut off.
    pub transcript_bytes: u64,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_turns: 200,
            max_completion_tokens: 1_000_000,
            timeout_s: 600.0,
            artifact_file_bytes: 16 << 20,
            artifact_total_bytes: 64 << 20,
            artifact_files: 256,
            transcript_bytes: 256 << 20,
        }
    }
}

/// The retrieval service that each session gets on a socket of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetrievalConfig {
    /// Tool declarations in the form of a `tools/list` answer. Absent: the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_file: Option<PathBuf>,
    /// Decisions for `search_decisions`: a record a line, or a JSON list. Absent: the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions_file: Option<PathBuf>,
    /// Where the index is kept. Absent: `index` in the state folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_dir: Option<PathBuf>,
    /// When an index that is there is used again: `if-stale` builds what changed, `always` builds all at each start,
    /// `never` refuses one that is missing or stale.
    pub rebuild: RebuildName,
    /// An embeddings endpoint, by which pages are found that say a thing in other words.
    pub embeddings: EmbeddingsConfig,
    /// Most hits of one search.
    pub max_k: u32,
    /// Tolerance for a token's expiry, in seconds.
    pub leeway_s: u32,
    /// Longest query, in characters.
    pub query_chars: u32,
    /// Most tool calls a second of one session; 0 is no limit. Further ones are told to wait.
    pub calls_per_second_per_episode: u32,
}

impl Default for RetrievalConfig {
    fn default() -> Self {
        Self {
            tools_file: None,
            decisions_file: None,
            index_dir: None,
            rebuild: RebuildName::IfStale,
            embeddings: EmbeddingsConfig::default(),
            max_k: 20,
            leeway_s: 30,
            query_chars: 32_768,
            calls_per_second_per_episode: 100,
        }
    }
}

/// When an index that is there is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RebuildName {
    /// When nothing changed; else what changed is built anew.
    #[default]
    IfStale,
    /// Never at a start: every case is built anew.
    Always,
    /// Always: one that is missing or stale is refused.
    Never,
}

impl From<RebuildName> for gsj_retrieval::Rebuild {
    fn from(name: RebuildName) -> Self {
        match name {
            RebuildName::IfStale => Self::IfStale,
            RebuildName::Always => Self::Always,
            RebuildName::Never => Self::Never,
        }
    }
}

/// What isolates the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxBackendName {
    /// bubblewrap with namespaces of its own and no network.
    #[default]
    Bwrap,
    /// Nothing. For trusted development only; the trace says so and no pins approve it.
    None,
}

/// How the agent is isolated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// `bwrap` or `none`.
    pub backend: SandboxBackendName,
    /// User id of the sandbox when the server runs as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Resource limits inside.
    pub limits: SandboxLimits,
}

/// Resource limits inside the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxLimits {
    /// Most processes and threads.
    pub processes: u64,
    /// Most open files of one process.
    pub open_files: u64,
    /// Largest file, in bytes.
    pub file_bytes: u64,
    /// Largest data segment of one process, in bytes.
    pub data_bytes: u64,
    /// Size of `/tmp`, in bytes.
    pub tmp_bytes: u64,
    /// Size of the home folder, in bytes.
    pub home_bytes: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            processes: 128,
            open_files: 1024,
            file_bytes: 256 << 20,
            data_bytes: 4 << 30,
            tmp_bytes: 256 << 20,
            home_bytes: 64 << 20,
        }
    }
}

/// How completions are joined into one context (`checks.md` section 11.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContinuityName {
    /// A turn whose context is not, id by id, what the trace says starts a trace of its own.
    Exact,
    /// Also joins turns whose context has other ids and the same text, where `builder.tokenizer` tells.
    #[default]
    SameText,
    /// By prompts alone, as the Python reference does; its traces have no certificate.
    Reference,
}

/// How one trajectory is built from many completions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BuilderConfig {
    /// How completions are joined into one trajectory.
    pub continuity: ContinuityName,
    /// The engine's `tokenizer.json`; with it a context that differs is told apart: other ids, the template's doing, or
    /// another text. When the pins name tokenizers it must be one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// What opens and closes reasoning in the template's text.
    pub reasoning_markers: (String, String),
    /// Token id that ends a turn. Absent: found by the pins' `end_of_turn_ids` when those name exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_of_turn_token_id: Option<i64>,
    /// Token ids that the template adds to the generation prompt only. Only `reference` puts them back.
    pub generation_prompt_glue_ids: Vec<i64>,
}

impl Default for BuilderConfig {
    fn default() -> Self {
        Self {
            continuity: ContinuityName::default(),
            tokenizer: None,
            reasoning_markers: ("<think>".to_owned(), "</think>".to_owned()),
            end_of_turn_token_id: None,
            generation_prompt_glue_ids: Vec::new(),
        }
    }
}

impl BuilderConfig {
    /// What this section asks of the reconstruction; the tokenizer is read by the caller.
    pub fn options(&self) -> Options {
        Options {
            continuity: match self.continuity {
                ContinuityName::Exact => Continuity::Exact,
                ContinuityName::SameText => Continuity::SameText,
                ContinuityName::Reference => Continuity::Reference,
            },
            end_of_turn_token_id: self.end_of_turn_token_id,
            glue_ids: self.generation_prompt_glue_ids.clone(),
            reasoning_markers: self.reasoning_markers.clone(),
            ..Options::default()
        }
    }
}

/// Which validators run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileName {
    /// The reference's rules, and those against what they let through.
    #[default]
    Strict,
    /// The reference's rules.
    Reference,
}

/// The validators and their pins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChecksConfig {
    /// The pins file. Absent: `./pins/pins.gsj.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pins: Option<PathBuf>,
    /// Profile of the validators.
    pub profile: ProfileName,
    /// LP3 fires for logprobs of sampled tokens at or below this.
    pub sentinel_threshold: f64,
    /// LP6 fires when the share of exact zeros among sampled tokens is above this.
    pub zero_at_mask1_max_rate: f64,
    /// Arms H41: a roster was offered and no tool was called.
    pub reject_toolless_roster: bool,
    /// Strict: F1 fires for a trace without the certificate of its contexts.
    pub require_fidelity: bool,
    /// Strict: F3 fires when more turns of a trace than this follow on another context than the trace says.
    pub max_inexact_contexts: u64,
    /// Strict: F3 counts turns whose context has other ids and the same text, too.
    pub count_retokenized: bool,
    /// Strict: accepts sessions that were forked into several traces, and builds them without S10 and S11.
    pub allow_forks: bool,
    /// Strict: G8 fires for text that stands only on pages after the session's timestep, looked for in every message.
    pub leak_scan: bool,
}

impl Default for ChecksConfig {
    fn default() -> Self {
        let policy = gsj_checks::Policy::default();
        Self {
            pins: None,
            profile: ProfileName::default(),
            sentinel_threshold: policy.sentinel_threshold,
            zero_at_mask1_max_rate: policy.zero_at_mask1_max_rate,
            reject_toolless_roster: policy.reject_toolless_roster,
            require_fidelity: policy.require_fidelity,
            max_inexact_contexts: policy.max_inexact_contexts,
            count_retokenized: policy.count_retokenized,
            allow_forks: policy.allow_forks,
            leak_scan: true,
        }
    }
}

impl ChecksConfig {
    /// The validators' policy that this section asks for.
    pub fn policy(&self) -> gsj_checks::Policy {
        let profile = match self.profile {
            ProfileName::Strict => gsj_checks::Profile::Strict,
            ProfileName::Reference => gsj_checks::Profile::Reference,
        };
        gsj_checks::Policy {
            profile,
            sentinel_threshold: self.sentinel_threshold,
            zero_at_mask1_max_rate: self.zero_at_mask1_max_rate,
            reject_toolless_roster: self.reject_toolless_roster,
            require_fidelity: self.require_fidelity,
            max_inexact_contexts: self.max_inexact_contexts,
            count_retokenized: self.count_retokenized,
            allow_forks: self.allow_forks,
        }
    }
}

/// What becomes of a workspace when its session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkspacePolicy {
    /// Removed once deliverables are copied out.
    #[default]
    Drop,
    /// Kept below `sessions/` in the state folder.
    Keep,
}

/// The API, the state folder and what is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port of the API.
    pub listen: String,
    /// State folder. Absent: `$GSJ_STATE_DIR`, else `/var/lib/gsj` for root and `$XDG_STATE_HOME/gsj` for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
    /// Name of this machine in results. Absent: `gsj-local`.
    pub node_id: String,
    /// What becomes of workspaces.
    pub workspaces: WorkspacePolicy,
    /// Delivery of results to a task's `callback_url`.
    pub callback: CallbackConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            state_dir: None,
            node_id: "gsj-local".into(),
            workspaces: WorkspacePolicy::Drop,
            callback: CallbackConfig::default(),
        }
    }
}

/// Delivery of results to a task's `callback_url`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallbackConfig {
    /// Longest wait for one delivery, in seconds.
    pub timeout_s: f64,
    /// How often a delivery is tried.
    pub attempts: u32,
}

impl Default for CallbackConfig {
    fn default() -> Self {
        Self { timeout_s: 30.0, attempts: 8 }
    }
}

/// How many sessions may be in each stage at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkersConfig {
    /// Sessions being prepared.
    pub init: u32,
    /// Sessions whose agent runs.
    pub run: u32,
    /// Sessions being harvested, built and validated.
    pub post: u32,
}

impl Default for WorkersConfig {
    fn default() -> Self {
        Self { init: 2, run: 16, post: 2 }
    }
}

/// Where accepted and rejected results are written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReceiverConfig {
    /// Accepted results. Absent: `traces` in the state folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces_dir: Option<PathBuf>,
    /// Rejected results. Absent: `quarantine` beside `traces_dir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine_dir: Option<PathBuf>,
    /// Keys of the reference's file that mean nothing here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Container image and network of the reference's file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RuntimeConfig {
    /// Image that a request may name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Network that a request may name. The sandbox has none, whatever stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Keys of the reference's file that mean nothing here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Settings of the reference's own server; every key is warned about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolarConfig {
    /// Keys of the reference's file that mean nothing here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}
