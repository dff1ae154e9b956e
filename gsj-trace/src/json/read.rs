//! The reader: `checks.md` section 1.

use super::encoding::{self, push_point};
use super::run::Run;
use super::scan;
use super::{Array, Object, Str, Value};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How many containers may stand inside each other.
pub const MAX_DEPTH: usize = 1000;

/// How many digits an integer may have: the reference's limit, far beyond any real number. Floats
/// have none.
pub const MAX_INTEGER_DIGITS: usize = 4300;

/// Why bytes are not a readable document. Lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes are not text.
    #[error("byte {at} is not UTF-8 text")]
    NotText {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The text is not JSON.
    #[error("expected {expected} at line {line} column {column} (byte {at})")]
    Syntax {
        /// What could have stood there.
        expected: &'static str,
        /// Offset in bytes.
        at: usize,
        /// Line of the offset.
        line: usize,
        /// Column of the offset.
        column: usize,
    },
    /// An integer of more than [`MAX_INTEGER_DIGITS`] digits.
    #[error("integer of more than {MAX_INTEGER_DIGITS} digits at byte {at}")]
    IntegerTooLong {
        /// Offset of the integer.
        at: usize,
    },
    /// More than [`MAX_DEPTH`] containers inside each other.
    #[error("nested deeper than {MAX_DEPTH} levels at byte {at}")]
    TooDeep {
        /// Offset of the bracket that is one too many.
        at: usize,
    },
}

impl ReadError {
    /// The stable code of `checks.md` section 1.4: `invalid_json` or `too_deep`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotText { .. } | Self::Syntax { .. } | Self::IntegerTooLong { .. } => "invalid_json",
            Self::TooDeep { .. } => "too_deep",
        }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Value<'_>, ReadError> {
    if let Some(converted) = encoding::convert(bytes)? {
        return Reader { text: None, bytes: &converted, at: 0 }.document().map(Value::into_owned);
    }
    let at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let text = std::str::from_utf8(bytes).ok();
    if text.is_none() {
        encoding::check_generalized(bytes)?;
    }
    Reader { text, bytes, at }.document()
}

/// What a letter behind a backslash stands for; zero for what is no such letter, and for `u`.
static ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    let letters = b"\"\\/bfnrt";
    let bytes = b"\"\\/\x08\x0c\n\r\t";
    let mut at = 0;
    while at < letters.len() {
        table[letters[at] as usize] = bytes[at];
        at += 1;
    }
    table
};

