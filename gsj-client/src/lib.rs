#![doc = include_str!("../README.md")]

pub mod blocking;
mod client;
mod collect;
mod error;
mod http;
mod raw;
mod task;

pub use client::Client;
pub use collect::{Collected, Failed, Item, Rejected};
pub use error::{ClientError, ConnectError, FieldError};
pub use gsj_checks::{Policy, Profile};
pub use gsj_pins::Pins;
pub use http::ClientOptions;
pub use task::{
    AgentSpec, BuilderSpec, Environment, RawResult, ServerStatus, SessionSummary, Stage, SubmitAnswer, TaskRequest,
    TaskState, TaskStatus,
};
