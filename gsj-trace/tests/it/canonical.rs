use gsj_trace::canonical::{canonical_sha256, canonical_text};
use gsj_trace::json::{Value, ValueRef};

use crate::vectors::lines;

fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = chunk.iter().fold(0_u32, |bits, b| bits << 6 | u32::from(digit(*b)));
        let bits = bits << (6 * (4 - chunk.len()));
        out.extend(&bits.to_be_bytes()[1..chunk.len()]);
    }
    out
}

#[test]
fn canonical_vectors() {
    let Some(lines) = lines("canonical.jsonl") else { return };
    assert!(lines.len() > 100, "the vector file is whole");
    for line in lines {
        let vector = Value::parse(line.as_bytes()).expect("vector line");
        let name = vector.get("name").and_then(ValueRef::as_str).expect("name");
        let bytes = match vector.get("input_text").and_then(ValueRef::as_text) {
            Some(text) => text.as_bytes().to_vec(),
            None => base64(vector.get("input_b64").and_then(ValueRef::as_str).expect("input")),
        };
        let expected = vector.get("expected").expect("expected");
        match Value::parse(&bytes) {
            Err(error) => {
                assert_eq!(Some(error.code()), expected.get("error").and_then(ValueRef::as_str), "{name}: {error}");
            }
            Ok(value) => {
                assert!(expected.get("error").is_none(), "{name}: should be refused");
                assert_eq!(
                    canonical_text(value.as_ref()).as_deref(),
                    expected.get("canonical").and_then(ValueRef::as_str),
                    "{name}"
                );
                assert_eq!(
                    canonical_sha256(value.as_ref()).as_deref(),
                    expected.get("sha256").and_then(ValueRef::as_str),
                    "{name}"
                );
                let owned = value.clone();
                assert!(owned == value, "{name}: a copy is equal");
                let text = value.to_json();
                assert!(
                    Value::parse(text.as_bytes()).expect("our own text") == value,
                    "{name}: writing and reading again"
                );
                assert!(
                    Value::parse(value.to_json_pretty().as_bytes()).expect("pretty") == value,
                    "{name}: the pretty form too"
                );
                assert!(value.into_owned() == owned, "{name}: an owned value is equal");
            }
        }
    }
}
