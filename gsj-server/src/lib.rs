//! Sessions from queue to result: state, artifacts, rollout API.

pub mod agent;
pub mod config;

mod api;
mod clock;
mod event;
mod id;
mod pipeline;
mod request;
mod result;
mod serve;
mod server;
mod shared;
mod state;
mod store;

pub use clock::Clock;
pub use id::{SessionId, TaskId};
pub use server::{Context, Running, Server, ServerError};
pub use state::{SessionState, TaskState};
pub use store::StoreError;
