#![doc = include_str!("../README.md")]

mod approved;
pub mod derive;
mod error;
mod key;
mod pins;
mod whole;

pub use approved::Approved;
pub use error::PinsError;
pub use key::Key;
pub use pins::Pins;
