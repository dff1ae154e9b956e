#![cfg_attr(all(feature = "git", feature = "tokens"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "git", feature = "tokens")),
    doc = "The wall: truncated git checkouts, audits, scoped tokens."
)]

#[cfg(feature = "tokens")]
pub mod tokens;
