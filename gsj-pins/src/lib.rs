#![doc = include_str!("../README.md")]

mod approved;
pub mod derive;
mod error;
mod key;
mod optional;
mod pins;
mod whole;

pub use approved::Approved;
pub use error::PinsError;
pub use key::Key;
pub use optional::SkillCards;
pub use pins::Pins;
