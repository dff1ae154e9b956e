#![doc = include_str!("../README.md")]

mod answer;
mod call;
mod clock;
mod downstream;
pub mod engine;
mod failure;
mod key;
mod log;
mod merged;
mod prepare;
mod record;
#[cfg(feature = "scripted-engine")]
pub mod scripted;
mod session;
mod tail;

pub use clock::Clock;
pub use engine::{ApiKey, Engine, EngineError, EngineIdentity, EngineKind, EngineOptions, Sampling};
pub use failure::{FailureKind, SessionFailure};
pub use session::{CallLimits, Recorded, Session, SessionError, SessionOptions};
pub use tail::GenerationTail;
