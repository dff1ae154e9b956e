//! One writer for every form of JSON text.

use std::fmt::Write as _;

use super::float::push_float;
use super::python::quote_python;
use super::scan;
use super::{Array, Items, StrRef, ValueRef};

/// How to write.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Members by code point order of their keys.
    sorted: bool,
    /// Refuse what has no standard form: NaN, infinities, lone surrogates.
    exact: bool,
    layout: Layout,
}

/// Blanks and notation.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// JSON without a blank.
    Compact,
    /// JSON with line feeds and indentation.
    Indented,
    /// Python's `repr`.
    Python,
}

impl Style {
    pub(crate) const CANONICAL: Self = Self { sorted: true, exact: true, layout: Layout::Compact };
    pub(super) const SHOWN: Self = Self { sorted: true, exact: false, layout: Layout::Compact };
    pub(super) const COMPACT: Self = Self { sorted: false, exact: false, layout: Layout::Compact };
    pub(super) const PRETTY: Self = Self { sorted: false, exact: false, layout: Layout::Indented };
    pub(super) const PYTHON: Self = Self { sorted: false, exact: false, layout: Layout::Python };
}

/// The value has no exact JSON text.
#[derive(Debug)]
pub(crate) struct Unwritable;

/// A container that is partly written.
struct Frame<'v> {
    rest: Rest<'v>,
    first: bool,
}

/// What is left to write of a container.
enum Rest<'v> {
    Items(Items<'v>),
    /// The members from this place of the pile on, the last one first.
    Members(usize),
}

/// Members to be written, those of the innermost object on top.
type Pile<'v> = Vec<(StrRef<'v>, ValueRef<'v>)>;

/// Appends a value.
pub(crate) fn write(value: ValueRef<'_>, style: Style, out: &mut String) -> Result<(), Unwritable> {
    let mut pile = Vec::new();
    let mut open: Vec<Frame<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take()
            && let Some(rest) = style.begin(value, &mut pile, out)?
        {
            open.push(Frame { rest, first: true });
        }
        let depth = open.len();
        let Some(Frame { rest, first }) = open.last_mut() else { return Ok(()) };
        next = match rest {
            Rest::Items(items) => {
                let item = items.next();
                style.separate(item.is_some(), *first, depth, out);
                if item.is_none() {
                    out.push(']');
                }
                item
            }
            Rest::Members(from) => {
                let member = if pile.len() > *from { pile.pop() } else { None };
                style.separate(member.is_some(), *first, depth, out);
                match member {
                    Some((key, value)) => {
                        style.string(key, out)?;
                        out.push_str(if style.layout == Layout::Compact { ":" } else { ": " });
                        Some(value)
                    }
                    None => {
                        out.push('}');
                        None
                    }
                }
            }
        };
        *first = false;
        if next.is_none() {
            open.pop();
        }
    }
}

impl Style {
    /// Writes a scalar, an empty container or a packed array whole; opens anything else.
    fn begin<'v>(
        self,
        value: ValueRef<'v>,
        pile: &mut Pile<'v>,
        out: &mut String,
    ) -> Result<Option<Rest<'v>>, Unwritable> {
        match value {
            ValueRef::Null | ValueRef::Bool(_) if self.layout == Layout::Python => out.push_str(&value.show()),
            ValueRef::Null => out.push_str("null"),
            ValueRef::Bool(b) => out.push_str(if b { "true" } else { "false" }),
            ValueRef::Int(n) => {
                let _ = write!(out, "{n}");
            }
            ValueRef::Float(x) => self.float(x, out)?,
            ValueRef::Str(s) => self.string(s, out)?,
            ValueRef::Array(array) if array.is_empty() => out.push_str("[]"),
            ValueRef::Object(object) if object.is_empty() => out.push_str("{}"),
            ValueRef::Array(array) if array.as_values().is_none() => self.packed(array, out)?,
            ValueRef::Array(array) => {
                out.push('[');
                return Ok(Some(Rest::Items(array.iter())));
            }
            ValueRef::Object(object) => {
                out.push('{');
                let from = pile.len();
                pile.extend(object.iter());
                let members = &mut pile[from..];
                if self.sorted {
                    members.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
                } else {
                    members.reverse();
                }
                return Ok(Some(Rest::Members(from)));
            }
        }
        Ok(None)
    }

    fn separate(self, more: bool, first: bool, depth: usize, out: &mut String) {
        if more && !first {
            out.push_str(if self.layout == Layout::Python { ", " } else { "," });
        }
        if self.layout == Layout::Indented {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", if more { depth } else { depth - 1 }));
        }
    }

    fn packed(self, array: &Array<'_>, out: &mut String) -> Result<(), Unwritable> {
        out.push('[');
        for (at, item) in array.iter().enumerate() {
            if at > 0 {
                out.push_str(if self.layout == Layout::Compact { "," } else { ", " });
            }
            match item {
                ValueRef::Int(n) => {
                    let _ = write!(out, "{n}");
                }
                other => {
                    self.begin(other, &mut Vec::new(), out)?;
                }
            }
        }
        out.push(']');
        Ok(())
    }

    fn float(self, x: f64, out: &mut String) -> Result<(), Unwritable> {
        if self.exact && !x.is_finite() {
            return Err(Unwritable);
        }
        let names =
            if self.layout == Layout::Python { ["nan", "inf", "-inf"] } else { ["NaN", "Infinity", "-Infinity"] };
        push_float(x, names, out);
        Ok(())
    }

    fn string(self, text: StrRef<'_>, out: &mut String) -> Result<(), Unwritable> {
        if self.layout == Layout::Python {
            quote_python(text, out);
            return Ok(());
        }
        out.push('"');
        match text.as_str() {
            Some(text) => escape(text, out),
            None if self.exact => return Err(Unwritable),
            None => {
                for point in text.code_points() {
                    match char::from_u32(point) {
                        Some(c) => escape(c.encode_utf8(&mut [0; 4]), out),
                        None => {
                            let _ = write!(out, "\\u{point:04x}");
                        }
                    }
                }
            }
        }
        out.push('"');
        Ok(())
    }
}

/// Appends the inside of a string, escaping only what must be.
fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(scan::plain_end(rest.as_bytes(), 0));
        out.push_str(plain);
        let Some(byte) = special.bytes().next() else { return };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            other => {
                let _ = write!(out, "\\u{other:04x}");
            }
        }
        rest = &special[1..];
    }
}
