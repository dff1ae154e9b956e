#![doc = include_str!("../README.md")]

mod approved;
mod artifact;
pub mod derive;
pub mod diff;
mod error;
pub mod hash;
mod inventory;
mod key;
mod optional;
mod pins;
mod set;
pub mod verify;
mod whole;

pub use approved::Approved;
pub use error::PinsError;
pub use inventory::{Pinned, Source};
pub use key::Key;
pub use optional::SkillCards;
pub use pins::Pins;
pub use set::Set;
