//! The reading side of a JSON value.

use std::fmt;

use super::float::push_float;
use super::write::{Style, write};
use super::{Array, IntRef, Object, StrRef};

/// A JSON value for reading; a copy costs nothing.
#[derive(Clone, Copy)]
pub enum ValueRef<'v> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without fraction and exponent.
    Int(IntRef<'v>),
    /// Any other number, NaN and the infinities included.
    Float(f64),
    /// A string.
    Str(StrRef<'v>),
    /// An array.
    Array(&'v Array<'v>),
    /// An object.
    Object(&'v Object<'v>),
}

impl<'v> ValueRef<'v> {
    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// The boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// The integer of any size, if it is one. Floats and booleans are not integers.
    pub fn as_int(self) -> Option<IntRef<'v>> {
        match self {
            Self::Int(n) => Some(n),
            _ => None,
        }
    }

    /// The integer, if it is one that fits. Floats and booleans are not integers.
    pub fn as_i64(self) -> Option<i64> {
        self.as_int().and_then(IntRef::as_i64)
    }

    /// The number as a double, if it is an integer or a float.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(n.to_f64()),
            Self::Float(x) => Some(x),
            _ => None,
        }
    }

    /// The text, if it is a string without lone surrogates.
    pub fn as_str(self) -> Option<&'v str> {
        self.as_text().and_then(StrRef::as_str)
    }

    /// The string, if it is one, lone surrogates included.
    pub fn as_text(self) -> Option<StrRef<'v>> {
        match self {
            Self::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(self) -> Option<&'v Array<'v>> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(self) -> Option<&'v Object<'v>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A member of an object.
    pub fn get(self, key: &str) -> Option<Self> {
        self.as_object().and_then(|object| object.get(key))
    }

    /// An element of an array.
    pub fn index(self, index: usize) -> Option<Self> {
        self.as_array().and_then(|array| array.get(index))
    }

    /// What a JSON pointer (RFC 6901) leads to; the empty pointer is the value itself.
    pub fn pointer(self, pointer: &str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, step| match value {
            ValueRef::Object(object) => object.get(&step.replace("~1", "/").replace("~0", "~")),
            ValueRef::Array(array) => array.get(step.parse().ok()?),
            _ => None,
        })
    }

    /// Compact JSON on one line: member order kept, floats by [`super::float_text`], the literals
    /// `NaN`, `Infinity`, `-Infinity`, lone surrogates as `\uXXXX`. Reading it again gives the
    /// same value (two lone surrogates that stand side by side excepted: JSON has no way to write
    /// them apart).
    pub fn to_json(self) -> String {
        self.written(Style::COMPACT)
    }

    /// JSON with an indent of two blanks and arrays of numbers on one line, for files that people
    /// read; no line feed at the end.
    pub fn to_json_pretty(self) -> String {
        self.written(Style::PRETTY)
    }

    /// How a finding renders the value (`checks.md` section 2).
    pub fn show(self) -> String {
        match self {
            Self::Null => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => {
                let mut out = String::new();
                push_float(x, ["nan", "inf", "-inf"], &mut out);
                out
            }
            Self::Str(s) => s.escaped().into_owned(),
            Self::Array(_) | Self::Object(_) => self.written(Style::SHOWN),
        }
    }

    /// Python's `str()`: as [`ValueRef::show`], but arrays and objects in Python's own notation.
    /// For the few places where the reference's bytes are kept whole.
    pub fn python_text(self) -> String {
        match self {
            Self::Array(_) | Self::Object(_) => self.written(Style::PYTHON),
            scalar => scalar.show(),
        }
    }

    /// Python's idea of truth (`checks.md` section 3).
    pub fn truthy(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => b,
            Self::Int(n) => !n.is_zero(),
            Self::Float(x) => x != 0.0,
            Self::Str(s) => !s.is_empty(),
            Self::Array(array) => !array.is_empty(),
            Self::Object(object) => !object.is_empty(),
        }
    }

    fn written(self, style: Style) -> String {
        let mut out = String::new();
        // Only the exact style refuses anything, and it is not used here.
        let _ = write(self, style, &mut out);
        out
    }
}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Value;

    fn shown(json: &str) -> String {
        Value::parse(json.as_bytes()).expect("json").as_ref().show()
    }

    #[test]
    fn scalars_show_as_python_prints_them() {
        assert_eq!(shown("null"), "None");
        assert_eq!(shown("true"), "True");
        assert_eq!(shown("-0"), "0");
        assert_eq!(shown("-0.0"), "-0.0");
        assert_eq!(shown("NaN"), "nan");
        assert_eq!(shown("-1e999"), "-inf");
        assert_eq!(shown(r#""a\n\"\ud800\"""#), "a\n\"\\ud800\"");
    }

    #[test]
    fn containers_show_as_canonical_text() {
        assert_eq!(
            shown(r#"{"b": [1, 1.0, NaN, -Infinity], "a": "\ud800é\u0001"}"#),
            r#"{"a":"\ud800é\u0001","b":[1,1.0,NaN,-Infinity]}"#
        );
    }

    #[test]
    fn pointers_reach_into_packed_arrays() {
        let value = Value::parse(br#"{"a/b": {"~": [[10, 20], [0.5]]}}"#).expect("json");
        assert_eq!(value.pointer("/a~1b/~0/0/1").and_then(|v| v.as_i64()), Some(20));
        assert_eq!(value.pointer("/a~1b/~0/1/0").and_then(|v| v.as_f64()), Some(0.5));
        assert!(value.pointer("/a~1b/~0/7").is_none());
        assert!(value.pointer("nonsense").is_none());
    }

    #[test]
    fn truth_is_pythons() {
        for (json, truth) in [
            ("0", false),
            ("-0.0", false),
            ("NaN", true),
            ("\"\"", false),
            ("\"0\"", true),
            ("[]", false),
            ("[0]", true),
            ("{}", false),
            ("null", false),
        ] {
            assert_eq!(Value::parse(json.as_bytes()).expect("json").as_ref().truthy(), truth, "{json}");
        }
    }
}
