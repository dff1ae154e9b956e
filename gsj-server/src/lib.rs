#![doc = include_str!("../README.md")]

pub mod agent;
pub mod config;

mod api;
mod clock;
mod error;
mod event;
mod id;
mod pipeline;
mod preflight;
mod request;
mod result;
mod serve;
mod server;
mod shared;
mod split_wall;
mod state;
mod store;

pub use clock::Clock;
pub use error::ServerError;
pub use id::{SessionId, TaskId};
pub use pipeline::{BringUp, BringUpError, BroughtUp, EstateError, bring_up};
pub use serve::serve;
pub use server::{Context, Environment, Running, Server};
pub use state::{SessionState, TaskState};
pub use store::StoreError;
