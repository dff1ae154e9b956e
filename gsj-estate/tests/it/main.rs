//! Tests over the crate's public surface.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod bounds;
mod contract;
mod cutoffs;
#[cfg(feature = "remote")]
mod forge;
mod forgotten;
mod hostile;
mod interrupted;
#[cfg(feature = "remote")]
mod remote;
mod rules;
#[cfg(feature = "remote")]
mod served;
mod support;
mod surroundings;
#[cfg(feature = "taskbank")]
mod taskbank;
mod vectors;
mod verify;
mod watch;
