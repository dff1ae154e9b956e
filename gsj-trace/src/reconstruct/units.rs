//! Walking over what token ids say, unit by unit.
//!
//! A unit is a byte, or a control token as a whole: `<|im_end|>` typed as text is never the control token.

use crate::tokens::TokenText;

/// The number of leading elements that two slices have in common.
pub(super) fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    const BLOCK: usize = 64;
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count();
    let from = blocks * BLOCK;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}

/// The number of ids of `q` outside its longest common prefix and, of what remains, suffix with `context`.
pub(super) fn differing(q: &[u32], context: &[u32]) -> usize {
    let prefix = common_prefix(q, context);
    let (q, context) = (&q[prefix..], &context[prefix..]);
    let suffix = q.iter().rev().zip(context.iter().rev()).take_while(|(a, b)| a == b).count();
    q.len() - suffix
}

/// What stands at a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit<'t> {
    /// A control token, or an id outside the vocabulary.
    Whole(u32),
    /// What is left of a token's text, never empty.
    Text(&'t [u8]),
    /// Nothing.
    End,
}

/// A place in a list of ids that is held in two parts.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'s, 't> {
    tokens: &'t dyn TokenText,
    parts: [&'s [u32]; 2],
    /// The index of the token.
    at: usize,
    /// The byte of its text.
    byte: usize,
}

impl<'s, 't> Cursor<'s, 't> {
    pub(super) fn new(tokens: &'t dyn TokenText, parts: [&'s [u32]; 2], at: usize) -> Self {
        Self { tokens, parts, at, byte: 0 }.settled()
    }

    /// The index of the token that the cursor stands at, or in.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The index of the first token that is whole from here on.
    pub(super) fn next_boundary(&self) -> usize {
        self.at + usize::from(self.byte > 0)
    }

    pub(super) fn is_boundary(&self) -> bool {
        self.byte == 0
    }

    /// The ids from here to the end of the part, the current one included.
    pub(super) fn run(&self) -> &'s [u32] {
        let [head, tail] = self.parts;
        match self.at.checked_sub(head.len()) {
            None => &head[self.at..],
            Some(at) => tail.get(at..).unwrap_or_default(),
        }
    }

    pub(super) fn unit(&self) -> Unit<'t> {
        let Some(&id) = self.run().first() else { return Unit::End };
        match self.tokens.bytes(id) {
            Some(bytes) if !self.tokens.is_control(id) => Unit::Text(bytes.get(self.byte..).unwrap_or_default()),
            _ => Unit::Whole(id),
        }
    }

    /// Steps over whole tokens.
    pub(super) fn skip_tokens(&mut self, count: usize) {
        (self.at, self.byte) = (self.at + count, 0);
        *self = self.settled();
    }

    /// Steps over bytes of the current token; at most as many as it has left.
    pub(super) fn skip_bytes(&mut self, count: usize) {
        if let Unit::Text(left) = self.unit()
            && count < left.len()
        {
            self.byte += count;
        } else {
            self.skip_tokens(1);
        }
    }

    /// Steps over one unit.
    pub(super) fn step(&mut self) {
        self.skip_bytes(1);
    }

    /// Steps over tokens that say nothing.
    fn settled(mut self) -> Self {
        while self.unit() == Unit::Text(&[]) {
            (self.at, self.byte) = (self.at + 1, 0);
        }
        self
    }

    /// Steps over a text that stands here, whatever tokens spell it; a control token spells it only as a whole.
    pub(super) fn eat(&self, text: &[u8]) -> Option<Self> {
        let mut here = *self;
        let mut text = text;
        while !text.is_empty() {
            match here.unit() {
                Unit::Text(bytes) => {
                    let count = bytes.len().min(text.len());
                    if bytes[..count] != text[..count] {
                        return None;
                    }
                    here.skip_bytes(count);
                    text = &text[count..];
                }
                Unit::Whole(id) if self.tokens.bytes(id) == Some(text) => {
                    here.skip_tokens(1);
                    text = &[];
                }
                _ => return None,
            }
        }
        Some(here)
    }

    /// Steps over white space, not beyond the token index `limit`; says how many bytes it was.
    pub(super) fn skip_space(&mut self, limit: usize) -> usize {
        let mut skipped = 0;
        while self.at < limit
            && let Unit::Text(bytes) = self.unit()
        {
            let count = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let whole = count == bytes.len();
            if count > 0 {
                self.skip_bytes(count);
                skipped += count;
            }
            if !whole {
                break;
            }
        }
        skipped
    }
}

/// How far one list of ids says what another says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// It says all of it; what comes after begins with the token of this index.
    At(usize),
    /// It says all of it, but the end falls inside a token.
    Inside,
    /// It says something else.
    Not,
}

