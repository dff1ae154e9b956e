//! The reader, the writers and the hashes against the vectors.

mod canonical;
mod dependencies;
mod continuity;
mod engine;
#[cfg(feature = "tokenizer")]
mod jinja;
mod laws;
mod reconstruct;
#[cfg(feature = "tokenizer")]
mod rerender;
#[cfg(feature = "tokenizer")]
mod tokenizer;
mod toy;
mod vectors;
