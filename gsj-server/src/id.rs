//! Names of tasks and sessions.

use std::{fmt, io};

use rand::TryRngCore as _;
use serde::Serialize;

/// The longest task id, in bytes; it is part of URLs and of log lines.
pub(crate) const TASK_ID_MAX: usize = 256;

/// A task's name, as its submitter chose it. The sessions of one task are one group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TaskId(String);

/// A session's name, `ses_` and 32 hex digits, drawn by this server. Never a credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl TaskId {
    /// Takes a name over; `None` when it is empty, longer than 256 bytes or holds a control character.
    pub fn new(name: &str) -> Option<Self> {
        let usable = !name.is_empty() && name.len() <= TASK_ID_MAX && !name.chars().any(char::is_control);
        usable.then(|| Self(name.to_owned()))
    }

    /// Returns the name as it stands on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    /// Draws a fresh name: 128 random bits of the operating system's generator.
    pub(crate) fn draw() -> io::Result<Self> {
        let mut bits = [0_u8; 16];
        rand::rngs::OsRng.try_fill_bytes(&mut bits).map_err(io::Error::other)?;
        Ok(Self(format!("ses_{}", hex::encode(bits))))
    }

    /// Takes over a name that this server wrote earlier; `None` when it could not be one of ours.
    pub(crate) fn stored(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        (starts && rest && name.len() <= 128).then(|| Self(name.to_owned()))
    }

    /// Returns the name as it stands on the wire and in file names.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_names_are_stored_names_and_differ() {
        let (one, two) = (SessionId::draw().expect("random bits"), SessionId::draw().expect("random bits"));
        assert_ne!(one, two, "two draws of 128 bits must differ");
        assert_eq!(SessionId::stored(one.as_str()), Some(one), "a drawn name reads back");
    }

    #[test]
    fn names_that_could_leave_their_folder_are_refused() {
        for name in ["", "../x", "a/b", ".hidden", "a\0"] {
            assert_eq!(SessionId::stored(name), None, "{name:?} must not become a path");
        }
        assert_eq!(TaskId::new(""), None);
        assert_eq!(TaskId::new("a\nb"), None, "a control character would break log lines");
    }
}
