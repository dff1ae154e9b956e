//! The reader, the writers and the hashes against the vectors.

mod canonical;
mod engine;
mod laws;
mod reconstruct;
mod vectors;
