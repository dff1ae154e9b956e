//! What a validator says.

use gsj_trace::json::ReadError;

/// Why a body is no body (`checks.md` section 1.4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The bytes are not JSON in the lenient sense.
    #[error("the body is not JSON: {0}")]
    InvalidJson(ReadError),
    /// Too many containers inside each other.
    #[error("the body is {0}")]
    TooDeep(ReadError),
    /// JSON, but not an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
}

impl Unreadable {
    /// The stable code: `invalid_json`, `too_deep` or `not_an_object`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "invalid_json",
            Self::TooDeep(_) => "too_deep",
            Self::NotAnObject => "not_an_object",
        }
    }
}

impl From<ReadError> for Unreadable {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooDeep { .. } => Self::TooDeep(error),
            _ => Self::InvalidJson(error),
        }
    }
}

/// The answer for one body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The body's `session_id`, when it is a string.
    pub session_id: Option<String>,
    /// What is wrong, in the order of `checks.md` sections 8 and 13.1.
    pub findings: Vec<String>,
    /// Set when there was no body to judge; then there are no findings.
    pub unreadable: Option<Unreadable>,
}

impl Verdict {
    /// Whether the body was read and nothing was found.
    pub fn accepted(&self) -> bool {
        self.unreadable.is_none() && self.findings.is_empty()
    }

    pub(crate) fn unreadable(reason: impl Into<Unreadable>) -> Self {
        Self { unreadable: Some(reason.into()), ..Self::default() }
    }
}
