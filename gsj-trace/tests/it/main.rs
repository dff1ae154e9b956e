//! The reader, the writers and the hashes against the vectors.

mod canonical;
mod laws;
mod vectors;
