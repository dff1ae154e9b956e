//! Two kinds of equality.

use super::{Array, Object, Value, ValueRef};

impl ValueRef<'_> {
    /// Python's `==` (`checks.md` section 3): booleans are the numbers 1 and 0, integers and
    /// floats compare by exact value, NaN equals nothing, member order does not matter.
    pub fn python_eq(self, other: ValueRef<'_>) -> bool {
        all_equal(self, other, loosely)
    }
}

impl PartialEq for ValueRef<'_> {
    /// The same JSON; see [`Value`].
    fn eq(&self, other: &Self) -> bool {
        all_equal(*self, *other, exactly)
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        ValueRef::Array(self) == ValueRef::Array(other)
    }
}

impl PartialEq for Object<'_> {
    fn eq(&self, other: &Self) -> bool {
        ValueRef::Object(self) == ValueRef::Object(other)
    }
}

/// Walks two values side by side; `leaf` judges everything but two arrays or two objects.
fn all_equal<'v>(a: ValueRef<'v>, b: ValueRef<'v>, leaf: fn(ValueRef<'_>, ValueRef<'_>) -> bool) -> bool {
    if !(is_container(a) && is_container(b)) {
        return leaf(a, b);
    }
    let mut pending = vec![(a, b)];
    while let Some((a, b)) = pending.pop() {
        match (a, b) {
            (ValueRef::Array(a), ValueRef::Array(b)) => {
                if a.len() != b.len() {
                    return false;
                }
                if let (Some(a), Some(b)) = (a.as_u32s(), b.as_u32s()) {
                    if a != b {
                        return false;
                    }
                    continue;
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if is_container(a) && is_container(b) {
                        pending.push((a, b));
                    } else if !leaf(a, b) {
                        return false;
                    }
                }
            }
            (ValueRef::Object(a), ValueRef::Object(b)) => {
                if a.len() != b.len() {
                    return false;
                }
                for (key, a) in a {
                    let Some(b) = b.get_key(key) else { return false };
                    if is_container(a) && is_container(b) {
                        pending.push((a, b));
                    } else if !leaf(a, b) {
                        return false;
                    }
                }
            }
            (a, b) => {
                if !leaf(a, b) {
                    return false;
                }
            }
        }
    }
    true
}

fn is_container(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Array(_) | ValueRef::Object(_))
}

fn exactly(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Bool(a), ValueRef::Bool(b)) => a == b,
        (ValueRef::Int(a), ValueRef::Int(b)) => a == b,
        (ValueRef::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (ValueRef::Str(a), ValueRef::Str(b)) => a == b,
        _ => false,
    }
}

fn loosely(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (as_number(a), as_number(b)) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Int(a), ValueRef::Int(b)) => a == b,
        (ValueRef::Int(n), ValueRef::Float(x)) | (ValueRef::Float(x), ValueRef::Int(n)) => {
            n.cmp_f64(x) == Some(std::cmp::Ordering::Equal)
        }
        #[expect(clippy::float_cmp, reason = "exact equality is the rule")]
        (ValueRef::Float(a), ValueRef::Float(b)) => a == b,
        (ValueRef::Str(a), ValueRef::Str(b)) => a == b,
        _ => false,
    }
}

fn as_number(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Bool(b) => ValueRef::Int(i64::from(b).into()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value<'_> {
        Value::parse(json.as_bytes()).expect("json")
    }

    #[test]
    fn python_equality() {
        for (a, b, equal) in [
            ("true", "1", true),
            ("true", "1.0", true),
            ("false", "-0.0", true),
            ("NaN", "NaN", false),
            ("[NaN]", "[NaN]", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("1", "\"1\"", false),
            ("null", "0", false),
            ("null", "null", true),
            (r#"{"a":1,"b":[true]}"#, r#"{"b":[1.0],"a":1}"#, true),
            (r#"{"a":1}"#, r#"{"b":1}"#, false),
            ("[1,2]", "[1.0,2.0]", true),
            ("[]", "{}", false),
            ("[]", "null", false),
        ] {
            assert_eq!(value(a).as_ref().python_eq(value(b).as_ref()), equal, "{a} == {b}");
            assert_eq!(value(b).as_ref().python_eq(value(a).as_ref()), equal, "{b} == {a}");
        }
    }

    #[test]
    fn same_json_tells_numbers_apart() {
        assert!(value("[NaN, 1]") == value("[NaN,1]"));
        assert!(value("1") != value("1.0"));
        assert!(value("[1,2]") != value("[1.0,2.0]"));
        assert!(value("0.0") != value("-0.0"));
        assert!(value(r#"{"a":1,"b":2}"#) == value(r#"{"b":2,"a":1}"#));
        assert!(value("[1,2]") == Value::from(vec![Value::from(1), Value::from(2)]), "packing does not show");
    }
}
