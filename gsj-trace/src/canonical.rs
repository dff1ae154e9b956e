//! The hashing conventions of `checks.md` section 4. All digests are lower-case hex.

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::json::{StrRef, Style, ValueRef, write};

/// The canonical JSON text: no blanks, members by code point order of their keys, floats by
/// [`crate::json::float_text`], nothing escaped that need not be. `None` when the value holds NaN,
/// an infinity or a lone surrogate: it is unhashable.
///
/// ```
/// use gsj_trace::{canonical::canonical_text, json::Value};
/// let value = Value::parse(br#"{"b": 1e2, "a": -0}"#)?;
/// assert_eq!(canonical_text(value.as_ref()).as_deref(), Some(r#"{"a":0,"b":100.0}"#));
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
pub fn canonical_text(value: ValueRef<'_>) -> Option<String> {
    let mut out = String::new();
    write(value, Style::CANONICAL, &mut out).ok().map(|()| out)
}

/// SHA-256 of the canonical text; `None` when there is none. Identifies tool rosters and settings
/// documents.
pub fn canonical_sha256(value: ValueRef<'_>) -> Option<String> {
    // The tools of a session take about so much.
    let mut text = String::with_capacity(1 << 14);
    write(value, Style::CANONICAL, &mut text).ok().map(|()| text_sha256(&text))
}

/// SHA-256 of the exact text. Identifies system prompts and skill cards.
pub fn text_sha256(text: &str) -> String {
    bytes_sha256(text.as_bytes())
}

/// SHA-256 of a string as JSON carried it; `None` when it holds a lone surrogate.
pub fn str_sha256(text: StrRef<'_>) -> Option<String> {
    text.as_str().map(text_sha256)
}

/// SHA-256 of the exact bytes. Identifies files, a chat template above all.
pub fn bytes_sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The id that git gives a blob with these bytes. Identifies a `tokenizer.json`.
pub fn git_blob_sha1(bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hex::encode(hasher.finalize())
}

/// SHA-256 over token ids as little-endian `u32`, for contexts that grow: the digest of what was added so far can be
/// had at any point, so the hashes of all contexts of a trace cost one walk (`checks.md` section 11.6).
///
/// ```
/// use gsj_trace::canonical::ContextHash;
/// let mut hash = ContextHash::new();
/// hash.add(&[1, 2]);
/// let short = hash.digest();
/// hash.add(&[3]);
/// assert_ne!(short, hash.digest());
/// ```
#[derive(Debug, Clone, Default)]
pub struct ContextHash(Sha256);

impl ContextHash {
    /// Of no ids.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds ids at the end.
    pub fn add(&mut self, ids: &[u32]) {
        let mut bytes = [0; 4 * 256];
        for ids in ids.chunks(256) {
            let bytes = &mut bytes[..4 * ids.len()];
            for (place, id) in bytes.chunks_exact_mut(4).zip(ids) {
                place.copy_from_slice(&id.to_le_bytes());
            }
            self.0.update(bytes);
        }
    }

    /// The digest of the ids so far.
    pub fn digest(&self) -> String {
        hex::encode(self.0.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        assert_eq!(text_sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(git_blob_sha1(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a", "as `git hash-object` says");
    }

    #[test]
    fn a_context_is_hashed_as_little_endian_words_however_it_is_cut() {
        let ids: Vec<u32> = (0..1000).map(|n| n * 70_001).collect();
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let mut hash = ContextHash::new();
        assert_eq!(hash.digest(), bytes_sha256(b""));
        for piece in ids.chunks(7) {
            hash.add(piece);
        }
        assert_eq!(hash.digest(), bytes_sha256(&bytes));
    }
}
