//! What can be wrong with a token or a secret.

/// Why a token or a secret was refused. No variant holds a part of either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The signing secret is too short for HMAC-SHA-256.
    #[error("token secret holds {length} bytes, at least {minimum} are needed (make one: `openssl rand -hex 32`)")]
    SecretTooShort {
        /// Bytes given.
        length: usize,
        /// Bytes needed.
        minimum: usize,
    },
    /// There was no secret to verify against.
    #[error("no token secret is configured")]
    NoSecret,
    /// The signer refused the key.
    #[error("token cannot be signed")]
    Sign,
    /// The token is not three canonical base64url parts holding JSON objects without repeated names.
    #[error("token is malformed: {what}")]
    Malformed {
        /// Which part, and what is wrong with it.
        what: &'static str,
    },
    /// The header names another algorithm than HS256, or an extension that is not understood.
    #[error("token header is refused: {what}")]
    Header {
        /// What is wrong with the header.
        what: &'static str,
    },
    /// No configured secret gives this signature.
    #[error("token signature does not verify")]
    Signature,
    /// `exp` has passed.
    #[error("token expired at {exp}, it is {now} now")]
    Expired {
        /// The claim, seconds since 1970.
        exp: i64,
        /// The verifier's clock.
        now: i64,
    },
    /// One of the registered claims (`exp`, `iat`, `nbf`, `aud`, `sub`, `jti`) has no acceptable form.
    #[error("token claim `{name}` {problem}")]
    Registered {
        /// The claim's name.
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// One of gsj's own claims is missing or of the wrong kind.
    #[error("token claim `{name}` {problem}")]
    Claim {
        /// The claim's name.
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// `timestep` is an integer, but no page can have that number.
    #[error("token claim `timestep` is {timestep}, which no page can have")]
    TimestepRange {
        /// The claim.
        timestep: i64,
    },
}

/// The short reason of a refusal, for logs and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// The token's time is over.
    Expired,
    /// Form, signature, algorithm or a registered claim.
    Invalid,
    /// A claim of ours.
    Claims,
    /// `timestep` out of range.
    BadTimestep,
}

impl Reason {
    /// The reason as one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Invalid => "invalid",
            Self::Claims => "claims",
            Self::BadTimestep => "bad_timestep",
        }
    }
}

impl TokenError {
    /// Gives the short reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Expired { .. } => Reason::Expired,
            Self::Claim { .. } => Reason::Claims,
            Self::TimestepRange { .. } => Reason::BadTimestep,
            Self::SecretTooShort { .. }
            | Self::NoSecret
            | Self::Sign
            | Self::Malformed { .. }
            | Self::Header { .. }
            | Self::Signature
            | Self::Registered { .. } => Reason::Invalid,
        }
    }
}
