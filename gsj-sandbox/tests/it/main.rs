//! Sandboxes as they really are: each test starts some and looks from inside and from outside.

mod ends;
mod host;
mod inside;
mod plain;
mod start;
mod support;
