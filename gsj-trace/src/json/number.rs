//! One number of any form, and what is wrong with it.

use super::read::{MAX_INTEGER_DIGITS, ReadError, Reader};
use super::scan;
use super::{Int, Value};

/// What a number token means.
pub(super) enum Number {
    /// An integer in `0..2^32`: token ids, masks.
    Small(u32),
    Int(Int),
    Float(f64),
}

impl Number {
    pub(super) fn into_value<'a>(self) -> Value<'a> {
        match self {
            Self::Small(n) => Value::from(n),
            Self::Int(n) => Value::Int(n),
            Self::Float(x) => Value::Float(x),
        }
    }
}

impl Reader<'_> {
    /// Reads a number token; the reader stands at a digit or a minus sign.
    pub(super) fn number(&mut self) -> Result<Number, ReadError> {
        if let Some((n, end)) = scan::small_int(self.bytes, self.at)
            && !matches!(self.bytes.get(end), Some(b'.' | b'e' | b'E'))
        {
            self.at = end;
            return Ok(Number::Small(n));
        }
        if let Some((x, end)) = scan::float(self.bytes, self.at) {
            self.at = end;
            return Ok(Number::Float(x));
        }
        self.any_number()
    }

    /// Reads a number token byte by byte, or says what is wrong with it.
    fn any_number(&mut self) -> Result<Number, ReadError> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.at += 1;
            if self.peek() == Some(b'I') {
                self.literal("Infinity")?;
                return Ok(Number::Float(f64::NEG_INFINITY));
            }
        }
        let digits = self.at;
        self.some_digits()?;
        let count = self.at - digits;
        if count > 1 && self.bytes[digits] == b'0' {
            self.at = digits + 1;
            return Err(self.syntax("no digit after a leading zero"));
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            if count > MAX_INTEGER_DIGITS {
                return Err(ReadError::IntegerTooLong { at: start });
            }
            return self.integer(start, negative);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        self.token(start).parse().map(Number::Float).map_err(|_| self.syntax("a number"))
    }

    fn integer(&self, start: usize, negative: bool) -> Result<Number, ReadError> {
        let token = self.token(start);
        match token.parse() {
            Ok(small) if !negative => Ok(Number::Small(small)),
            _ => Int::from_decimal(token).map(Number::Int).ok_or_else(|| self.syntax("a number")),
        }
    }

    fn some_digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax("a digit")) } else { Ok(()) }
    }
}