/// Whether `q` begins with what `context` says; both cursors stand where the lists say the same so far.
pub(super) fn follows(mut q: Cursor<'_, '_>, mut context: Cursor<'_, '_>) -> Follows {
    loop {
        if q.is_boundary() && context.is_boundary() {
            let equal = common_prefix(q.run(), context.run());
            if equal > 0 {
                q.skip_tokens(equal);
                context.skip_tokens(equal);
                continue;
            }
        }
        match (q.unit(), context.unit()) {
            (_, Unit::End) if q.is_boundary() => return Follows::At(q.at()),
            (_, Unit::End) => return Follows::Inside,
            (Unit::Text(a), Unit::Text(b)) => {
                let count = a.len().min(b.len());
                if a[..count] != b[..count] {
                    return Follows::Not;
                }
                q.skip_bytes(count);
                context.skip_bytes(count);
            }
            // Equal control tokens were stepped over above, unless one side is inside a token.
            _ => return Follows::Not,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A vocabulary for tests: ids below 256 are bytes, from 1000 on the words given, negative none.
    #[derive(Debug)]
    pub(in crate::reconstruct) struct Toy {
        bytes: Vec<u8>,
        /// Text and whether it is a control token; the first has the id 1000.
        words: Vec<(&'static str, bool)>,
    }

    impl Toy {
        pub(in crate::reconstruct) fn new(words: &[(&'static str, bool)]) -> Self {
            Self { bytes: (0..=255).collect(), words: words.to_vec() }
        }

        /// Ids of a text: the words of `vocabulary` by longest match, bytes otherwise.
        pub(in crate::reconstruct) fn ids(&self, text: &str) -> Vec<u32> {
            let mut out = Vec::new();
            let mut rest = text;
            while !rest.is_empty() {
                let word = self.words.iter().enumerate().filter(|(_, (w, _))| !w.is_empty() && rest.starts_with(w));
                if let Some((at, (word, _))) = word.max_by_key(|(_, (w, _))| w.len()) {
                    out.push(1000 + u32::try_from(at).unwrap());
                    rest = &rest[word.len()..];
                } else {
                    let length = rest.chars().next().map_or(1, char::len_utf8);
                    out.extend(rest[..length].bytes().map(u32::from));
                    rest = &rest[length..];
                }
            }
            out
        }
    }

    impl TokenText for Toy {
        fn bytes(&self, id: u32) -> Option<&[u8]> {
            let at = usize::try_from(id).unwrap();
            match at.checked_sub(1000) {
                None => self.bytes.get(at..=at),
                Some(at) => self.words.get(at).map(|(word, _)| word.as_bytes()),
            }
        }

        fn is_control(&self, id: u32) -> bool {
            id.checked_sub(1000).and_then(|at| self.words.get(usize::try_from(at).unwrap())).is_some_and(|(_, c)| *c)
        }

        fn identity(&self) -> &str {
            "toy"
        }
    }

    fn starts(tokens: &Toy, q: &[u32], context: [&[u32]; 2]) -> Follows {
        follows(Cursor::new(tokens, [q, &[]], 0), Cursor::new(tokens, context, 0))
    }

    #[test]
    fn the_same_text_in_other_tokens_is_found_to_its_end() {
        let toy = Toy::new(&[("hello", false), ("<end>", true), ("lo w", false), ("", false)]);
        let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let (hello, end) = (1000, 1001);
        assert_eq!(starts(&toy, &[hello, end, 9], [&bytes("hel"), &[108, 111, end]]), Follows::At(2));
        assert_eq!(starts(&toy, &[104, 101, 108, 1002, end], [&bytes("hello"), &[]]), Follows::Inside);
        assert_eq!(starts(&toy, &bytes("help"), [&[hello], &[]]), Follows::Not);
        assert_eq!(starts(&toy, &bytes("hello<end>"), [&[hello], &[end]]), Follows::Not, "typed is not meant");
        assert_eq!(starts(&toy, &bytes("hell"), [&[hello], &[]]), Follows::Not, "it ends before");
        assert_eq!(starts(&toy, &[1003, hello, 1003, end], [&[hello, 1003], &[1003, end]]), Follows::At(4));
        assert_eq!(starts(&toy, &[hello, 5000], [&bytes("hello"), &[5000]]), Follows::At(2), "unknown ids are wholes");
        assert_eq!(starts(&toy, &[hello], [&[], &[]]), Follows::At(0));
    }

    #[test]
    fn prefixes_and_suffixes_are_counted_once() {
        let long: Vec<u32> = (0..1000).collect();
        let mut other = long.clone();
        other[777] = 0;
        assert_eq!((common_prefix(&long, &other), common_prefix(&long, &long[..130])), (777, 130));
        assert_eq!(differing(&long, &other), 1);
        assert_eq!((differing(&[1, 2, 3], &[1, 3]), differing(&[1, 1], &[1]), differing(&[1], &[1, 1])), (1, 1, 0));
    }
}
