#![doc = include_str!("../README.md")]

mod bwrap;
mod error;
mod handshake;
mod info;
mod init;
mod launcher;
mod ledger;
mod orphans;
mod places;
mod plain;
mod probe;
mod process;
mod processes;
mod running;
mod seccomp;
mod spec;
mod supervisor;
mod tree;
mod wire;

pub use error::SandboxError;
pub use info::{BackendInfo, Exit, Measured, SandboxInfo};
pub use init::init_main;
pub use launcher::{Launcher, LauncherOptions};
pub use ledger::{Reaped, reap};
pub use orphans::become_subreaper;
pub use probe::{ProbeOptions, probe};
pub use running::Running;
pub use spec::{Backend, DEFAULT_UID, InitProgram, Label, Limits, Mount, SmallFile, Spec, Tmpfs};
pub use tree::remove_tree;
