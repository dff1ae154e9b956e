//! Sandboxes as they really are: each test starts some and looks from inside and from outside.
#![expect(clippy::print_stderr, reason = "what is skipped, and measured, is said aloud")]

mod ends;
mod host;
mod inside;
mod plain;
mod start;
mod support;
