//! The gateway with an engine behind it and an agent before it, over real sockets.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod combinations;
mod faults;
mod fixtures;
mod limits;
mod real;
mod scripted;
mod secrets;
mod streaming;
mod support;