/// A place in the text.
pub(super) struct Reader<'a> {
    /// The bytes as text, unless raw surrogates stand among them.
    text: Option<&'a str>,
    /// Generalised UTF-8.
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// A container whose end has not been read.
enum Open<'a> {
    Array(Vec<Value<'a>>),
    /// With the place of the member whose value is being read.
    Object(Object<'a>, usize),
}

impl<'a> Reader<'a> {
    fn document(mut self) -> Result<Value<'a>, ReadError> {
        let mut open: Vec<Open<'a>> = Vec::new();
        'value: loop {
            self.skip_space();
            let mut value = match self.peek() {
                Some(b'"') => Value::Str(self.string()?),
                Some(b'{') => {
                    self.enter(open.len())?;
                    if self.peek() != Some(b'}') {
                        let mut object = Object::new();
                        let place = object.place(self.key()?);
                        open.push(Open::Object(object, place));
                        continue 'value;
                    }
                    self.at += 1;
                    Value::Object(Object::new())
                }
                Some(b'[') => {
                    self.enter(open.len())?;
                    match self.peek() {
                        Some(b']') => {
                            self.at += 1;
                            Value::Array(Array::new())
                        }
                        Some(b'{' | b'"' | b'[') => {
                            open.push(Open::Array(Vec::new()));
                            continue 'value;
                        }
                        _ => match self.scalar_run()? {
                            Run::Closed(array) => Value::Array(array),
                            Run::Mixed(items) => {
                                open.push(Open::Array(items));
                                continue 'value;
                            }
                        },
                    }
                }
                _ => self.scalar()?.ok_or_else(|| self.syntax("a value"))?,
            };
            loop {
                match open.last_mut() {
                    None => {
                        self.skip_space();
                        let end = self.at == self.bytes.len();
                        return if end { Ok(value) } else { Err(self.syntax("the end of the document")) };
                    }
                    Some(Open::Array(items)) => {
                        items.push(value);
                        if self.array_goes_on()? {
                            continue 'value;
                        }
                    }
                    Some(Open::Object(object, place)) => {
                        object.fill(*place, value);
                        if self.next_is(b',', b'}', "`,` or `}`")? {
                            *place = object.place(self.key()?);
                            continue 'value;
                        }
                    }
                }
                value = match open.pop() {
                    Some(Open::Array(items)) => Value::Array(Array::from(items)),
                    Some(Open::Object(object, _)) => Value::Object(object),
                    None => Value::Null,
                };
            }
        }
    }

    /// Reads a number or a literal; `None` where neither stands.
    pub(super) fn scalar(&mut self) -> Result<Option<Value<'a>>, ReadError> {
        Ok(Some(match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number()?.into_value(),
            Some(b'n') => self.literal("null").map(|()| Value::Null)?,
            Some(b't') => self.literal("true").map(|()| Value::Bool(true))?,
            Some(b'f') => self.literal("false").map(|()| Value::Bool(false))?,
            Some(b'N') => self.literal("NaN").map(|()| Value::Float(f64::NAN))?,
            Some(b'I') => self.literal("Infinity").map(|()| Value::Float(f64::INFINITY))?,
            _ => return Ok(None),
        }))
    }

    fn enter(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth >= MAX_DEPTH {
            return Err(ReadError::TooDeep { at: self.at });
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    #[inline]
    fn key(&mut self) -> Result<Str<'a>, ReadError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.syntax("a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.syntax("`:`"));
        }
        self.at += 1;
        Ok(key)
    }

    /// Reads a comma (true) or the end of the array (false), and blanks around it.
    pub(super) fn array_goes_on(&mut self) -> Result<bool, ReadError> {
        let more = self.next_is(b',', b']', "`,` or `]`")?;
        if more {
            self.skip_space();
        }
        Ok(more)
    }

    #[inline]
    fn next_is(&mut self, yes: u8, no: u8, expected: &'static str) -> Result<bool, ReadError> {
        self.skip_space();
        let next = self.peek();
        if next != Some(yes) && next != Some(no) {
            return Err(self.syntax(expected));
        }
        self.at += 1;
        Ok(next == Some(yes))
    }

    pub(super) fn literal(&mut self, word: &'static str) -> Result<(), ReadError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.syntax(word));
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Moves over blanks; most often there is none or one.
    #[inline]
    pub(super) fn skip_space(&mut self) {
        self.at += usize::from(self.peek() == Some(b' '));
        if self.peek().is_some_and(|b| b <= b' ') {
            self.skip_more_space();
        }
    }

    /// Moves over line feeds and indentation.
    fn skip_more_space(&mut self) {
        loop {
            match self.peek() {
                Some(b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b' ') => self.at += scan::word(self.bytes, self.at).map_or(1, scan::blanks),
                _ => return,
            }
        }
    }

    /// The ASCII text from an offset to where the reader stands.
    pub(super) fn token(&self, start: usize) -> &'a str {
        std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default()
    }

    #[cold]
    pub(super) fn syntax(&self, expected: &'static str) -> ReadError {
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        ReadError::Syntax {
            expected,
            at: self.at,
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: self.at - line_start + 1,
        }
    }

    /// Reads a string; the reader stands at its opening quote.
    fn string(&mut self) -> Result<Str<'a>, ReadError> {
        let start = self.at + 1;
        let end = scan::plain_end(self.bytes, start);
        self.at = end;
        if self.peek() != Some(b'"') {
            return self.escaped_string(start);
        }
        self.at += 1;
        Ok(match self.text {
            Some(text) => Str::from(&text[start..end]),
            None => Str::from_generalized(self.bytes[start..end].to_vec()),
        })
    }

    /// Reads on where the first plain stretch of a string ends, which began at `start`.
    fn escaped_string(&mut self, start: usize) -> Result<Str<'a>, ReadError> {
        let bytes = self.bytes;
        let mut text = bytes[start..self.at].to_vec();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Str::from_generalized(text));
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => return Err(self.syntax("no raw control character in a string")),
                None => return Err(self.syntax("the end of the string")),
            }
            let end = scan::plain_end(bytes, self.at);
            text.extend_from_slice(&bytes[self.at..end]);
            self.at = end;
        }
    }

    /// Reads one escape; the reader stands at the backslash.
    #[inline]
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), ReadError> {
        self.at += 1;
        match self.peek().map_or(0, |letter| ESCAPED[usize::from(letter)]) {
            0 if self.peek() == Some(b'u') => {
                self.at += 1;
                let point = self.unicode_escape()?;
                push_point(point, text);
            }
            0 => return Err(self.syntax("an escape character")),
            byte => {
                text.push(byte);
                self.at += 1;
            }
        }
        Ok(())
    }

    /// Reads the four digits after `\u`, and the low half when they are a high surrogate.
    fn unicode_escape(&mut self) -> Result<u32, ReadError> {
        let first = self.four_hex()?;
        if !(0xd800..0xdc00).contains(&first) || !self.bytes[self.at..].starts_with(b"\\u") {
            return Ok(first);
        }
        let back = self.at;
        self.at += 2;
        let second = self.four_hex()?;
        if (0xdc00..0xe000).contains(&second) {
            return Ok(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
        }
        self.at = back;
        Ok(first)
    }

    fn four_hex(&mut self) -> Result<u32, ReadError> {
        let mut point = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|b| char::from(b).to_digit(16)) else {
                return Err(self.syntax("four hexadecimal digits"));
            };
            point = point << 4 | digit;
            self.at += 1;
        }
        Ok(point)
    }
}
