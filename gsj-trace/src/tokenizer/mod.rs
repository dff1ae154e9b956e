//! A `tokenizer.json`, exactly: what each id says, and which ids a text is.
//!
//! Reads byte-level vocabularies (GPT-2's byte alphabet: Qwen, Llama 3, SmolLM2) and SentencePiece-like ones (metaspace,
//! byte fallback: Llama 2, Gemma). Others are refused, because the bytes of one id are not defined there.

mod document;
mod error;
mod pieces;
mod runs;

pub use error::TokenizerError;
pub use runs::MAX_RUN;

use crate::canonical::git_blob_sha1;
use crate::tokens::TokenText;
use pieces::Pieces;

/// A tokenizer and the bytes behind each of its ids.
///
/// ```
/// use gsj_trace::tokenizer::Tokenizer;
/// use gsj_trace::tokens::TokenText;
///
/// let file = br#"{"version": "1.0", "added_tokens": [{"id": 3, "content": "<|end|>", "single_word": false,
///     "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
///     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
///     "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
///     "model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "\u0120": 2}, "merges": []}}"#;
/// let tokenizer = Tokenizer::from_bytes(file)?;
/// assert_eq!(tokenizer.encode("hi hi<|end|>")?, [0, 1, 2, 0, 1, 3]);
/// assert_eq!(tokenizer.bytes(2), Some(&b" "[..]), "the byte alphabet writes a blank as \u{120}");
/// assert!(tokenizer.is_control(3));
/// # Ok::<(), gsj_trace::tokenizer::TokenizerError>(())
/// ```
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    pieces: Pieces,
    identity: String,
}

impl Tokenizer {
    /// Reads the bytes of a `tokenizer.json`. Truncation and padding that it asks for are switched off.
    ///
    /// # Errors
    /// When the file is not one, or its decoder does not say what the bytes of one id are.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenizerError> {
        let document = document::read(bytes)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| TokenizerError::Read { reason: error.to_string() })?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| TokenizerError::Read { reason: error.to_string() })?;
        let pieces = Pieces::build(&inner, &document::steps(&document)?)?;
        Ok(Self { inner, pieces, identity: git_blob_sha1(bytes) })
    }

    /// The ids of a text. Added tokens in the text are recognised; nothing is put before or after it.
    ///
    /// # Errors
    /// When one run of characters of a kind is longer than [`MAX_RUN`]: the patterns that cut a text go back and forth
    /// over such a run, and pattern engines are known to cut it differently, or to give up on it without an error.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        runs::check(text)?;
        let encoding = self
            .inner
            .encode_fast(text, false)
            .map_err(|error| TokenizerError::Encode { reason: error.to_string() })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of ids, special tokens included; bytes that are no UTF-8 become U+FFFD, unknown ids nothing.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes = self.decode_bytes(ids);
        let text = String::from_utf8_lossy(&bytes);
        match self.pieces.blanks_at_start() {
            0 => text.into_owned(),
            limit => {
                let blanks = text.bytes().take(limit).take_while(|byte| *byte == b' ').count();
                text.get(blanks..).unwrap_or_default().to_owned()
            }
        }
    }

    /// The bytes of ids, one after the other; unknown ids have none. Of a SentencePiece-like vocabulary this includes
    /// the blank before the first word that [`Tokenizer::decode`] takes away.
    pub fn decode_bytes(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter().filter_map(|id| self.pieces.get(*id)).flatten().copied().collect()
    }

    /// The id of an added token or a piece of the vocabulary, by its spelling in the file.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Whether an id is an added token, special or not: never merged with the text around it.
    pub fn is_added(&self, id: u32) -> bool {
        self.pieces.is_added(id)
    }
}

impl TokenText for Tokenizer {
    fn bytes(&self, id: u32) -> Option<&[u8]> {
        self.pieces.get(id)
    }

    fn is_control(&self, id: u32) -> bool {
        self.pieces.is_special(id)
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("identity", &self.identity).finish_non_exhaustive()
    }
}
