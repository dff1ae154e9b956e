#![doc = include_str!("../README.md")]

mod arguments;
mod call;
mod case;
mod decisions;
mod error;
mod library;
mod scan;
mod service;
mod source;
mod text;
mod tools;

pub use case::{PageHit, View};
pub use decisions::{Decision, DecisionHit, DecisionStats, StatsFilter};
pub use error::RetrievalError;
pub use library::{CaseStatus, CaseSummary, Library};
pub use service::{Clock, Options, Scope, Service};
pub use source::RepoSource;
pub use tools::{TOOL_NAMES, Tools};
