//! The strict profile: what it adds, and that it takes nothing away.

mod agents;
pub(crate) mod body;
mod built;
mod defects;
mod forks;
mod later;
mod mutations;
mod pins;
mod recorded;
