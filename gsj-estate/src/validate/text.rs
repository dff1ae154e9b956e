//! What every text file of a corpus must be: strict UTF-8 without NUL (`corpus.md` section 2).

use crate::report::At;
use std::fmt;

/// The first thing that makes bytes no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextFault {
    what: What,
    pub(super) at: At,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// A byte that begins or goes on with no character.
    Byte(u8),
    Nul,
    /// The file ends within a character.
    End,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Byte(byte) => write!(f, "is not UTF-8: byte 0x{byte:02X}"),
            What::Nul => write!(f, "holds a NUL byte, which is no text"),
            What::End => write!(f, "is not UTF-8: it ends within a character"),
        }
    }
}

/// Checks a whole text.
pub(super) fn check(bytes: &[u8]) -> Result<&str, TextFault> {
    match std::str::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => Ok(text),
            Some(nul) => Err(TextFault { what: What::Nul, at: At::of(&text[..nul]) }),
        },
        Err(_) => {
            let mut checker = Checker::default();
            Err(checker.take(bytes).and_then(|()| checker.end()).err().unwrap_or_else(|| checker.ends()))
        }
    }
}

/// Checks a text that comes in pieces.
#[derive(Debug)]
pub(super) struct Checker {
    at: At,
    /// The begin of a character at the end of the piece before.
    begun: Vec<u8>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { at: At::START, begun: Vec::new() }
    }
}

impl Checker {
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), TextFault> {
        let joined;
        let bytes = if self.begun.is_empty() {
            piece
        } else {
            joined = [self.begun.as_slice(), piece].concat();
            self.begun.clear();
            &joined
        };
        let (valid, rest, fault) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, &[][..], false),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(valid).unwrap_or_default(), rest, error.error_len().is_some())
            }
        };
        if let Some(nul) = valid.find('\0') {
            return Err(TextFault { what: What::Nul, at: self.at.after(&valid[..nul]) });
        }
        // A CR at the end of a piece may have its LF in the next.
        let (valid, rest) = match bytes.split_last() {
            Some((b'\r', _)) if rest.is_empty() => {
                let (valid, rest) = bytes.split_at(bytes.len() - 1);
                (std::str::from_utf8(valid).unwrap_or_default(), rest)
            }
            _ => (valid, rest),
        };
        self.at = self.at.after(valid);
        match rest.first() {
            Some(byte) if fault => Err(TextFault { what: What::Byte(*byte), at: self.at }),
            _ => {
                self.begun.extend_from_slice(rest);
                Ok(())
            }
        }
    }

    pub(super) fn end(&self) -> Result<(), TextFault> {
        if self.begun.is_empty() || self.begun == b"\r" { Ok(()) } else { Err(self.ends()) }
    }

    fn ends(&self) -> TextFault {
        TextFault { what: What::End, at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(bytes: &[u8]) -> String {
        check(bytes).map_or_else(|fault| format!("{fault} at {}:{}", fault.at.line, fault.at.column), str::to_owned)
    }

    #[test]
    fn faults_have_their_place() {
        assert_eq!(told("\u{feff}é\r\nb".as_bytes()), "\u{feff}é\r\nb");
        assert_eq!(told(b"a\ncaf\xe9\n"), "is not UTF-8: byte 0xE9 at 2:4");
        assert_eq!(told(b"a\rb\r\ncaf\xe9\n"), "is not UTF-8: byte 0xE9 at 3:4");
        assert_eq!(told(b"a\0b"), "holds a NUL byte, which is no text at 1:2");
        assert_eq!(told(b"ab\xc3"), "is not UTF-8: it ends within a character at 1:3");
        for surrogate_or_overlong in [&b"\xed\xa0\x80"[..], b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"\xff"]
        {
            assert!(check(surrogate_or_overlong).is_err());
        }
    }

    proptest! {
        #[test]
        fn pieces_are_judged_as_the_whole(
            bytes in prop::collection::vec(prop::sample::select(vec![b'a', b'\n', b'\r', 0, 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80]), 0..12),
            size in 1_usize..5,
        ) {
            let mut checker = Checker::default();
            let pieces = bytes.chunks(size).try_for_each(|piece| checker.take(piece)).and_then(|()| checker.end());
            prop_assert_eq!(pieces.err(), check(&bytes).err());
        }
    }
}
