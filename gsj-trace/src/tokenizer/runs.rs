//! Long runs of one kind of character, which a tokenizer's patterns are not trusted with.

use super::TokenizerError;

/// Characters of one kind that may stand in a row in a text to be tokenized.
pub const MAX_RUN: usize = 100_000;

/// The kinds that tokenizers' patterns tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    Number,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Number,
            ' ' | '\n' => Self::Space,
            _ if c.is_whitespace() => Self::Space,
            _ if c.is_ascii() => Self::Other,
            _ if c.is_alphabetic() => Self::Letter,
            _ if c.is_numeric() => Self::Number,
            _ => Self::Other,
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Space => "blanks",
            Self::Letter => "letters",
            Self::Number => "digits",
            Self::Other => "signs",
        }
    }
}

/// Refuses a text with a run that is too long.
pub(super) fn check(text: &str) -> Result<(), TokenizerError> {
    if text.len() <= MAX_RUN {
        return Ok(());
    }
    let mut run: Option<(Kind, usize, usize)> = None;
    let too_long = |run: Option<(Kind, usize, usize)>| match run {
        Some((kind, at, length)) if length > MAX_RUN => {
            Err(TokenizerError::RunTooLong { at, length, kind: kind.plural() })
        }
        _ => Ok(()),
    };
    for (at, c) in text.char_indices() {
        let kind = Kind::of(c);
        match &mut run {
            Some((of, _, length)) if *of == kind => *length += 1,
            _ => {
                too_long(run)?;
                run = Some((kind, at, 1));
            }
        }
    }
    too_long(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_refused_with_its_place_and_length() {
        let long = |c: &str, n: usize| format!("ab {}x", c.repeat(n));
        assert!(check(&long("-", MAX_RUN)).is_ok());
        for (c, kind, at) in [("-", "signs", 3), ("é", "letters", 3), ("7", "digits", 3), ("\u{a0}", "blanks", 2)] {
            match check(&long(c, MAX_RUN + 1)) {
                Err(TokenizerError::RunTooLong { at: found, length, kind: of }) => {
                    assert_eq!((of, found), (kind, at));
                    assert!((MAX_RUN + 1..=MAX_RUN + 2).contains(&length), "neighbours of a kind count: {length}");
                }
                other => panic!("{c}: {other:?}"),
            }
        }
        assert!(check(&"ab ".repeat(MAX_RUN)).is_ok(), "long, but in short runs");
    }
}
