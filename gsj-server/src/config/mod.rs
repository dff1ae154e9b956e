//! The one YAML of an estate: what a server may do, with every default written down.
//!
//! [`Config::from_yaml`] reads our own `rollout.yaml` and, unchanged, the file of the Python
//! reference. Unknown keys are refused in our own sections; the sections `polar`, `runtime`,
//! `harness` and `receiver` may hold keys of the reference that mean nothing here, each of which
//! becomes a [`Warning`]; `user` is kept and never read.

mod read;
mod reference;
mod sections;

pub use gsj_retrieval::EmbeddingsConfig;
pub use read::{ConfigError, ReadContext, Warning};
pub use reference::{reference_markdown, schema};
pub use sections::{
    AgentLimits, BuilderConfig, CallbackConfig, ChecksConfig, Config, ContinuityName, EngineConfig, EngineKindName,
    EstateConfig, HarnessConfig, PolarConfig, ProfileName, RebuildName, ReceiverConfig, RetrievalConfig, RuntimeConfig,
    SamplingConfig, SandboxBackendName, SandboxConfig, SandboxLimits, ServerConfig, Thinking, WorkersConfig,
    WorkspacePolicy,
};

#[cfg(test)]
mod tests;
