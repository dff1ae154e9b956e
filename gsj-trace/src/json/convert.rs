//! Conversions into values.

use std::borrow::Cow;

use super::{Array, Int, IntRef, Object, Str, StrRef, Value};

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Self::Int(Int::from(n))
    }
}

impl From<i32> for Value<'_> {
    fn from(n: i32) -> Self {
        Self::from(i64::from(n))
    }
}

impl From<u32> for Value<'_> {
    fn from(n: u32) -> Self {
        Self::from(i64::from(n))
    }
}

impl From<u64> for Value<'_> {
    fn from(n: u64) -> Self {
        Self::Int(Int::from(n))
    }
}

impl From<usize> for Value<'_> {
    fn from(n: usize) -> Self {
        Self::from(n as u64)
    }
}

impl From<Int> for Value<'_> {
    fn from(n: Int) -> Self {
        Self::Int(n)
    }
}

impl From<IntRef<'_>> for Value<'_> {
    fn from(n: IntRef<'_>) -> Self {
        Self::Int(n.to_int())
    }
}

impl From<f64> for Value<'_> {
    fn from(x: f64) -> Self {
        Self::Float(x)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(Str::from(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Str(Str::from(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Str(Str::from(text))
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Str(Str::from(text))
    }
}

impl<'a> From<Str<'a>> for Value<'a> {
    fn from(text: Str<'a>) -> Self {
        Self::Str(text)
    }
}

impl<'a> From<StrRef<'a>> for Value<'a> {
    fn from(text: StrRef<'a>) -> Self {
        Self::Str(text.to_str())
    }
}

impl<'a> From<Array<'a>> for Value<'a> {
    fn from(array: Array<'a>) -> Self {
        Self::Array(array)
    }
}

impl<'a> From<Object<'a>> for Value<'a> {
    fn from(object: Object<'a>) -> Self {
        Self::Object(object)
    }
}

impl From<Vec<u32>> for Value<'_> {
    fn from(items: Vec<u32>) -> Self {
        Self::Array(Array::from(items))
    }
}

impl From<&[u32]> for Value<'_> {
    fn from(items: &[u32]) -> Self {
        Self::from(items.to_vec())
    }
}

impl From<Vec<f64>> for Value<'_> {
    fn from(items: Vec<f64>) -> Self {
        Self::Array(Array::from(items))
    }
}

impl From<&[f64]> for Value<'_> {
    fn from(items: &[f64]) -> Self {
        Self::from(items.to_vec())
    }
}

impl From<Vec<Self>> for Value<'_> {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(Array::from(items))
    }
}

/// `None` becomes null.
impl<T: Into<Self>> From<Option<T>> for Value<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl FromIterator<Self> for Value<'_> {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self::Array(items.into_iter().collect())
    }
}
