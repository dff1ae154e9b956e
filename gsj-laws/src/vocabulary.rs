//! A vocabulary of a few tokens in which the same text has several spellings.

use std::sync::Arc;

use gsj_trace::tokens::TokenText;

/// Single letters are 0 to 25, pairs of neighbours ("ab", "bc", ..) 26 to 51.
pub(crate) const LETTERS: u32 = 26;
pub(crate) const SPACE: u32 = 52;
pub(crate) const NEWLINE: u32 = 53;
pub(crate) const THINK: u32 = 54;
pub(crate) const THOUGHT: u32 = 55;
/// Ends a turn; a control token, as is [`START`].
pub(crate) const END: u32 = 56;
pub(crate) const START: u32 = 57;
const TEXTS: [&[u8]; 9] =
    [b" ", b"\n", b"<think>", b"</think>", b"<|im_end|>", b"<|im_start|>", b"\n\n", &[0xf0, 0x9f], &[0x98, 0x80]];
/// How many ids say something; the next one is in no vocabulary.
pub(crate) const SIZE: u32 = SPACE + TEXTS.len() as u32;

/// See the constants of this module.
#[derive(Debug)]
struct Vocabulary(Vec<Vec<u8>>);

pub(crate) fn vocabulary() -> Arc<dyn TokenText> {
    let letters = (b'a'..=b'z').map(|letter| vec![letter]);
    let pairs = (b'a'..=b'z').map(|letter| vec![letter, if letter == b'z' { b'a' } else { letter + 1 }]);
    Arc::new(Vocabulary(letters.chain(pairs).chain(TEXTS.map(<[u8]>::to_vec)).collect()))
}

impl TokenText for Vocabulary {
    fn bytes(&self, id: u32) -> Option<&[u8]> {
        self.0.get(usize::try_from(id).ok()?).map(Vec::as_slice)
    }

    fn is_control(&self, id: u32) -> bool {
        matches!(id, END | START)
    }

    fn identity(&self) -> &'static str {
        "0123456789abcdef0123456789abcdef01234567"
    }
}

/// What ids say; of an id outside the vocabulary its number.
pub(crate) fn said(tokens: &dyn TokenText, ids: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    for id in ids {
        match tokens.bytes(*id) {
            Some(bytes) => out.extend_from_slice(bytes),
            None => out.extend_from_slice(format!("<{id}>").as_bytes()),
        }
    }
    out
}
