//! What token ids say: the text behind an id, without depending on any tokenizer.

/// The vocabulary of one tokenizer, as far as comparing contexts needs it.
///
/// Reconstruction works with ids; it asks for their text only where ids differ. A control token (`<|im_end|>` and the
/// like) is not its text: the same characters typed by a user are other tokens, and mean something else.
///
/// ```
/// use gsj_trace::tokens::TokenText;
///
/// /// Every id is one byte; 256 is the end of a turn.
/// #[derive(Debug)]
/// struct Bytes(Vec<u8>);
///
/// impl TokenText for Bytes {
///     fn bytes(&self, id: u32) -> Option<&[u8]> {
///         match usize::try_from(id).ok()? {
///             256 => Some(b"<|end|>"),
///             at => self.0.get(at..=at),
///         }
///     }
///     fn is_control(&self, id: u32) -> bool {
///         id == 256
///     }
///     fn identity(&self) -> &str {
///         "bytes"
///     }
/// }
///
/// let tokens = Bytes((0..=255).collect());
/// assert_eq!(tokens.bytes(104), Some(&b"h"[..]));
/// assert_eq!(tokens.bytes(257), None);
/// ```
pub trait TokenText: std::fmt::Debug + Send + Sync {
    /// The bytes that an id decodes to, of a control token its own spelling; `None` when the id is not in the
    /// vocabulary. One id may hold only a part of a character.
    fn bytes(&self, id: u32) -> Option<&[u8]>;

    /// Whether an id is a special token, which means something other than its text.
    fn is_control(&self, id: u32) -> bool;

    /// What the vocabulary is known by: the git blob id of its `tokenizer.json`.
    fn identity(&self) -> &str;
}
