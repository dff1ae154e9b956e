//! What can be wrong with a tokenizer or a text given to it.

use super::runs::MAX_RUN;
use crate::json::ReadError;

/// Why a `tokenizer.json` or a text cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file is not JSON.
    #[error("read tokenizer.json")]
    Json {
        /// What is wrong, and where.
        #[source]
        source: ReadError,
    },
    /// The file is JSON, but holds what strict readers refuse.
    #[error("read tokenizer.json: it holds {what}, which is no standard JSON")]
    Lenient {
        /// What was met.
        what: &'static str,
    },
    /// The tokenizer library does not take the file.
    #[error("read tokenizer.json: {reason}")]
    Read {
        /// What the library says.
        reason: String,
    },
    /// The decoder does not say which bytes one id stands for.
    #[error(
        "read tokenizer.json: its decoder {decoder} does not give each id bytes of its own; byte-level and \
         SentencePiece-like tokenizers do"
    )]
    Decoder {
        /// The decoder, or the step of it, that cannot be followed.
        decoder: String,
    },
    /// The model drops merges at random.
    #[error("read tokenizer.json: it asks for random merges (model.dropout); set it to null")]
    Dropout,
    /// An id is too large for a table of all ids.
    #[error("read tokenizer.json: it has the id {id}; ids up to {limit} can be held")]
    Sparse {
        /// The largest id.
        id: u32,
        /// What would still do.
        limit: u32,
    },
    /// A text has a run that the pattern engine cannot be trusted with.
    #[error("the text has {length} {kind} in a row from byte {at} on; up to {MAX_RUN} can be tokenized exactly")]
    RunTooLong {
        /// Where the run begins, in bytes.
        at: usize,
        /// Its length in characters.
        length: usize,
        /// What it is made of, in the plural.
        kind: &'static str,
    },
    /// The tokenizer library cannot encode a text.
    #[error("tokenize a text: {reason}")]
    Encode {
        /// What the library says.
        reason: String,
    },
}
