//! The signing secret.

use super::TokenError;
use std::fmt;

/// A signing secret of at least 32 bytes. It has no way out: no `Display`, a `Debug` that shows nothing, no accessor.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The shortest secret that is taken, in bytes: as long as the digest (RFC 7518, section 3.2).
    pub const MINIMUM_BYTES: usize = 32;

    /// Takes a secret.
    ///
    /// # Errors
    /// Refuses fewer than [`Self::MINIMUM_BYTES`] bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, TokenError> {
        if bytes.len() < Self::MINIMUM_BYTES {
            return Err(TokenError::SecretTooShort { length: bytes.len(), minimum: Self::MINIMUM_BYTES });
        }
        Ok(Self(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_refused_with_both_numbers() {
        let error = Secret::new(vec![7; 31]).expect_err("31 bytes");
        assert_eq!(error, TokenError::SecretTooShort { length: 31, minimum: 32 });
        assert!(Secret::new(vec![7; 32]).is_ok());
    }
}
