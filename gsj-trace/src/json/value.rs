//! The owned side of a JSON value.

use std::fmt;

use super::read;
use super::{Array, Int, Object, ReadError, Str, ValueRef};

/// A JSON value that borrows its plain strings from the text it was read from.
///
/// `==` means "the same JSON": integers and floats differ, member order does not matter, NaN
/// equals NaN, `0.0` differs from `-0.0`. For the reference's loose equality see
/// [`ValueRef::python_eq`].
///
/// ```
/// use gsj_trace::json::Value;
/// let body = Value::parse(br#"{"ids": [1, 2, 3], "n": 1e400}"#)?;
/// assert_eq!(body.pointer("/ids/1").and_then(|v| v.as_i64()), Some(2));
/// assert_eq!(body.to_json(), r#"{"ids":[1,2,3],"n":Infinity}"#);
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
#[derive(Default)]
pub enum Value<'a> {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without fraction and exponent.
    Int(Int),
    /// Any other number, NaN and the infinities included.
    Float(f64),
    /// A string.
    Str(Str<'a>),
    /// An array.
    Array(Array<'a>),
    /// An object.
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// Reads one document (`checks.md` section 1): UTF-8, a leading byte order mark dropped,
    /// `NaN`, `Infinity` and `-Infinity` accepted, the last of repeated keys kept, at most
    /// [`super::MAX_DEPTH`] containers deep.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReadError> {
        read::parse(bytes)
    }

    /// The reading side.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(b) => ValueRef::Bool(*b),
            Self::Int(n) => ValueRef::Int(n.as_ref()),
            Self::Float(x) => ValueRef::Float(*x),
            Self::Str(s) => ValueRef::Str(s.as_ref()),
            Self::Array(array) => ValueRef::Array(array),
            Self::Object(object) => ValueRef::Object(object),
        }
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<ValueRef<'_>> {
        self.as_ref().get(key)
    }

    /// An element of an array.
    pub fn index(&self, index: usize) -> Option<ValueRef<'_>> {
        self.as_ref().index(index)
    }

    /// What a JSON pointer (RFC 6901) leads to.
    pub fn pointer(&self, pointer: &str) -> Option<ValueRef<'_>> {
        self.as_ref().pointer(pointer)
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        self.as_ref().as_bool()
    }

    /// The integer, if it is one that fits. Floats and booleans are not integers.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_ref().as_i64()
    }

    /// The number as a double, if it is an integer or a float.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_ref().as_f64()
    }

    /// The text, if it is a string without lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        self.as_ref().as_str()
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array<'a>> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The elements for changing, if it is an array (see [`Array::as_vec_mut`]).
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Self>> {
        match self {
            Self::Array(array) => Some(array.as_vec_mut()),
            _ => None,
        }
    }

    /// The object for changing, if it is one.
    pub fn as_object_mut(&mut self) -> Option<&mut Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A member of an object, for changing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.as_object_mut().and_then(|object| object.get_mut(key))
    }

    /// Replaces this value by null and returns it.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Compact JSON, see [`ValueRef::to_json`].
    pub fn to_json(&self) -> String {
        self.as_ref().to_json()
    }

    /// Indented JSON, see [`ValueRef::to_json_pretty`].
    pub fn to_json_pretty(&self) -> String {
        self.as_ref().to_json_pretty()
    }

    /// Moves the value out and puts it aside if dropping it natively would recurse.
    pub(super) fn take_if_nested(&mut self, aside: &mut Vec<Self>) {
        let nested = match self {
            Self::Array(array) => array.as_values().is_some_and(|items| !items.is_empty()),
            Self::Object(object) => !object.is_empty(),
            _ => false,
        };
        if nested {
            aside.push(self.take());
        }
    }
}

impl Clone for Value<'_> {
    /// Copies the whole value; borrowed strings become owned ones.
    fn clone(&self) -> Self {
        self.as_ref().to_owned()
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_small() {
        assert_eq!(size_of::<Str<'_>>(), 24);
        assert_eq!(size_of::<Value<'_>>(), 32, "an array of a thousand values is 32 KB");
        assert!(size_of::<ValueRef<'_>>() <= 32);
    }
}
