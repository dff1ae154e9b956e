//! The gateway with an engine behind it and an agent before it, over real sockets.

mod combinations;
mod faults;
mod limits;
mod scripted;
mod secrets;
mod streaming;
mod support;
