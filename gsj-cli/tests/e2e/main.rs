//! End to end: the `gsj` binary as its users run it.
//!
//! Tests with the real agent or a real model say that they were skipped unless `cargo xtask test --all` runs them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test ends where something is not as it should be"
)]

mod bank;
mod checking;
mod cli;
mod clients;
mod crash;
mod demo;
mod estate;
mod githost;
mod isolation;
mod many;
mod near;
mod pins;
mod real_engine;
mod reconstructing;
mod reference;
mod reindex;
mod retrieval;
mod serve;
mod showing;
mod split_wall;
mod support;
mod up;
mod validate;
mod vectors;
