//! JSON as Python's `json.dumps` writes it: what a chat template's `tojson` puts into a prompt, so each blank counts.

use std::fmt::Write as _;

use crate::json::{Array, Object, StrRef, ValueRef, float_text};

/// The arguments of `json.dumps` that change its text.
///
/// The default is that of chat templates: `ensure_ascii=False`, one line, `", "` and `": "`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dumps {
    /// What each level is indented by; `Some` puts each item on a line of its own, even when empty.
    pub indent: Option<String>,
    /// Between items, and between key and value; by default `", "` (`","` with an indent) and `": "`.
    pub separators: Option<(String, String)>,
    /// Writes characters beyond ASCII as `\uXXXX`.
    pub ensure_ascii: bool,
    /// Orders members by the code points of their keys.
    pub sort_keys: bool,
}

enum Frame<'v> {
    Array(&'v Array<'v>, usize),
    Object { members: Vec<(StrRef<'v>, ValueRef<'v>)>, next: usize },
}

impl Dumps {
    /// Writes a value. Lone surrogates are written as `\uXXXX`: no text holds them.
    ///
    /// ```
    /// use gsj_trace::{json::Value, rerender::Dumps};
    /// let value = Value::parse(br#"{"b":[1,2.0,1e20],"a":"<\u00e9>"}"#)?;
    /// assert_eq!(Dumps::default().write(value.as_ref()), "{\"b\": [1, 2.0, 1e+20], \"a\": \"<\u{e9}>\"}");
    /// # Ok::<(), gsj_trace::json::ReadError>(())
    /// ```
    #[must_use]
    pub fn write(&self, value: ValueRef<'_>) -> String {
        let mut out = String::new();
        let mut open: Vec<Frame<'_>> = Vec::new();
        let mut next = Some(value);
        loop {
            if let Some(value) = next.take()
                && let Some(frame) = self.begin(value, &mut out)
            {
                open.push(frame);
            }
            let depth = open.len();
            let Some(frame) = open.last_mut() else { return out };
            next = match frame {
                Frame::Array(array, at) => {
                    let item = array.get(*at);
                    self.separate(item.is_some(), *at == 0, depth, &mut out);
                    *at += 1;
                    item
                }
                Frame::Object { members, next } => {
                    let member = members.get(*next).copied();
                    self.separate(member.is_some(), *next == 0, depth, &mut out);
                    *next += 1;
                    member.map(|(key, value)| {
                        self.string(key, &mut out);
                        out.push_str(self.separators.as_ref().map_or(": ", |(_, colon)| colon));
                        value
                    })
                }
            };
            if next.is_none() {
                out.push(if matches!(frame, Frame::Array(..)) { ']' } else { '}' });
                open.pop();
            }
        }
    }

    /// Writes what has no parts; opens the rest.
    fn begin<'v>(&self, value: ValueRef<'v>, out: &mut String) -> Option<Frame<'v>> {
        match value {
            ValueRef::Null => out.push_str("null"),
            ValueRef::Bool(b) => out.push_str(if b { "true" } else { "false" }),
            ValueRef::Int(n) => {
                let _ = write!(out, "{n}");
            }
            ValueRef::Float(x) if x.is_nan() => out.push_str("NaN"),
            ValueRef::Float(x) if x.is_infinite() => out.push_str(if x > 0.0 { "Infinity" } else { "-Infinity" }),
            ValueRef::Float(x) => out.push_str(&float_text(x)),
            ValueRef::Str(text) => self.string(text, out),
            ValueRef::Array(array) if array.is_empty() => out.push_str("[]"),
            ValueRef::Object(object) if object.is_empty() => out.push_str("{}"),
            ValueRef::Array(array) => {
                out.push('[');
                return Some(Frame::Array(array, 0));
            }
            ValueRef::Object(object) => {
                out.push('{');
                return Some(Frame::Object { members: self.members(object), next: 0 });
            }
        }
        None
    }

    fn members<'v>(&self, object: &'v Object<'v>) -> Vec<(StrRef<'v>, ValueRef<'v>)> {
        let mut members: Vec<_> = object.iter().collect();
        if self.sort_keys {
            members.sort_by_key(|(key, _)| *key);
        }
        members
    }

    fn separate(&self, more: bool, first: bool, depth: usize, out: &mut String) {
        if more && !first {
            match &self.separators {
                Some((comma, _)) => out.push_str(comma),
                None => out.push_str(if self.indent.is_some() { "," } else { ", " }),
            }
        }
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), if more { depth } else { depth.saturating_sub(1) }));
        }
    }

    fn string(&self, text: StrRef<'_>, out: &mut String) {
        out.push('"');
        for point in text.code_points() {
            match char::from_u32(point) {
                Some('"') => out.push_str("\\\""),
                Some('\\') => out.push_str("\\\\"),
                Some('\u{8}') => out.push_str("\\b"),
                Some('\t') => out.push_str("\\t"),
                Some('\n') => out.push_str("\\n"),
                Some('\u{c}') => out.push_str("\\f"),
                Some('\r') => out.push_str("\\r"),
                Some(c) if c < ' ' || (self.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                Some(c) => out.push(c),
                None => {
                    let _ = write!(out, "\\u{point:04x}");
                }
            }
        }
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    fn dump(json: &str, dumps: &Dumps) -> String {
        dumps.write(Value::parse(json.as_bytes()).expect("json").as_ref())
    }

    #[test]
    fn spacing_and_characters_are_pythons() {
        let json = "{\"b\": [1, 2.5, true, null], \"a\": \"<é&'>\u{7f}\\n\\/\", \"e\": {}, \"l\": []}";
        assert_eq!(
            dump(json, &Dumps::default()),
            "{\"b\": [1, 2.5, true, null], \"a\": \"<é&'>\u{7f}\\n/\", \"e\": {}, \"l\": []}"
        );
        let indented = Dumps { indent: Some("  ".to_owned()), ..Dumps::default() };
        assert_eq!(
            dump(r#"{"a": [1, 2], "b": {}, "c": [[]]}"#, &indented),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": [\n    []\n  ]\n}"
        );
        let tight = Dumps { separators: Some((",".to_owned(), ":".to_owned())), sort_keys: true, ..Dumps::default() };
        assert_eq!(dump(r#"{"b": [1, 2], "a": {"z": 1, "y": NaN}}"#, &tight), r#"{"a":{"y":NaN,"z":1},"b":[1,2]}"#);
        let ascii = Dumps { ensure_ascii: true, ..Dumps::default() };
        assert_eq!(dump("\"é\u{7f}😀\"", &ascii), r#""\u00e9\u007f\ud83d\ude00""#);
    }

    #[test]
    fn numbers_are_pythons() {
        assert_eq!(
            dump(
                "[1e20, 1e-7, 0.0001, 1e15, 1e16, 1.0, -0.0, -1e999, 123456789012345678901234567890]",
                &Dumps::default()
            ),
            "[1e+20, 1e-07, 0.0001, 1000000000000000.0, 1e+16, 1.0, -0.0, -Infinity, 123456789012345678901234567890]"
        );
    }
}
