//! Tests over the crate's public surface.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod cutoffs;
#[cfg(feature = "remote")]
mod forge;
mod forgotten;
mod hostile;
mod interrupted;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "remote")]
mod served;
mod support;
mod surroundings;
#[cfg(feature = "taskbank")]
mod taskbank;
mod vectors;
mod verify;
