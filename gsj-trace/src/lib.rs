//! What a trace is: lenient JSON in, canonical JSON out, one trajectory from many completions.

pub mod canonical;
pub mod engine;
pub mod json;
pub mod outline;
pub mod reconstruct;
pub mod sse;
pub mod stream;
