//! Strings as Python's `repr` writes them.

use std::fmt::Write as _;

use super::StrRef;
use crate::unicode::is_printable;

/// Appends a string in quotes, with Python's choice of quotes and escapes.
pub(crate) fn quote_python(text: StrRef<'_>, out: &mut String) {
    let has = |quote: char| text.code_points().any(|point| point == u32::from(quote));
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    out.push(quote);
    for point in text.code_points() {
        match char::from_u32(point) {
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(c) if c == quote || c == '\\' => out.extend(['\\', c]),
            Some(c) if is_printable(c) => out.push(c),
            _ => push_escape(point, out),
        }
    }
    out.push(quote);
}

fn push_escape(point: u32, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match point {
        0..=0xff => write!(out, "\\x{point:02x}"),
        0x100..=0xffff => write!(out, "\\u{point:04x}"),
        _ => write!(out, "\\U{point:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::super::Value;

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (json, text) in [
            (r#"{"x": [1, 1.0, true, null, NaN, -Infinity]}"#, "{'x': [1, 1.0, True, None, nan, -inf]}"),
            (r#"["it's", "say \"hi\"", "both ' and \""]"#, r#"["it's", 'say "hi"', 'both \' and "']"#),
            (
                r#"["\n\t\\", "\u0000\u001b\u007f", "\u0378x", "\udc00x", "\u2028", "\u00ad\u00a0"]"#,
                r"['\n\t\\', '\x00\x1b\x7f', '\u0378x', '\udc00x', '\u2028', '\xad\xa0']",
            ),
            (
                r#"["\u00ff\u4e2d\ud83d\ude00", "\u0301", "e\u0301", "\udbff\udfff"]"#,
                "['\u{ff}\u{4e2d}\u{1f600}', '\u{301}', 'e\u{301}', '\\U0010ffff']",
            ),
            ("[[1, 2], [], {}]", "[[1, 2], [], {}]"),
            ("\"a'b\"", "a'b"),
            ("null", "None"),
        ] {
            assert_eq!(Value::parse(json.as_bytes()).expect("json").as_ref().python_text(), text);
        }
    }
}
