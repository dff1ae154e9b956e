//! Laws of reading and writing JSON (`checks.md` sections 1 to 4).

use gsj_trace::canonical::{canonical_sha256, canonical_text};
use gsj_trace::json::{Object, Value, ValueRef};

use crate::documents::walk;

/// Objects up to this size are looked through member by member, which is quadratic.
const SMALL: usize = 64;

/// Any bytes: reading never panics, and what was read can be written, read again and hashed without a change.
///
/// # Panics
/// When a law is broken.
pub fn reader(data: &[u8]) {
    let value = match Value::parse(data) {
        Ok(value) => value,
        Err(error) => {
            assert!(["invalid_json", "too_deep"].contains(&error.code()), "an error has one of two codes: {error:?}");
            assert!(!error.to_string().is_empty(), "an error says what is wrong");
            return;
        }
    };
    let text = value.to_json();
    let again = Value::parse(text.as_bytes()).expect("own text is read");
    assert!(again == value, "written and read again: {text}");
    assert_eq!(again.to_json(), text, "written twice");
    let pretty = value.to_json_pretty();
    assert!(Value::parse(pretty.as_bytes()).expect("own text is read") == value, "pretty and read again: {pretty}");
    let owned = value.clone().into_owned();
    assert!(owned == value && owned.to_json() == text, "owning changes nothing: {text}");
    canonical(&value, &text);
    shown(value.as_ref());
    for inner in walk(value.as_ref()) {
        if let ValueRef::Object(object) = inner
            && object.len() <= SMALL
        {
            keys_are_unique(object);
        }
    }
}

fn canonical(value: &Value<'_>, text: &str) {
    let hashable = walk(value.as_ref()).all(|inner| match inner {
        ValueRef::Float(x) => x.is_finite(),
        ValueRef::Str(string) => string.as_str().is_some(),
        ValueRef::Object(object) => object.keys().all(|key| key.as_str().is_some()),
        _ => true,
    });
    let canonical = canonical_text(value.as_ref());
    assert_eq!(canonical.is_some(), hashable, "no digest exactly for NaN, infinities and surrogates: {text}");
    assert_eq!(canonical_sha256(value.as_ref()).is_some(), hashable, "a digest where there is a text: {text}");
    let Some(canonical) = canonical else { return };
    let again = Value::parse(canonical.as_bytes()).expect("canonical text is JSON");
    assert!(value.as_ref().python_eq(again.as_ref()), "canonical text says the same: {text}");
    assert_eq!(canonical_text(again.as_ref()).as_deref(), Some(&*canonical), "canonical text is a fixed point");
    assert!(again.as_ref().python_eq(again.as_ref()), "a value without NaN equals itself: {text}");
}

fn shown(value: ValueRef<'_>) {
    let (shown, python) = (value.show(), value.python_text());
    match value {
        ValueRef::Array(_) | ValueRef::Object(_) => {
            if let Some(canonical) = canonical_text(value) {
                assert_eq!(shown, canonical, "a container is shown as its canonical text");
            }
            let (open, close) = if matches!(value, ValueRef::Array(_)) { ('[', ']') } else { ('{', '}') };
            assert!(python.starts_with(open) && python.ends_with(close), "a container in its brackets: {python}");
        }
        _ => assert_eq!(shown, python, "scalars have one text"),
    }
    let empty = match value {
        ValueRef::Null | ValueRef::Bool(false) => true,
        ValueRef::Int(n) => n.is_zero(),
        ValueRef::Float(x) => x == 0.0,
        ValueRef::Str(string) => string.is_empty(),
        ValueRef::Array(array) => array.is_empty(),
        ValueRef::Object(object) => object.is_empty(),
        ValueRef::Bool(true) => false,
    };
    assert_eq!(value.truthy(), !empty, "empty and zero are false: {shown}");
}

fn keys_are_unique(object: &Object<'_>) {
    let keys: Vec<_> = object.keys().collect();
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key), "a repeated key has collapsed: {key:?}");
        assert!(object.get_key(*key).is_some(), "a key finds its value: {key:?}");
    }
}
