//! Arrays, packed where they hold only numbers, booleans and nulls.

use std::mem;

use super::object::unnest;
use super::scalar::Scalar;
use super::{IntRef, Value, ValueRef};

/// An array of JSON values.
///
/// Token ids, masks and logprobs come in arrays of a hundred thousand: an array read from text
/// that is made only of integers in `0..2^32`, or only of floats, holds bare numbers, and one that
/// mixes them with each other, with nulls, booleans and integers of up to 48 bits takes eight bytes
/// an element. [`Array::get`] and [`Array::iter`] hide the difference; [`Array::as_u32s`] and
/// [`Array::as_f64s`] use it.
#[derive(Default)]
pub struct Array<'a>(Repr<'a>);

enum Repr<'a> {
    Values(Vec<Value<'a>>),
    Ints(Box<[u32]>),
    Floats(Box<[f64]>),
    Scalars(Box<[Scalar]>),
}

impl Default for Repr<'_> {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

impl<'a> Array<'a> {
    /// An empty array.
    pub const fn new() -> Self {
        Self(Repr::Values(Vec::new()))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Values(items) => items.len(),
            Repr::Ints(items) => items.len(),
            Repr::Floats(items) => items.len(),
            Repr::Scalars(items) => items.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<ValueRef<'_>> {
        match &self.0 {
            Repr::Values(items) => items.get(index).map(Value::as_ref),
            Repr::Ints(items) => items.get(index).map(|n| ValueRef::Int(IntRef::from(i64::from(*n)))),
            Repr::Floats(items) => items.get(index).map(|x| ValueRef::Float(*x)),
            Repr::Scalars(items) => items.get(index).map(|item| item.as_ref()),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> Items<'_> {
        Items { array: self, front: 0, back: self.len() }
    }

    /// The elements as bare numbers, when the array is empty or packed as integers in `0..2^32`.
    pub fn as_u32s(&self) -> Option<&[u32]> {
        match &self.0 {
            Repr::Ints(items) => Some(items),
            _ => self.is_empty().then_some(&[]),
        }
    }

    /// The elements as bare numbers, when the array is empty or packed as floats.
    pub fn as_f64s(&self) -> Option<&[f64]> {
        match &self.0 {
            Repr::Floats(items) => Some(items),
            _ => self.is_empty().then_some(&[]),
        }
    }

    /// The elements as values; `None` when they are packed.
    pub(super) fn as_values(&self) -> Option<&[Value<'a>]> {
        match &self.0 {
            Repr::Values(items) => Some(items),
            _ => None,
        }
    }

    /// The elements for changing; a packed array is unpacked first (32 bytes an element), so
    /// build arrays of numbers as `Vec<u32>` or `Vec<f64>` and convert.
    pub fn as_vec_mut(&mut self) -> &mut Vec<Value<'a>> {
        if !matches!(self.0, Repr::Values(_)) {
            self.0 = Repr::Values(mem::take(self).into_vec());
        }
        match &mut self.0 {
            Repr::Values(items) => items,
            _ => unreachable!("unpacked on the lines above"),
        }
    }

    /// Appends one element, unpacking (see [`Array::as_vec_mut`]).
    pub fn push(&mut self, value: impl Into<Value<'a>>) {
        self.as_vec_mut().push(value.into());
    }

    /// The elements, unpacked.
    pub fn into_vec(mut self) -> Vec<Value<'a>> {
        match mem::take(&mut self.0) {
            Repr::Values(items) => items,
            Repr::Ints(items) => items.iter().map(|n| Value::from(*n)).collect(),
            Repr::Floats(items) => items.iter().map(|x| Value::Float(*x)).collect(),
            Repr::Scalars(items) => items.iter().map(|item| item.as_ref().to_owned()).collect(),
        }
    }

    /// Removes the values of an unpacked array, leaving it empty.
    pub(super) fn take_values(&mut self) -> Vec<Value<'a>> {
        match &mut self.0 {
            Repr::Values(items) => mem::take(items),
            _ => Vec::new(),
        }
    }

    /// A copy of a packed array, which borrows nothing; `None` for an unpacked one.
    pub(super) fn packed_copy<'b>(&self) -> Option<Array<'b>> {
        match &self.0 {
            Repr::Values(_) => None,
            Repr::Ints(items) => Some(Array(Repr::Ints(items.clone()))),
            Repr::Floats(items) => Some(Array(Repr::Floats(items.clone()))),
            Repr::Scalars(items) => Some(Array(Repr::Scalars(items.clone()))),
        }
    }

    /// Turns a packed array into one of any lifetime; gives an unpacked one's elements back.
    pub(super) fn into_packed<'b>(mut self) -> Result<Array<'b>, Vec<Value<'a>>> {
        match mem::take(&mut self.0) {
            Repr::Values(items) => Err(items),
            Repr::Ints(items) => Ok(Array(Repr::Ints(items))),
            Repr::Floats(items) => Ok(Array(Repr::Floats(items))),
            Repr::Scalars(items) => Ok(Array(Repr::Scalars(items))),
        }
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        let mut nested = Vec::new();
        if let Repr::Values(items) = &mut self.0 {
            for item in items {
                item.take_if_nested(&mut nested);
            }
        }
        unnest(nested);
    }
}

impl Clone for Array<'_> {
    fn clone(&self) -> Self {
        match ValueRef::Array(self).to_owned() {
            Value::Array(array) => array,
            _ => Self::new(),
        }
    }
}

impl<'a> From<Vec<Value<'a>>> for Array<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Self(Repr::Values(items))
    }
}

impl From<Vec<u32>> for Array<'_> {
    fn from(items: Vec<u32>) -> Self {
        Self(Repr::Ints(items.into_boxed_slice()))
    }
}

impl From<Vec<f64>> for Array<'_> {
    fn from(items: Vec<f64>) -> Self {
        Self(Repr::Floats(items.into_boxed_slice()))
    }
}

impl From<Vec<Scalar>> for Array<'_> {
    fn from(items: Vec<Scalar>) -> Self {
        Self(Repr::Scalars(items.into_boxed_slice()))
    }
}

impl<'a, V: Into<Value<'a>>> FromIterator<V> for Array<'a> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        Self(Repr::Values(items.into_iter().map(Into::into).collect()))
    }
}

impl<'v> IntoIterator for &'v Array<'_> {
    type Item = ValueRef<'v>;
    type IntoIter = Items<'v>;

    fn into_iter(self) -> Items<'v> {
        self.iter()
    }
}

/// The elements of an [`Array`] in order.
#[derive(Clone, Copy)]
pub struct Items<'v> {
    array: &'v Array<'v>,
    front: usize,
    back: usize,
}

impl<'v> Iterator for Items<'v> {
    type Item = ValueRef<'v>;

    fn next(&mut self) -> Option<ValueRef<'v>> {
        if self.front == self.back {
            return None;
        }
        let item = self.array.get(self.front);
        self.front += 1;
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.back - self.front;
        (left, Some(left))
    }

    fn nth(&mut self, n: usize) -> Option<ValueRef<'v>> {
        self.front = self.front.saturating_add(n).min(self.back);
        self.next()
    }
}

impl<'v> DoubleEndedIterator for Items<'v> {
    fn next_back(&mut self) -> Option<ValueRef<'v>> {
        if self.front == self.back {
            return None;
        }
        self.back -= 1;
        self.array.get(self.back)
    }
}

impl ExactSizeIterator for Items<'_> {}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        ValueRef::Array(self).fmt(f)
    }
}

impl std::fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
