//! Values between JSON, templates and Python's way of writing them.

use std::sync::Arc;

use minijinja::value::{Object, Value as Item, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::json::{Int, Value, ValueRef, float_text, quote_python};

/// Containers inside each other that a template gets or gives.
const MAX_DEPTH: usize = 256;

/// What keeps a JSON value out of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    LoneSurrogate,
    TooDeep,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LoneSurrogate => f.write_str("it holds a lone surrogate, which no tokenizer takes"),
            Self::TooDeep => write!(f, "it is nested deeper than {MAX_DEPTH} levels"),
        }
    }
}

/// An integer beyond 128 bits: printed, never computed with.
#[derive(Debug)]
struct BigInt(String);

impl Object for BigInt {
    fn repr(self: &Arc<Self>) -> minijinja::value::ObjectRepr {
        minijinja::value::ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON value as a template sees it.
pub(super) fn item(value: ValueRef<'_>) -> Result<Item, Unfit> {
    item_at(value, 0)
}

fn item_at(value: ValueRef<'_>, depth: usize) -> Result<Item, Unfit> {
    if depth > MAX_DEPTH {
        return Err(Unfit::TooDeep);
    }
    Ok(match value {
        ValueRef::Null => Item::from(()),
        ValueRef::Bool(b) => Item::from(b),
        ValueRef::Int(n) => match (n.as_i64(), n.to_string()) {
            (Some(n), _) => Item::from(n),
            (None, digits) => digits.parse::<i128>().map_or_else(|_| Item::from_object(BigInt(digits)), Item::from),
        },
        ValueRef::Float(x) => Item::from(x),
        ValueRef::Str(text) => Item::from(text.as_str().ok_or(Unfit::LoneSurrogate)?),
        ValueRef::Array(array) => {
            Item::from(array.iter().map(|item| item_at(item, depth + 1)).collect::<Result<Vec<_>, _>>()?)
        }
        ValueRef::Object(object) => {
            let mut members = Vec::with_capacity(object.len());
            for (key, value) in object {
                members.push((key.as_str().ok_or(Unfit::LoneSurrogate)?, item_at(value, depth + 1)?));
            }
            Item::from_pairs(members)
        }
    })
}

/// A template's value as JSON, as `json.dumps` understands it.
pub(super) fn plain(item: &Item) -> Result<Value<'static>, Error> {
    plain_at(item, 0)
}

fn plain_at(item: &Item, depth: usize) -> Result<Value<'static>, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::BadSerialization, Unfit::TooDeep.to_string()));
    }
    Ok(match item.kind() {
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(item.is_true()),
        ValueKind::Number => number(item),
        ValueKind::String => Value::from(item.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for part in item.try_iter()?.checked() {
                items.push(plain_at(&part?, depth + 1)?);
            }
            Value::from(items)
        }
        ValueKind::Map => {
            let mut members = crate::json::Object::default();
            for key in item.try_iter()?.checked() {
                let key = key?;
                let value = plain_at(&item.get_item(&key)?, depth + 1)?;
                members.insert(self::key(&key)?, value);
            }
            Value::from(members)
        }
        _ => match item.downcast_object_ref::<BigInt>() {
            Some(BigInt(digits)) => Int::from_decimal(digits).map_or(Value::Null, Value::Int),
            None => return Err(unserializable(item)),
        },
    })
}

fn unserializable(item: &Item) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("a value of the kind {} has no JSON", item.kind()))
}

fn number(item: &Item) -> Value<'static> {
    if item.is_integer() {
        return Int::from_decimal(&item.to_string()).map_or(Value::Null, Value::Int);
    }
    Value::Float(f64::try_from(item.clone()).unwrap_or(f64::NAN))
}

/// A key as `json.dumps` writes it.
fn key(item: &Item) -> Result<String, Error> {
    match item.kind() {
        ValueKind::String => Ok(item.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if item.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => Ok(plain_at(item, 0)?.to_json()),
        _ => Err(unserializable(item)),
    }
}

/// Python's `str()`: what `{{ .. }}` prints.
pub(super) fn text(item: &Item) -> Result<String, Error> {
    if item.kind() == ValueKind::String {
        return Ok(item.as_str().unwrap_or_default().to_owned());
    }
    let mut out = String::new();
    repr(item, 0, &mut out)?;
    Ok(out)
}

fn repr(item: &Item, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, Unfit::TooDeep.to_string()));
    }
    match item.kind() {
        ValueKind::Undefined => {}
        ValueKind::Number if !item.is_integer() => {
            out.push_str(&float_text(f64::try_from(item.clone()).unwrap_or(f64::NAN)));
        }
        ValueKind::String => quote_python(item.as_str().unwrap_or_default().into(), out),
        ValueKind::Seq => {
            let marks = if item.is_tuple() { ['(', ')'] } else { ['[', ']'] };
            out.push(marks[0]);
            for (at, part) in item.try_iter()?.checked().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                repr(&part?, depth + 1, out)?;
            }
            if item.is_tuple() && item.len() == Some(1) {
                out.push(',');
            }
            out.push(marks[1]);
        }
        ValueKind::Map => {
            out.push('{');
            for (at, key) in item.try_iter()?.checked().enumerate() {
                let key = key?;
                out.push_str(if at > 0 { ", " } else { "" });
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&item.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&item.to_string()),
    }
    Ok(())
}

/// Python's `str.isspace`.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Methods of Python's values: those of `minijinja-contrib`, with Python's own idea of whitespace, and a few more.
pub(super) fn method(state: &mut State<'_, '_>, value: &Item, name: &str, args: &[Item]) -> Result<Item, Error> {
    if let (Some(text), true) = (value.as_str(), value.kind() == ValueKind::String)
        && let Some(answer) = of_text(text, name, args)
    {
        return Ok(answer);
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

fn of_text(text: &str, name: &str, args: &[Item]) -> Option<Item> {
    let string = |at: usize| args.get(at).and_then(Item::as_str);
    let tuple = |parts: [&str; 3]| Item::from(minijinja::value::Tuple::from(parts.map(Item::from)));
    Some(match (name, args.len()) {
        ("strip", 0) => Item::from(text.trim_matches(is_space)),
        ("lstrip", 0) => Item::from(text.trim_start_matches(is_space)),
        ("rstrip", 0) => Item::from(text.trim_end_matches(is_space)),
        ("isspace", 0) => Item::from(!text.is_empty() && text.chars().all(is_space)),
        ("split", 0) => text.split(is_space).filter(|part| !part.is_empty()).map(Item::from).collect(),
        ("splitlines", 0) => lines(text).into_iter().map(Item::from).collect(),
        ("removeprefix", 1) => Item::from(text.strip_prefix(string(0)?).unwrap_or(text)),
        ("removesuffix", 1) => Item::from(text.strip_suffix(string(0)?).unwrap_or(text)),
        ("partition", 1) => {
            let by = string(0).filter(|by| !by.is_empty())?;
            text.split_once(by).map_or_else(|| tuple([text, "", ""]), |(before, after)| tuple([before, by, after]))
        }
        ("rpartition", 1) => {
            let by = string(0).filter(|by| !by.is_empty())?;
            text.rsplit_once(by).map_or_else(|| tuple(["", "", text]), |(before, after)| tuple([before, by, after]))
        }
        _ => return None,
    })
}

/// Python's `str.splitlines`.
fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends) {
        let (line, end) = rest.split_at(at);
        out.push(line);
        let length = if end.starts_with("\r\n") { 2 } else { end.chars().next().map_or(0, char::len_utf8) };
        rest = end.split_at(length).1;
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}
