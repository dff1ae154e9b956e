//! Tests over the crate's public surface.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod cutoffs;
mod hostile;
mod support;
#[cfg(feature = "taskbank")]
mod taskbank;
mod vectors;
