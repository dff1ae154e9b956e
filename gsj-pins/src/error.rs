//! What makes a pins document unusable.

use crate::Key;

/// The approved sets cannot be used: a configuration fault, never a verdict on a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinsError {
    /// There is no usable document.
    #[error(
        "pins `{label}` cannot be used: {reason}; name the estate's pins file with --pins, GSJ_PINS_PATH or checks.pins \
         (`gsj pins derive` makes one; docs/pins.md says what it holds)"
    )]
    Unusable {
        /// Where the document was looked for.
        label: String,
        /// What is wrong with it.
        reason: String,
    },
    /// One approved set is missing or malformed.
    #[error(
        "pins `{label}`: `pins.{key}` {reason}; make the file anew (`gsj pins derive`; docs/pins.md says what it holds) or \
         name another with --pins, GSJ_PINS_PATH or checks.pins"
    )]
    Key {
        /// Where the document came from.
        label: String,
        /// Name of the member below `pins`.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PinsError {
    pub(crate) fn key(label: &str, key: Key, reason: impl Into<String>) -> Self {
        Self::Key { label: label.to_owned(), key: key.name().to_owned(), reason: reason.into() }
    }
}
