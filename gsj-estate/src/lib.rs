#![doc = include_str!("../README.md")]

mod corpus;
mod error;
mod files;
mod identity;
mod lock;
mod names;
mod report;
mod repository;
mod scaffold;
#[cfg(feature = "taskbank")]
mod taskbank;
mod validate;
mod yaml;

pub use corpus::{Case, Corpus, Page, Prompt, PromptSource, Settings, Split, Timestep};
pub use error::EstateError;
pub use identity::Identity;
pub use lock::{LOCK_FILE, Lock, LockedBank, LockedCase, LockedTimestep, default_recipe};
pub use report::{Finding, Report};
pub use scaffold::{Recipe, RepoMade, ScaffoldOptions, Scaffolded, scaffold};
#[cfg(feature = "taskbank")]
pub use taskbank::{BANK_FILE, BankMade, split_bank, task_rows, taskbank};
pub use validate::{validate, validate_only};
