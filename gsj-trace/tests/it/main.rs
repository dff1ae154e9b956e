//! The reader, the writers and the hashes against the vectors.

mod canonical;
mod continuity;
mod dependencies;
mod engine;
mod faults;
#[cfg(feature = "tokenizer")]
mod jinja;
mod laws;
mod merging_laws;
mod reconstruct;
#[cfg(feature = "tokenizer")]
mod rerender;
#[cfg(feature = "tokenizer")]
mod tokenized;
#[cfg(feature = "tokenizer")]
mod tokenizer;
mod toy;
mod vectors;
