#![doc = include_str!("../README.md")]

mod arguments;
mod bytes;
mod call;
#[cfg(feature = "config")]
pub mod config;
mod decisions;
mod embed;
mod error;
#[cfg(feature = "fetch")]
mod hosted;
mod index;
mod library;
mod progress;
mod service;
mod source;
mod store;
mod text;
mod tools;
mod vectors;

pub use decisions::{Decision, DecisionHit, DecisionStats, StatsFilter};
pub use embed::{EmbedError, EmbedKey, EmbedOptions, Embedder, EmbeddingsConfig, OnFailure};
pub use error::RetrievalError;
#[cfg(feature = "fetch")]
pub use hosted::{Hosted, Layout, Mirrors, Wanted};
pub use index::{CaseIndex, Contribution, Explanation, FusedRank, PageHit, View};
pub use library::{CaseStatus, CaseSummary, Library};
pub use progress::Progress;
pub use service::{
    CallLog, CallOutcome, CallRecord, Clock, IndexFault, IndexSource, Indexer, LogField, Options, Reindex, Scope,
    Service,
};
pub use source::{RepoSource, Sources};
pub use store::{Opened, Rebuild};
pub use tools::{TOOL_NAMES, Tools};
pub use vectors::Vector;
