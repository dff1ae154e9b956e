#![doc = include_str!("../README.md")]

pub mod canonical;
pub mod engine;
pub mod json;
pub mod outline;
pub mod reconstruct;
pub mod sse;
pub mod stream;
pub mod tokens;
