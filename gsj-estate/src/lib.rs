#![doc = include_str!("../README.md")]

mod address;
mod corpus;
mod error;
mod files;
mod forgotten;
#[cfg(feature = "taskbank")]
pub mod home;
mod host;
mod identity;
#[cfg(feature = "remote")]
mod ingest;
mod lock;
mod names;
mod parallel;
mod recipe;
mod report;
mod repository;
mod rules;
mod scaffold;
#[cfg(feature = "remote")]
mod service;
#[cfg(feature = "taskbank")]
mod taskbank;
mod validate;
mod verify;
#[cfg(feature = "remote")]
mod web;
mod yaml;

pub use corpus::{Case, Corpus, Page, Prompt, PromptSource, Settings, Split, Timestep};
pub use error::EstateError;
pub use forgotten::Forgotten;
#[cfg(feature = "remote")]
pub use host::{Api, Remote, Token};
pub use host::{Host, credential_variable};
pub use identity::Identity;
#[cfg(feature = "remote")]
pub use ingest::{Ingested, ingest};
pub use lock::{LOCK_FILE, Lock, LockedBank, LockedCase, LockedTimestep, default_recipe, is_in_use};
pub use names::printable;
pub use recipe::Recipe;
pub use report::{Finding, Report};
pub use rules::{RULES, Rule, RulePage, rule_pages};
pub use scaffold::{RepoMade, ScaffoldOptions, Scaffolded, scaffold};
#[cfg(feature = "remote")]
pub use service::Service;
#[cfg(feature = "taskbank")]
pub use taskbank::{BANK_FILE, BankMade, split_bank, task_rows, taskbank};
pub use validate::{Watch, validate, validate_only};
pub use verify::{VerifyOptions, verify};
