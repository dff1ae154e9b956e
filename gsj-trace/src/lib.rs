#![doc = include_str!("../README.md")]

pub mod canonical;
pub mod engine;
pub mod json;
pub mod outline;
pub mod reconstruct;
#[cfg(feature = "tokenizer")]
pub mod rerender;
pub mod sse;
pub mod stream;
#[cfg(feature = "tokenizer")]
pub mod tokenizer;
pub mod tokens;
pub mod unicode;
