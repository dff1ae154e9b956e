//! The server as its users meet it: over HTTP, with real sandboxes, a real agent and the scripted engine.

mod agent;
mod api;
mod bring_up;
mod ends;
mod episodes;
mod leak;
mod restart;
mod support;
