#![doc = include_str!("../README.md")]

mod arguments;
mod bytes;
mod call;
mod decisions;
mod embed;
mod error;
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
pub use embed::{EmbedError, EmbedKey, EmbedOptions, Embedder, OnFailure};
pub use error::RetrievalError;
pub use index::{CaseIndex, Contribution, Explanation, FusedRank, PageHit, View};
pub use library::{CaseStatus, CaseSummary, Library};
pub use progress::Progress;
pub use service::{Clock, IndexFault, IndexSource, Indexer, Options, Reindex, Scope, Service};
pub use source::{RepoSource, Sources};
pub use store::{Opened, Rebuild};
pub use tools::{TOOL_NAMES, Tools};
pub use vectors::Vector;
