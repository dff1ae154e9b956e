//! The reference profile against the vectors, and laws that hold for any body.

mod laws;
mod vectors;
