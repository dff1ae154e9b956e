//! The bytes of every id, in one table.

use super::TokenizerError;
use super::document::Step;

/// Ids up to here get a table entry each: ten times the largest vocabulary known, and 200 MB at most.
const MAX_ID: u32 = 1 << 24;

/// Bytes by id.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    blanks_at_start: usize,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    start: u32,
    length: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Piece,
    Added,
    Special,
}

impl Pieces {
    pub(super) fn build(tokenizer: &tokenizers::Tokenizer, steps: &[Step]) -> Result<Self, TokenizerError> {
        let added = tokenizer.get_added_tokens_decoder();
        let vocabulary = tokenizer.get_vocab(false);
        let largest = vocabulary.values().chain(added.keys()).copied().max().unwrap_or(0);
        if largest > MAX_ID {
            return Err(TokenizerError::Sparse { id: largest, limit: MAX_ID });
        }
        let mut this = Self { bytes: Vec::new(), entries: Vec::new(), blanks_at_start: 0 };
        this.entries.resize(largest as usize + 1, Entry::default());
        for step in steps {
            if let Step::StripStart(blanks) = step {
                this.blanks_at_start = *blanks;
            }
        }
        let alphabet = byte_alphabet();
        // The order of a hash map is not the table's: each entry goes to its own id.
        for (piece, id) in vocabulary {
            if !added.contains_key(&id) {
                this.put(id, &bytes_of(piece, steps, &alphabet), Kind::Piece)?;
            }
        }
        for (id, token) in added {
            let kind = if token.special { Kind::Special } else { Kind::Added };
            // Gemma adds runs of U+2581 that stand for blanks. The byte alphabet is not for added tokens: their letters
            // are the text's own.
            let spelled = steps.contains(&Step::ByteLevel);
            let bytes = if spelled { token.content.into_bytes() } else { bytes_of(token.content, steps, &alphabet) };
            this.put(id, &bytes, kind)?;
        }
        Ok(this)
    }

    fn put(&mut self, id: u32, bytes: &[u8], kind: Kind) -> Result<(), TokenizerError> {
        let too_large = || TokenizerError::Read { reason: "its vocabulary has more than 4 GiB of text".to_owned() };
        let start = u32::try_from(self.bytes.len()).map_err(|_| too_large())?;
        let length = u32::try_from(bytes.len()).map_err(|_| too_large())?;
        if let Some(entry) = self.entries.get_mut(id as usize) {
            self.bytes.extend_from_slice(bytes);
            *entry = Entry { start, length, kind };
        }
        Ok(())
    }

    fn entry(&self, id: u32) -> Option<Entry> {
        self.entries.get(id as usize).copied().filter(|entry| entry.kind != Kind::Unknown)
    }

    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let entry = self.entry(id)?;
        self.bytes.get(entry.start as usize..)?.get(..entry.length as usize)
    }

    pub(super) fn is_special(&self, id: u32) -> bool {
        self.entry(id).is_some_and(|entry| entry.kind == Kind::Special)
    }

    pub(super) fn is_added(&self, id: u32) -> bool {
        self.entry(id).is_some_and(|entry| matches!(entry.kind, Kind::Special | Kind::Added))
    }

    /// Blanks that decoding takes away at the start of a text.
    pub(super) fn blanks_at_start(&self) -> usize {
        self.blanks_at_start
    }
}

/// Follows the decoder for one piece.
fn bytes_of(piece: String, steps: &[Step], alphabet: &[Option<u8>]) -> Vec<u8> {
    let mut text = piece;
    for step in steps {
        match step {
            Step::Replace { from, to } => {
                if text.contains(from) {
                    text = text.replace(from, to);
                }
            }
            Step::ByteFallback => {
                if let Some(byte) = fallback(&text) {
                    return vec![byte];
                }
            }
            // A piece with one letter that is not of the alphabet stands for itself, as in the library.
            Step::ByteLevel => {
                let letter = |c: char| alphabet.get(c as usize).copied().flatten();
                return text.chars().map(letter).collect::<Option<_>>().unwrap_or_else(|| text.into_bytes());
            }
            Step::StripStart(_) => {}
        }
    }
    text.into_bytes()
}

/// The byte of `<0x0A>`.
fn fallback(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let plain = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The bytes that letters of byte-level vocabularies stand for, by code point: printable Latin-1 for itself, every
/// other byte, in order, for a letter from U+0100 on.
fn byte_alphabet() -> Vec<Option<u8>> {
    let mut table = vec![None; 0x200];
    let mut next = 0x100;
    for byte in 0..=u8::MAX {
        let own = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let letter = if own { usize::from(byte) } else { next };
        next += usize::from(!own);
        if let Some(entry) = table.get_mut(letter) {
            *entry = Some(byte);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_has_each_byte_once() {
        let mut bytes: Vec<u8> = byte_alphabet().into_iter().flatten().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_alphabet()[0x120], Some(b' '));
        assert_eq!(byte_alphabet()[0x10a], Some(b'\n'));
    }

    #[test]
    fn a_piece_is_followed_through_the_decoder() {
        let alphabet = byte_alphabet();
        let bytes = |piece: &str, steps: &[Step]| bytes_of(piece.to_owned(), steps, &alphabet);
        assert_eq!(bytes("\u{120}\u{e9}", &[Step::ByteLevel]), [b' ', 0xe9], "a part of a character");
        assert_eq!(bytes("\u{120}漢", &[Step::ByteLevel]), "\u{120}漢".as_bytes());
        let pieces = [Step::Replace { from: "▁".to_owned(), to: " ".to_owned() }, Step::ByteFallback];
        assert_eq!(bytes("▁the", &pieces), b" the");
        assert_eq!(bytes("<0x0A>", &pieces), b"\n");
        assert_eq!(bytes("<0xg0>", &pieces), b"<0xg0>");
    }
}
