//! The service through its routes, and the library through its public functions.

mod independence;
mod light;
mod scope;
mod sources;
mod support;
mod tools;
mod transport;
mod vectors;
