//! The four conventions by which artifacts are named (`checks.md` section 4).

use std::fmt;
use std::str::FromStr;

use gsj_trace::canonical::{bytes_sha256, canonical_text, git_blob_sha1, text_sha256};
use gsj_trace::json::{ReadError, Value};

/// How the digest of an artifact is made. All digests are lower-case hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convention {
    /// SHA-256 of the exact UTF-8 text: system prompts, skill cards.
    Text,
    /// SHA-256 of the canonical text of a JSON document: tool rosters, settings.
    CanonicalJson,
    /// The id that git gives a blob (SHA-1): a `tokenizer.json`.
    GitBlob,
    /// SHA-256 of the exact bytes of the template that the engine is started with.
    ChatTemplate,
}

/// Why a file has no digest by a convention, apart from being unhashable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// Only JSON has a canonical text.
    #[error("it is not JSON: {0}")]
    NotJson(#[source] ReadError),
}

impl Convention {
    /// All conventions.
    pub const ALL: [Self; 4] = [Self::Text, Self::CanonicalJson, Self::GitBlob, Self::ChatTemplate];

    /// The convention's name: `text`, `canonical-json`, `git-blob` or `chat-template`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::CanonicalJson => "canonical-json",
            Self::GitBlob => "git-blob",
            Self::ChatTemplate => "chat-template",
        }
    }

    /// The digest of a file's bytes; `None` when they are unhashable (text that is no UTF-8, or JSON that holds NaN, an
    /// infinity or a lone surrogate).
    ///
    /// # Errors
    /// [`HashError::NotJson`].
    pub fn digest(self, bytes: &[u8]) -> Result<Option<String>, HashError> {
        Ok(match self {
            Self::Text => std::str::from_utf8(bytes).ok().map(text_sha256),
            Self::CanonicalJson => canonical(bytes)?.map(|text| text_sha256(&text)),
            Self::GitBlob => Some(git_blob_sha1(bytes)),
            Self::ChatTemplate => Some(bytes_sha256(bytes)),
        })
    }
}

/// The canonical text of a JSON document; `None` when it has none.
///
/// # Errors
/// [`HashError::NotJson`].
pub fn canonical(bytes: &[u8]) -> Result<Option<String>, HashError> {
    let value = Value::parse(bytes).map_err(HashError::NotJson)?;
    Ok(canonical_text(value.as_ref()))
}

impl FromStr for Convention {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|convention| convention.name() == name)
            .ok_or_else(|| format!("there is no convention `{name}`; there are {}", names()))
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_convention_has_its_own_digest() {
        let of = |convention: Convention, bytes: &[u8]| convention.digest(bytes).expect("json").expect("hashable");
        assert_eq!(of(Convention::GitBlob, b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(
            of(Convention::Text, b"hello\n"),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        );
        assert_eq!(of(Convention::Text, b"hello\n"), of(Convention::ChatTemplate, b"hello\n"));
        assert_eq!(
            of(Convention::CanonicalJson, b" {\"compaction\": {\"enabled\": false}}\n"),
            "dae8948524be8253e04c4174632477e0333adc0323e791a6e54ace3b31004d20"
        );
    }

    #[test]
    fn what_cannot_be_hashed_has_no_digest() {
        assert_eq!(Convention::Text.digest(b"\xff"), Ok(None));
        assert_eq!(Convention::CanonicalJson.digest(b"[NaN]"), Ok(None));
        assert!(Convention::ChatTemplate.digest(b"\xff").is_ok_and(|digest| digest.is_some()), "bytes are bytes");
        assert!(matches!(Convention::CanonicalJson.digest(b"{"), Err(HashError::NotJson(_))));
    }

    #[test]
    fn names_go_both_ways() {
        for convention in Convention::ALL {
            assert_eq!(convention.name().parse(), Ok(convention));
        }
        assert!("md5".parse::<Convention>().is_err_and(|error| error.contains("canonical-json")));
    }
}
