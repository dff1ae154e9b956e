//! The reference profile against the vectors, the strict one against the defects, and laws that hold for any body.

mod laws;
mod near_clean;
mod packed;
mod pages;
mod strict;
mod vectors;
