//! Numbers: one token, and whole arrays of them.

use super::read::{MAX_INTEGER_DIGITS, ReadError, Reader};
use super::{Array, Int, Value};

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

/// What became of an array that started with a number.
pub(super) enum Run<'a> {
    /// The array ended and is packed.
    Closed(Array<'a>),
    /// Something else came: the elements so far. The reader stands at the next element.
    Mixed(Vec<Value<'a>>),
}

impl<'a> Reader<'a> {
    /// Reads a number token; the reader stands at a digit or a minus sign.
    pub(super) fn number(&mut self) -> Result<Number, ReadError> {
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
        let mut magnitude: u64 = 0;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        let count = self.at - digits;
        if count == 0 {
            return Err(self.syntax("a digit"));
        }
        if count > 1 && self.bytes[digits] == b'0' {
            self.at = digits + 1;
            return Err(self.syntax("no digit after a leading zero"));
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            if count > MAX_INTEGER_DIGITS {
                return Err(ReadError::IntegerTooLong { at: start });
            }
            return Ok(self.integer(start, negative, magnitude, count));
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
        match self.token(start).parse() {
            Ok(x) => Ok(Number::Float(x)),
            Err(_) => Err(self.syntax("a number")),
        }
    }

    /// `magnitude` is exact for up to 19 digits.
    fn integer(&self, start: usize, negative: bool, magnitude: u64, count: usize) -> Number {
        if !negative
            && count < 20
            && let Ok(small) = u32::try_from(magnitude)
        {
            return Number::Small(small);
        }
        match Int::from_decimal(self.token(start)) {
            Some(int) => Number::Int(int),
            None => Number::Int(Int::from(magnitude)),
        }
    }

    fn some_digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax("a digit")) } else { Ok(()) }
    }

    /// Reads the elements of an array whose first one is a number, as long as all are of one
    /// packable kind.
    pub(super) fn number_run(&mut self) -> Result<Run<'a>, ReadError> {
        match self.number()? {
            Number::Small(first) => self.run(first, |n| match n {
                Number::Small(n) => Ok(n),
                other => Err(other),
            }),
            Number::Float(first) => self.run(first, |n| match n {
                Number::Float(x) => Ok(x),
                other => Err(other),
            }),
            other => self.mixed(vec![other.into_value()]),
        }
    }

    /// Goes on after an element that cannot be packed with the others.
    fn mixed(&mut self, items: Vec<Value<'a>>) -> Result<Run<'a>, ReadError> {
        Ok(if self.array_goes_on()? { Run::Mixed(items) } else { Run::Closed(Array::from(items)) })
    }

    fn run<T: Copy>(&mut self, first: T, same: impl Fn(Number) -> Result<T, Number>) -> Result<Run<'a>, ReadError>
    where
        Array<'a>: From<Vec<T>>,
    {
        let mut items = vec![first];
        loop {
            if !self.array_goes_on()? {
                return Ok(Run::Closed(Array::from(items)));
            }
            if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
                return Ok(Run::Mixed(Array::from(items).into_vec()));
            }
            match same(self.number()?) {
                Ok(item) => items.push(item),
                Err(other) => {
                    let mut items = Array::from(items).into_vec();
                    items.push(other.into_value());
                    return self.mixed(items);
                }
            }
        }
    }
}
