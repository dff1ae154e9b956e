#![doc = include_str!("../README.md")]

mod catalogue;
mod finding_pages;
mod gates;
mod later;
mod many;
mod messages;
mod patterns;
mod policy;
mod profile;
mod rules;
mod strict;
mod trace;
mod validate;
mod verdict;

pub use catalogue::{FINDINGS, FindingKind, Origin};
pub use finding_pages::{FindingPage, finding_pages};
pub use gates::{Gate, gates};
pub use gsj_pins::{Pins, PinsError};
pub use later::LaterText;
pub use many::{map_many, validate_many};
pub use policy::{Policy, PolicyError};
pub use profile::Profile;
pub use validate::{validate, validate_parsed, validate_parsed_with, validate_with};
pub use verdict::{Unreadable, Verdict};
