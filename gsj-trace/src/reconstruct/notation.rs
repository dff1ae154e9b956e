//! The text of a finish reason.

use crate::json::ValueRef;

use super::session::depth;

/// Deeper values are written as canonical text, so that writing needs no deep stack.
const MAX_DEPTH: usize = 100;

/// A finish reason as text. Engines send strings; for anything else the recorded trajectories hold the reference's
/// notation, arrays and objects included, unlike in findings (section 2).
pub(super) fn finish_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Array(_) | ValueRef::Object(_) if depth(value) <= MAX_DEPTH => {
            let mut out = String::new();
            write(value, &mut out);
            out
        }
        _ => value.show(),
    }
}

fn write(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Array(array) => {
            out.push('[');
            for (i, element) in array.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write(element, out);
            }
            out.push(']');
        }
        ValueRef::Object(object) => {
            out.push('{');
            for (i, (key, member)) in object.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                quote(&key.escaped(), out);
                out.push_str(": ");
                write(member, out);
            }
            out.push('}');
        }
        ValueRef::Str(text) => quote(&text.escaped(), out),
        _ => out.push_str(&value.show()),
    }
}

/// Quotes as Python's `repr` does for the characters that occur in practice.
fn quote(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                let code = u32::from(c);
                out.push_str("\\x");
                out.extend([code >> 4, code & 15].into_iter().filter_map(|digit| char::from_digit(digit, 16)));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    #[test]
    fn containers_are_written_in_the_references_notation() {
        let of = |text: &str| finish_text(Value::parse(text.as_bytes()).unwrap().as_ref());
        assert_eq!(of("\"stop\""), "stop");
        assert_eq!(of("{\"a\":[1,1.0,true,null]}"), "{'a': [1, 1.0, True, None]}");
        assert_eq!(of("[\"it's\",\"'\\\"\",\"\\n\\u0001\"]"), "[\"it's\", '\\'\"', '\\n\\x01']");
    }
}
