#![doc = include_str!("../README.md")]

mod arguments;
mod call;
mod decisions;
mod error;
mod index;
mod library;
mod service;
mod source;
mod store;
mod text;
mod tools;

pub use decisions::{Decision, DecisionHit, DecisionStats, StatsFilter};
pub use error::RetrievalError;
pub use index::{CaseIndex, Contribution, Explanation, PageHit, View};
pub use library::{CaseStatus, CaseSummary, Library};
pub use service::{Clock, Options, Scope, Service};
pub use source::{RepoSource, Sources};
pub use store::{Opened, Rebuild};
pub use tools::{TOOL_NAMES, Tools};
