//! Byte ranges of members and elements of a JSON text.
//!
//! A result is judged over the bytes in which it arrived. Parsing and writing it again would change floats, drop
//! repeated keys and fail on the `NaN` that a broken engine may have produced, so the answer is only cut.
//! Cutting looks at strings and brackets; whether a piece is JSON is decided by whoever reads it.

use std::ops::Range;

/// The members of the top-level object, keys unescaped, in order; `None` when the text is no object.
pub(crate) fn members(text: &[u8]) -> Option<Vec<(String, Range<usize>)>> {
    let mut at = open(text, b'{')?;
    let mut out = Vec::new();
    if text.get(at) == Some(&b'}') {
        return only_space(text, at + 1).then_some(out);
    }
    loop {
        let key_end = string_end(text, at)?;
        let key: String = serde_json::from_slice(&text[at..key_end]).ok()?;
        at = space(text, key_end);
        if text.get(at) != Some(&b':') {
            return None;
        }
        let start = space(text, at + 1);
        let end = value_end(text, start)?;
        out.push((key, start..end));
        at = space(text, end);
        match text.get(at)? {
            b',' => at = space(text, at + 1),
            b'}' => return only_space(text, at + 1).then_some(out),
            _ => return None,
        }
    }
}

/// The elements of the top-level array; `None` when the text is no array.
pub(crate) fn elements(text: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut at = open(text, b'[')?;
    let mut out = Vec::new();
    if text.get(at) == Some(&b']') {
        return only_space(text, at + 1).then_some(out);
    }
    loop {
        let end = value_end(text, at)?;
        out.push(at..end);
        at = space(text, end);
        match text.get(at)? {
            b',' => at = space(text, at + 1),
            b']' => return only_space(text, at + 1).then_some(out),
            _ => return None,
        }
    }
}

/// Steps over the opening bracket and the space around it.
fn open(text: &[u8], bracket: u8) -> Option<usize> {
    let start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let at = space(text, start);
    (text.get(at) == Some(&bracket)).then(|| space(text, at + 1))
}

fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn only_space(text: &[u8], at: usize) -> bool {
    space(text, at) == text.len()
}

/// The position behind the string that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The position behind the value that begins at `at`; the nesting is counted, not followed, so depth costs no stack.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let start = at;
    let mut at = at;
    let mut depth = 0usize;
    loop {
        match text.get(at) {
            Some(b'"') => at = string_end(text, at)?,
            Some(b'[' | b'{') => {
                depth += 1;
                at += 1;
                continue;
            }
            Some(b']' | b'}') if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') | None if depth == 0 => {
                return (at > start).then_some(at);
            }
            Some(_) => {
                at += 1;
                if depth == 0 {
                    continue;
                }
            }
            None => return None,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &str) -> Option<Vec<&str>> {
        elements(text.as_bytes()).map(|found| found.into_iter().map(|r| &text[r]).collect())
    }

    #[test]
    fn elements_are_the_bytes_between_the_commas() {
        assert_eq!(cut("[]"), Some(vec![]));
        assert_eq!(
            cut(" [ 1 , -2.50e3,\"a,]\\\"\" , {\"k\":[NaN]}\n,[ ] ] "),
            Some(vec!["1", "-2.50e3", "\"a,]\\\"\"", "{\"k\":[NaN]}", "[ ]"])
        );
        for bad in ["", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[\"a]", "[\"a\\\"]", "[1]x", "{}", "[{]", "[[1]"] {
            assert_eq!(cut(bad), None, "{bad}");
        }
    }

    #[test]
    fn members_keep_order_and_unescape_keys() {
        let text = "{\"a\" : 1, \"\\u0062\":{\"a\":2},\"c\":\"}\"}";
        let found: Vec<(String, &str)> =
            members(text.as_bytes()).unwrap().into_iter().map(|(k, r)| (k, &text[r])).collect();
        assert_eq!(found, [("a".into(), "1"), ("b".into(), "{\"a\":2}"), ("c".into(), "\"}\"")]);
        for bad in ["", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":1}}"] {
            assert_eq!(members(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn cutting_never_panics(text in "[\\[\\]{}\",: a1\\\\]{0,40}") {
            let _ = (members(text.as_bytes()), elements(text.as_bytes()));
        }

        #[test]
        fn written_values_are_cut_where_they_were_joined(
            values in proptest::collection::vec(prop_oneof![
                "[a-z\"\\\\\\[\\]{},]{0,8}".prop_map(serde_json::Value::from),
                any::<i32>().prop_map(serde_json::Value::from),
                proptest::collection::vec("[\\[\\]\"]{0,3}", 0..4).prop_map(serde_json::Value::from),
            ], 0..8)
        ) {
            let written: Vec<String> = values.iter().map(ToString::to_string).collect();
            let text = format!("[{}]", written.join(","));
            prop_assert_eq!(cut(&text), Some(written.iter().map(String::as_str).collect::<Vec<_>>()));
        }
    }
}
