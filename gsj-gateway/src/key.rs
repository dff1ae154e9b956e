//! The engine's API key.

use std::borrow::Cow;
use std::fmt;

use reqwest::header::HeaderValue;

use crate::engine::EngineError;

/// An engine's API key: goes into the `Authorization` header and nowhere else.
///
/// It has no `Display`, its `Debug` shows nothing of it, and it cannot be read back.
#[derive(Clone)]
pub struct ApiKey {
    secret: String,
    header: HeaderValue,
}

impl ApiKey {
    /// Takes a key as it stands, surrounding whitespace aside.
    ///
    /// # Errors
    /// [`EngineError::ApiKey`] when it is empty or cannot stand in a header.
    pub fn new(secret: &str) -> Result<Self, EngineError> {
        let secret = secret.trim();
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}")).map_err(|_| EngineError::ApiKey)?;
        if secret.is_empty() {
            return Err(EngineError::ApiKey);
        }
        header.set_sensitive(true);
        Ok(Self { secret: secret.to_owned(), header })
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    #[cfg(feature = "scripted-engine")]
    pub(crate) fn is_bearer(&self, given: &HeaderValue) -> bool {
        // Both sides are of one test or demonstration: timing tells nobody anything.
        given.as_bytes() == self.header.as_bytes()
    }

    /// `text` without the key, should an engine have echoed it.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.contains(&self.secret) {
            Cow::Owned(text.replace(&self.secret, "[api key]"))
        } else {
            Cow::Borrowed(text)
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_key_is_shown() {
        let key = ApiKey::new(" sk-canary-1 \n").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(..)");
        assert!(!format!("{:?}", key.header()).contains("canary"), "the header is sensitive");
        assert_eq!(key.redact("wrong key sk-canary-1!"), "wrong key [api key]!");
        assert!(ApiKey::new("a\nb").is_err(), "a key with a line break cannot be sent");
        assert!(ApiKey::new("  ").is_err(), "an empty key is none");
    }
}
