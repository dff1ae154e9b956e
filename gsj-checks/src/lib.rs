#![doc = include_str!("../README.md")]

mod catalogue;
mod gates;
mod messages;
mod patterns;
mod policy;
mod rules;
mod trace;
mod validate;
mod verdict;

pub use catalogue::{FINDINGS, FindingKind};
pub use gates::{Gate, gates};
pub use gsj_pins::{Pins, PinsError};
pub use policy::{Policy, PolicyError, Profile};
pub use validate::{validate, validate_parsed};
pub use verdict::{Unreadable, Verdict};
