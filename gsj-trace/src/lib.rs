//! What a trace is: lenient JSON in, canonical JSON out, one trajectory from many completions.

pub mod canonical;
pub mod json;
