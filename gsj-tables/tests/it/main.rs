//! The task bank: what is written is what is read, here and by others, and nothing that is read does harm.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test ends where something is not as it should be")]

mod diff;
mod hostile;
mod python;
mod round_trip;
mod support;
mod tokens;
mod vectors;
