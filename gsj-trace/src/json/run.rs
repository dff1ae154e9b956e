//! Arrays of scalars, read into packed form.

use super::gap::Gap;
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

    fn len(&self) -> usize {
        match self {
            Self::Ints(items) => items.len(),
            Self::Floats(items) => items.len(),
            Self::Scalars(items) => items.len(),
        }
    }

    fn reserve(&mut self, more: usize) {
        match self {
            Self::Ints(items) => items.reserve_exact(more),
            Self::Floats(items) => items.reserve_exact(more),
            Self::Scalars(items) => items.reserve_exact(more),
        }
    }

    fn scalars(&mut self) -> &mut Vec<Scalar> {
        match self {
            Self::Scalars(_) => {}
            Self::Ints(items) => *self = Self::Scalars(widened(items, |n| Scalar::small(*n))),
            Self::Floats(items) => *self = Self::Scalars(widened(items, |x| Scalar::float(*x))),
        }
        match self {
            Self::Scalars(items) => items,
            _ => unreachable!("widened on the lines above"),
        }
    }
}

/// The same elements with room for as many; the narrow ones give theirs back first.
fn widened<T>(items: &mut Vec<T>, widen: impl Fn(&T) -> Scalar) -> Vec<Scalar> {
    let mut wide = Vec::new();
    let room = items.capacity();
    items.shrink_to_fit();
    wide.reserve_exact(room);
    wide.extend(items.iter().map(widen));
    wide
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
            if packed.len() == 1 {
                // Growing would copy, and end with a half that is given back.
                packed.reserve(scan::commas(&self.bytes[end..]));
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
        let gap = Gap::new(&self.bytes[gap..self.at]);
        loop {
            let mut block = [0; BLOCK];
            let (read, length) = match self.bytes[self.at..].first_chunk() {
                Some(window) if gap.text.len() <= SHORT => short_ints(window, &gap, &mut block),
                _ => ints(&self.bytes[self.at..], &gap, &mut block),
            };
            self.at += length;
            items.extend_from_slice(&block[..read]);
            if read < BLOCK {
                break;
            }
            // A mask is made of long runs.
            if let [.., before, last @ 0..=9] = block
                && before == last
            {
                let stride = 1 + gap.text.len();
                let more = scan::repeats(self.bytes, self.at, stride);
                items.resize(items.len() + more, last);
                self.at += more * stride;
            }
        }
        self.skip_space();
    }

    /// As [`Reader::plain_ints`].
    fn plain_floats(&mut self, gap: usize, items: &mut Vec<f64>) {
        let (bytes, mut at) = (self.bytes, self.at);
        let gap = Gap::new(&bytes[gap..at]);
        loop {
            // What stands where nothing was sampled: long runs of it.
            if bytes[at..].starts_with(b"0.0") && gap.is_at(bytes, at + 3) {
                let stride = 3 + gap.text.len();
                at += stride;
                let more = scan::repeats(bytes, at, stride);
                items.resize(items.len() + 1 + more, 0.0);
                at += more * stride;
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

/// How many integers are read before they go to the array.
const BLOCK: usize = 32;

/// The longest gap for which an element of six digits leaves room in eight bytes.
const SHORT: usize = 2;

/// Reads integers each followed by the gap, until the block is full or something else stands there;
/// returns how many, and their length with the gaps.
fn ints(bytes: &[u8], gap: &Gap<'_>, block: &mut [u32; BLOCK]) -> (usize, usize) {
    let mut at = 0;
    for (read, slot) in block.iter_mut().enumerate() {
        let Some(word) = scan::word(bytes, at) else { return (read, at) };
        let separator = scan::separator(word);
        let Some(n) = scan::joined_digits(word, separator.bits()) else { return (read, at) };
        if !gap.is_at(bytes, at + separator.bytes()) {
            return (read, at);
        }
        *slot = n;
        at += separator.bytes() + gap.text.len();
    }
    (BLOCK, at)
}

/// As [`ints`] for a short gap, each element with it in eight bytes at most: this is where most of
/// the time for a session result is spent.
fn short_ints(window: &[u8; 8 * BLOCK], gap: &Gap<'_>, block: &mut [u32; BLOCK]) -> (usize, usize) {
    let mut at = 0;
    for (read, slot) in block.iter_mut().enumerate() {
        let Some(word) = scan::word(window, at) else { return (read, at) };
        let separator = scan::separator(word);
        let Some(n) = scan::joined_digits(word, separator.bits()) else { return (read, at) };
        if !gap.is_behind(word, separator.bits()) {
            return (read, at);
        }
        *slot = n;
        at += separator.bytes() + gap.text.len();
    }
    (BLOCK, at)
}
