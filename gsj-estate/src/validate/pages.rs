//! Page files: read once, compared with the same page of the timestep before, held one at a time.

use super::text::{self, Checker, TextFault};
use crate::files;
use crate::report::At;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;

/// Files shorter than this are held and compared byte by byte, longer ones by digest.
const HELD: usize = 128 << 10;

/// What a page file holds: all of it while it is short.
#[derive(Debug)]
pub(super) struct Content {
    buffer: Vec<u8>,
    filled: usize,
    /// Of a long file, made while it was read.
    digest: Option<[u8; 32]>,
}

/// Room for two pages, used for one case after the other.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) now: Content,
    pub(super) before: Content,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { now: Content::new(), before: Content::new() }
    }
}

/// How a page stands to the same page of the timestep before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// The same bytes, or there is no such page.
    Fits,
    Differs(Difference),
}

/// Two pages of one number that are not the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The first sixteen digits of SHA-256, before and now.
    pub(super) digests: [String; 2],
    /// Where they part, when both are short.
    pub(super) at: Option<At>,
    /// What to look for, when it is a difference that an eye does not see.
    pub(super) unseen: Option<&'static str>,
}

impl Content {
    fn new() -> Self {
        Self { buffer: vec![0; HELD], filled: 0, digest: None }
    }

    /// Reads a file in place of what was held; `before` is known to be text. No further than the first fault.
    pub(super) fn load(&mut self, mut file: File, before: Option<&Self>) -> io::Result<Result<Loaded, TextFault>> {
        self.digest = None;
        self.filled = files::fill(&mut file, &mut self.buffer)?;
        if self.filled == HELD {
            let (mut hasher, mut checker) = (Sha256::new(), Checker::default());
            while self.filled > 0 {
                let piece = &self.buffer[..self.filled];
                hasher.update(piece);
                if let Err(fault) = checker.take(piece) {
                    return Ok(Err(fault));
                }
                self.filled = files::fill(&mut file, &mut self.buffer)?;
            }
            if let Err(fault) = checker.end() {
                return Ok(Err(fault));
            }
            self.digest = Some(hasher.finalize().into());
        }
        if before.is_some_and(|before| self.same(before)) {
            return Ok(Ok(Loaded::Fits));
        }
        if self.digest.is_none()
            && let Err(fault) = text::check(self.short())
        {
            return Ok(Err(fault));
        }
        Ok(Ok(before.map_or(Loaded::Fits, |before| Loaded::Differs(self.difference(before)))))
    }

    /// SHA-256 of the whole file.
    pub(super) fn sha256(&self) -> [u8; 32] {
        self.digest.unwrap_or_else(|| Sha256::digest(self.short()).into())
    }

    fn short(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn same(&self, other: &Self) -> bool {
        self.digest == other.digest && (self.digest.is_some() || self.short() == other.short())
    }

    fn difference(&self, before: &Self) -> Difference {
        let digests = [before, self].map(|content| hex::encode(&content.sha256()[..8]));
        if self.digest.or(before.digest).is_some() {
            return Difference { digests, at: None, unseen: None };
        }
        let (was, is) = (String::from_utf8_lossy(before.short()), String::from_utf8_lossy(self.short()));
        let mut parts = is.len().min(was.len());
        if let Some(first) = is.bytes().zip(was.bytes()).position(|(a, b)| a != b) {
            parts = first;
        }
        while !is.is_char_boundary(parts) {
            parts -= 1;
        }
        let unseen = if was.replace("\r\n", "\n") == is.replace("\r\n", "\n") {
            Some("only the line ends differ, LF and CRLF")
        } else if was.trim_end() == is.trim_end() {
            Some("only blanks and line ends at the end differ")
        } else if was.trim_start_matches('\u{feff}') == is.trim_start_matches('\u{feff}') {
            Some("only the byte order mark differs")
        } else {
            None
        };
        Difference { digests, at: Some(At::of(&is[..parts])), unseen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(bytes: &[u8], before: Option<&Content>) -> (Content, Result<Loaded, TextFault>) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("page");
        std::fs::write(&path, bytes).expect("writes");
        let mut content = Content::new();
        let loaded = content.load(File::open(&path).expect("opens"), before).expect("reads");
        (content, loaded)
    }

    #[test]
    fn short_and_long_pages_are_compared_alike() {
        for length in [0, 1, HELD - 1, HELD, HELD + 1, 3 * HELD] {
            let text = "é\n".repeat(length / 3 + 1);
            let (first, loaded) = load(text.as_bytes(), None);
            assert_eq!(loaded, Ok(Loaded::Fits));
            assert_eq!(first.sha256(), <[u8; 32]>::from(Sha256::digest(text.as_bytes())), "{length}");
            assert_eq!(load(text.as_bytes(), Some(&first)).1, Ok(Loaded::Fits), "{length}");
            let other = format!("{text}x");
            let (_, loaded) = load(other.as_bytes(), Some(&first));
            assert!(matches!(loaded, Ok(Loaded::Differs(_))), "{length}");
            let (_, loaded) = load(&[text.as_bytes(), b"\xff"].concat(), Some(&first));
            let fault = loaded.expect_err("no text");
            assert_eq!((fault.at.line, fault.at.column), (length / 3 + 2, 1), "{length}");
        }
    }

    #[test]
    fn differences_that_no_eye_sees_are_named() {
        let (before, _) = load("## Page\n\nText é\n".as_bytes(), None);
        let differs = |text: &str| match load(text.as_bytes(), Some(&before)).1 {
            Ok(Loaded::Differs(difference)) => (difference.unseen, difference.at.map(|at| (at.line, at.column))),
            other => panic!("{other:?}"),
        };
        assert_eq!(differs("## Page\n\nText ü\n"), (None, Some((3, 6))));
        assert_eq!(
            differs("## Page\r\n\r\nText é\r\n"),
            (Some("only the line ends differ, LF and CRLF"), Some((1, 8)))
        );
        assert_eq!(differs("## Page\n\nText é"), (Some("only blanks and line ends at the end differ"), Some((3, 7))));
        assert_eq!(differs("\u{feff}## Page\n\nText é\n"), (Some("only the byte order mark differs"), Some((1, 1))));
    }
}
