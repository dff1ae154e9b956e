//! JSON as Python's `json.dumps(.., ensure_ascii=False)` writes it: what a chat template's
//! `tojson` puts into a prompt, so each blank counts.

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io;

struct Style {
    indent: Option<usize>,
    depth: usize,
    filled: bool,
}

impl Style {
    fn line(&self, w: &mut (impl io::Write + ?Sized)) -> io::Result<()> {
        let Some(indent) = self.indent else { return Ok(()) };
        w.write_all(b"\n")?;
        w.write_all(" ".repeat(indent * self.depth).as_bytes())
    }

    fn open<W: io::Write + ?Sized>(&mut self, w: &mut W, mark: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        w.write_all(mark)
    }

    fn close<W: io::Write + ?Sized>(&mut self, w: &mut W, mark: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.filled {
            self.line(w)?;
        }
        self.filled = true;
        w.write_all(mark)
    }

    fn item<W: io::Write + ?Sized>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.filled = true;
        if !first {
            w.write_all(if self.indent.is_some() { b"," } else { b", " })?;
        }
        self.line(w)
    }
}

impl Formatter for Style {
    fn write_f64<W: io::Write + ?Sized>(&mut self, w: &mut W, value: f64) -> io::Result<()> {
        w.write_all(float(value).as_bytes())
    }
    fn begin_array<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"[")
    }
    fn end_array<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"]")
    }
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.item(w, first)
    }
    fn begin_object<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.open(w, b"{")
    }
    fn end_object<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        self.close(w, b"}")
    }
    fn begin_object_key<W: io::Write + ?Sized>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.item(w, first)
    }
    fn begin_object_value<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// Python's `repr` of a finite float.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
    }
}

/// Writes `value`; with an indent as Python does, one item a line.
pub(super) fn write<T: Serialize>(value: &T, indent: Option<usize>) -> String {
    let mut out = Vec::new();
    let style = Style { indent, depth: 0, filled: false };
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, style);
    if value.serialize(&mut serializer).is_err() {
        // Only a map with keys that are no strings gets here, which no JSON request holds.
        return "null".to_owned();
    }
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spacing_and_characters_are_pythons() {
        let value = json!({"b": [1, 2.5, true, null], "a": "<é&'>\u{7f}\n", "e": {}, "l": []});
        assert_eq!(
            write(&value, None),
            "{\"b\": [1, 2.5, true, null], \"a\": \"<é&'>\u{7f}\\n\", \"e\": {}, \"l\": []}"
        );
        assert_eq!(
            write(&json!({"a": [1, 2], "b": {}, "c": [[]]}), Some(2)),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": [\n    []\n  ]\n}"
        );
    }

    #[test]
    fn floats_are_pythons() {
        let shown: Vec<String> = [1e20, 1e-7, 0.0001, 1e15, 1e16, 1.0, -0.5, 1.5e300].map(float).into();
        assert_eq!(shown, ["1e+20", "1e-07", "0.0001", "1000000000000000.0", "1e+16", "1.0", "-0.5", "1.5e+300"]);
    }
}
