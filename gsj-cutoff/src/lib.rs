#![cfg_attr(all(feature = "git", feature = "tokens"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "git", feature = "tokens")),
    doc = "The wall: truncated git checkouts, audits, scoped tokens."
)]

#[cfg(feature = "audit")]
mod audit;
#[cfg(feature = "git")]
mod checkout;
#[cfg(feature = "audit")]
mod closure;
#[cfg(feature = "git")]
mod cut;
#[cfg(feature = "audit")]
mod error;
#[cfg(feature = "audit")]
mod evidence;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "audit")]
mod files;
#[cfg(feature = "fetch")]
mod git_program;
#[cfg(feature = "audit")]
mod limits;
#[cfg(feature = "audit")]
mod lookup;
#[cfg(feature = "audit")]
mod loose;
#[cfg(feature = "fetch")]
mod mirror;
#[cfg(feature = "audit")]
mod names;
#[cfg(feature = "audit")]
mod objects;
#[cfg(feature = "audit")]
mod pack;
#[cfg(feature = "git")]
mod pack_copy;
#[cfg(feature = "git")]
mod pack_write;
#[cfg(feature = "git")]
mod patch_id;
#[cfg(feature = "git")]
mod plan;
pub mod scan;
#[cfg(feature = "audit")]
mod source;
#[cfg(feature = "tokens")]
pub mod tokens;
#[cfg(feature = "git")]
mod write;

#[cfg(feature = "audit")]
pub use audit::{Audit, Expectation, Leak, audit};
#[cfg(feature = "git")]
pub use checkout::{CheckoutRequest, checkout};
#[cfg(feature = "git")]
pub use cut::{Cut, CutReport, CutRequest, Deny, Submodule, Submodules, cut, parse_date};
#[cfg(feature = "audit")]
pub use error::CutoffError;
#[cfg(feature = "audit")]
pub use evidence::{Evidence, History, LaterDated, ObjectSet, PageCensus, without_credentials};
#[cfg(feature = "fetch")]
pub use fetch::{Credential, FetchRefs, FetchRequest, fetch};
#[cfg(feature = "audit")]
pub use files::{BranchFile, branch_files};
#[cfg(feature = "fetch")]
pub use git_program::{GitProgram, GitRun};
#[cfg(feature = "fetch")]
pub use mirror::{MirrorRequest, mirror};
#[cfg(feature = "git")]
pub use pack_write::PackWriter;
