//! A tool call's arguments: lax integers, strict strings, everything else ignored (retrieval.md section 5).

use serde_json::{Map, Value};

/// Reads the query.
pub(crate) fn query(arguments: &Map<String, Value>) -> Result<&str, String> {
    match arguments.get("query") {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("query must be a string, not {}", kind(other))),
        None => Err("query is missing".into()),
    }
}

/// Reads `k`, which is `default` where a call names none, and clamps it into 1..`max_k`.
pub(crate) fn k(arguments: &Map<String, Value>, default: u32, max_k: u32) -> Result<usize, String> {
    let asked = match arguments.get("k") {
        Some(value) => integer(value).ok_or_else(|| format!("k must be an integer, not {}", shown(value)))?,
        None => i64::from(default),
    };
    let clamped = asked.clamp(1, i64::from(max_k.max(1)));
    Ok(usize::try_from(clamped).unwrap_or(1))
}

/// Reads an integer that may be absent or null.
pub(crate) fn optional_integer(arguments: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match integer(value) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} must be an integer or null, not {}", shown(value))),
        },
    }
}

/// Reads a string that may be absent or null.
pub(crate) fn optional_string(arguments: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("{name} must be a string or null, not {}", kind(other))),
    }
}

/// Takes integers, whole floats, booleans and texts that spell an integer. Numbers beyond 64 bits come out at the end of
/// the range: callers clamp anyway.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Number(number) => number.as_i64().or_else(|| {
            // A cast from float saturates, so huge values land on the range's ends.
            number.as_f64().filter(|float| float.is_finite() && float.fract() == 0.0).map(|float| float as i64)
        }),
        Value::String(text) => spelled(text.trim()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn spelled(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // "2.0" is a whole number as 2.0 is.
    let digits = match digits.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => digits,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let end = if negative { i64::MIN } else { i64::MAX };
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{digits}").parse().unwrap_or(end))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A number as it stands, of anything else only its kind: answers stay short whatever was sent.
fn shown(value: &Value) -> String {
    if let Value::Number(number) = value { number.to_string() } else { kind(value).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn k_of(value: Value) -> Result<usize, String> {
        k(&Map::from_iter([("k".to_owned(), value)]), 5, 20)
    }

    #[test]
    fn k_is_lax_and_clamped() {
        for (value, expected) in [
            (json!(3), 3),
            (json!("2"), 2),
            (json!(" 2 "), 2),
            (json!("2.0"), 2),
            (json!(2.0), 2),
            (json!(true), 1),
            (json!(false), 1),
            (json!(0), 1),
            (json!(-7), 1),
            (json!(21), 20),
            (json!(u64::MAX), 20),
            (json!(1e300), 20),
            (json!(-1e300), 1),
            (json!("99999999999999999999999"), 20),
            (json!("-99999999999999999999999"), 1),
        ] {
            assert_eq!(k_of(value.clone()), Ok(expected), "{value}");
        }
        assert_eq!(k(&Map::new(), 5, 20), Ok(5));
        assert_eq!(k(&Map::new(), 7, 20), Ok(7));
        assert_eq!(k(&Map::new(), 5, 3), Ok(3), "the default is clamped too");
    }

    #[test]
    fn what_is_no_integer_is_a_fault() {
        for value in [
            json!(2.5),
            json!(null),
            json!("two"),
            json!(""),
            json!("-"),
            json!("1.5"),
            json!("0x1"),
            json!([1]),
            json!({}),
        ] {
            assert!(k_of(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn a_query_is_a_string_and_nothing_else() {
        assert_eq!(query(&Map::from_iter([("query".to_owned(), json!(""))])), Ok(""));
        for value in [json!(null), json!(1), json!(["a"])] {
            assert!(query(&Map::from_iter([("query".to_owned(), value)])).is_err());
        }
        assert!(query(&Map::new()).is_err());
    }
}
