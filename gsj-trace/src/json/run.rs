//! Arrays of scalars, read into packed form.

use super::read::{ReadError, Reader};
use super::scalar::Scalar;
use super::scan;
use super::{Array, Value};

/// What became of an array that started with a scalar.
pub(super) enum Run<'a> {
    /// The array ended and is packed as far as it can be.
    Closed(Array<'a>),
    /// Something else came: the elements so far. The reader stands at the next element.
    Mixed(Vec<Value<'a>>),
}

/// The elements read so far, in the narrowest form that holds them.
enum Packed {
    Ints(Vec<u32>),
    Floats(Vec<f64>),
    Scalars(Vec<Scalar>),
}

impl Packed {
    fn into_array<'a>(self) -> Array<'a> {
        match self {
            Self::Ints(items) => Array::from(items),
            Self::Floats(items) => Array::from(items),
            Self::Scalars(items) => Array::from(items),
        }
    }

    /// Appends an element, in a wider form if it must be; gives back what cannot be packed.
    fn push<'a>(&mut self, value: Value<'a>) -> Result<(), Value<'a>> {
        let small = if let Value::Int(n) = &value { n.as_ref().as_u32() } else { None };
        match (&mut *self, &value, small) {
            (Self::Ints(items), _, Some(n)) => items.push(n),
            (Self::Floats(items), Value::Float(x), _) => items.push(*x),
            (Self::Ints(items), Value::Float(x), _) if items.is_empty() => *self = Self::Floats(vec![*x]),
            _ => match Scalar::of(&value) {
                Some(item) => self.scalars().push(item),
                None => return Err(value),
            },
        }
        Ok(())
    }

    fn scalars(&mut self) -> &mut Vec<Scalar> {
        match self {
            Self::Scalars(_) => {}
            Self::Ints(items) => *self = Self::Scalars(items.iter().map(|n| Scalar::small(*n)).collect()),
            Self::Floats(items) => *self = Self::Scalars(items.iter().map(|x| Scalar::float(*x)).collect()),
        }
        match self {
            Self::Scalars(items) => items,
            _ => unreachable!("widened on the lines above"),
        }
    }
}

/// What stands between two elements: a comma and blanks. Arrays are written alike from end to end,
/// so the next gap is taken to be like the last one and only compared, off the critical path:
/// counting blanks would make each element wait for the one before it.
struct Gap<'t> {
    text: &'t [u8],
    /// The first eight bytes of the text, and which bits of them there are.
    word: u64,
    bits: u64,
}

impl<'t> Gap<'t> {
    fn new(text: &'t [u8]) -> Self {
        let mut first = [0; 8];
        let length = text.len().min(8);
        first[..length].copy_from_slice(&text[..length]);
        let bits = if length == 0 { 0 } else { u64::MAX >> (64 - 8 * length) };
        Self { text, word: u64::from_le_bytes(first), bits }
    }

    /// Whether the same gap stands at an offset; near the end of the document it never does.
    #[inline]
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let Some(word) = scan::word(bytes, at) else { return false };
        (word ^ self.word) & self.bits == 0
            && (self.text.len() <= 8 || bytes.get(at + 8..at + self.text.len()) == Some(&self.text[8..]))
    }
}

impl<'a> Reader<'a> {
    /// Reads the elements of an array whose first one is a scalar, as long as all can be packed.
    pub(super) fn scalar_run(&mut self) -> Result<Run<'a>, ReadError> {
        let mut packed = Packed::Ints(Vec::new());
        loop {
            let Some(value) = self.scalar()? else {
                return Ok(Run::Mixed(packed.into_array().into_vec()));
            };
            if let Err(value) = packed.push(value) {
                let mut items = packed.into_array().into_vec();
                items.push(value);
                return Ok(if self.array_goes_on()? { Run::Mixed(items) } else { Run::Closed(Array::from(items)) });
            }
            let end = self.at;
            if !self.array_goes_on()? {
                return Ok(Run::Closed(packed.into_array()));
            }
            match &mut packed {
                Packed::Ints(items) => self.plain_ints(end, items),
                Packed::Floats(items) => self.plain_floats(end, items),
                Packed::Scalars(_) => {}
            }
        }
    }

    /// Reads elements that are plain and followed by a gap like that from `gap` to where the reader
    /// stands. Leaves the reader at the first element that is not.
    fn plain_ints(&mut self, gap: usize, items: &mut Vec<u32>) {
        let (bytes, mut at) = (self.bytes, self.at);
        let gap = Gap::new(&bytes[gap..at]);
        while let Some(word) = scan::word(bytes, at) {
            // Two ways, so that a mask's next entry does not wait for the length of this one.
            if let Some(digit) = scan::one_digit(word)
                && gap.is_at(bytes, at + 1)
            {
                items.push(digit);
                at += 1 + gap.text.len();
                continue;
            }
            let count = scan::before_separator(word);
            match scan::joined_digits(word, count) {
                Some(n) if gap.is_at(bytes, at + count) => items.push(n),
                _ => break,
            }
            at += count + gap.text.len();
        }
        self.at = at;
        self.skip_space();
    }

    /// As [`Reader::plain_ints`].
    fn plain_floats(&mut self, gap: usize, items: &mut Vec<f64>) {
        let (bytes, mut at) = (self.bytes, self.at);
        let gap = Gap::new(&bytes[gap..at]);
        loop {
            // What stands where nothing was sampled.
            if bytes[at..].starts_with(b"0.0") && gap.is_at(bytes, at + 3) {
                items.push(0.0);
                at += 3 + gap.text.len();
                continue;
            }
            match scan::float(bytes, at) {
                Some((x, end)) if gap.is_at(bytes, end) => {
                    items.push(x);
                    at = end + gap.text.len();
                }
                _ => break,
            }
        }
        self.at = at;
        self.skip_space();
    }
}
