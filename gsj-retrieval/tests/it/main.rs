//! The service through its routes, and the library through its public functions.

#[cfg(feature = "config")]
mod config;
mod embed;
mod embed_faults;
mod fake_endpoint;
mod independence;
mod judged;
mod kills;
mod light;
mod limits;
mod minilm;
mod parallel;
mod ranking;
mod reindex;
mod scope;
mod sources;
mod store;
mod support;
mod tools;
mod transport;
mod vectors;
