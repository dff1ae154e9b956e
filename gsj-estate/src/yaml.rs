//! YAML as the corpus files use it: one document, positions kept, no name twice, no word that changes its meaning
//! between YAML 1.1 and 1.2.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most nodes that a document may have, aliases counted by what they stand for.
const MOST_NODES: usize = 200_000;
/// The deepest nesting.
const DEEPEST: usize = 64;
/// The longest document, in bytes.
pub(crate) const LONGEST: u64 = 16 << 20;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    /// From 1.
    pub(crate) line: usize,
}

/// A value; of scalars that are no text only the kind is kept, as no corpus file has a place for one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Text(String),
    /// A boolean or number, as it was written.
    Other {
        written: String,
        kind: &'static str,
    },
    /// A bare word that the two versions read differently.
    Ambiguous {
        written: String,
        old: &'static str,
        new: &'static str,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Why a text is not one YAML document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) line: usize,
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn map(&self) -> Option<&[(Self, Self)]> {
        match &self.value {
            Value::Map(members) => Some(members),
            _ => None,
        }
    }

    /// The member of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.map()?.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// What stands here, for a message that wants something else.
    pub(crate) fn described(&self) -> String {
        use crate::names::shown;
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Text(text) => format!("`{}`", shown(text)),
            Value::Other { written, kind } => format!("`{}`, which is {kind}", shown(written)),
            Value::Ambiguous { written, old, new } => {
                format!("`{}`, which YAML 1.1 reads as {old} and YAML 1.2 as {new} (put it in quotes)", shown(written))
            }
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(members) => format!("a mapping of {}", members.len()),
        }
    }
}

/// Reads one document; `None` when there is nothing but comments.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    if let Some((at, character)) = text.char_indices().find(|(_, character)| !is_printable(*character)) {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Fault {
            what: format!("holds the character U+{:04X}, which YAML does not allow", u32::from(character)),
            line,
        });
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| Fault { what: crate::names::shown(&error.info()), line: error.marker().line() })?;
        builder.take(event, span.start.line())?;
    }
    Ok(builder.root)
}

fn is_printable(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    documents: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
}

/// A list or map being read.
struct Open {
    items: Vec<Node>,
    is_map: bool,
    anchor: usize,
    line: usize,
    /// The builder's count of nodes when it began.
    before: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), Fault> {
        let fault = |what: &str| Fault { what: what.to_owned(), line };
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fault("holds more than one document"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value =
                    scalar(text, style, tag.as_deref()).ok_or_else(|| fault("has a tag that is not understood"))?;
                self.put(Node { value, line }, anchor, 1)?;
            }
            Event::SequenceStart(_, anchor, tag) => self.begin(false, anchor, tag.as_deref(), line)?,
            Event::MappingStart(_, anchor, tag) => self.begin(true, anchor, tag.as_deref(), line)?,
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Err(fault("ends what it did not begin")) };
                let size = self.nodes - open.before + 1;
                let (anchor, node) = (open.anchor, open.close()?);
                self.nodes = self.nodes.saturating_sub(size - 1);
                self.put(node, anchor, size)?;
            }
            Event::Alias(anchor) => {
                let (node, size) =
                    self.anchors.get(&anchor).cloned().ok_or_else(|| fault("has an alias inside of what it names"))?;
                self.put(node, 0, size)?;
            }
            Event::UnresolvedAlias(_) => return Err(fault("has an alias that names nothing")),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, is_map: bool, anchor: usize, tag: Option<&Tag>, line: usize) -> Result<(), Fault> {
        let expected = if is_map { "map" } else { "seq" };
        if tag.is_some_and(|tag| !tag.is_yaml_core_schema_tag(expected)) {
            return Err(Fault { what: "has a tag that is not understood".into(), line });
        }
        if self.open.len() >= DEEPEST {
            return Err(Fault { what: format!("is nested more than {DEEPEST} deep"), line });
        }
        self.open.push(Open { items: Vec::new(), is_map, anchor, line, before: self.nodes });
        Ok(())
    }

    fn put(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), Fault> {
        self.nodes += size;
        if self.nodes > MOST_NODES {
            return Err(Fault { what: format!("stands for more than {MOST_NODES} values"), line: node.line });
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}

impl Open {
    fn close(self) -> Result<Node, Fault> {
        let line = self.line;
        if !self.is_map {
            return Ok(Node { value: Value::List(self.items), line });
        }
        let mut members: Vec<(Node, Node)> = Vec::with_capacity(self.items.len() / 2);
        let mut seen = BTreeMap::new();
        let mut items = self.items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            // Keys that are no text are compared by how they read; the corpus has a place for none of them.
            let name = match &key.value {
                Value::Text(text) => format!("t{text}"),
                other => format!("o{other:?}"),
            };
            if let Some(first) = seen.insert(name, key.line) {
                let what = format!("has the key {} twice, first in line {first}", key.described());
                return Err(Fault { what, line: key.line });
            }
            members.push((key, value));
        }
        Ok(Node { value: Value::Map(members), line })
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Option<Value> {
    let other = |kind| Value::Other { written: text.to_string(), kind };
    if let Some(tag) = tag {
        return match tag.core_suffix() {
            Some("str") => Some(Value::Text(text.into_owned())),
            Some("null") => Some(Value::Null),
            Some("bool") => Some(other("a boolean")),
            Some("int" | "float") => Some(other("a number")),
            // The tag `!` alone says: no guessing.
            None if tag.to_string() == "!" => Some(Value::Text(text.into_owned())),
            _ => None,
        };
    }
    if style != ScalarStyle::Plain {
        return Some(Value::Text(text.into_owned()));
    }
    let (old, new) = (words::read_as_1_1(&text), words::read_as_1_2(&text));
    Some(match (old, new) {
        (old, new) if old != new => {
            Value::Ambiguous { written: text.into_owned(), old: old.described(), new: new.described() }
        }
        (words::Kind::Text, _) => Value::Text(text.into_owned()),
        (words::Kind::Null, _) => Value::Null,
        (kind, _) => other(kind.described()),
    })
}

/// How the two versions of YAML read a bare word.
mod words {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Kind {
        Text,
        Null,
        Bool,
        /// A whole number; with its value where that is small, since `010` is 8 to one version and 10 to the other.
        Int(Option<i128>),
        Float,
        Date,
        Merge,
        Default,
    }

    impl Kind {
        pub(super) fn described(self) -> &'static str {
            match self {
                Self::Text => "text",
                Self::Null => "nothing",
                Self::Bool => "a boolean",
                Self::Int(_) | Self::Float => "a number",
                Self::Date => "a date",
                Self::Merge => "a merge key",
                Self::Default => "a default key",
            }
        }
    }

    /// YAML 1.1, as its widest-used reader has it.
    pub(super) fn read_as_1_1(word: &str) -> Kind {
        match word {
            "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
            "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE"
            | "on" | "On" | "ON" | "off" | "Off" | "OFF" => Kind::Bool,
            "<<" => Kind::Merge,
            "=" => Kind::Default,
            _ if is_date(word) => Kind::Date,
            _ => old_number(word),
        }
    }

    /// The core schema of YAML 1.2.
    pub(super) fn read_as_1_2(word: &str) -> Kind {
        match word {
            "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return Kind::Bool,
            _ => {}
        }
        if let Some(digits) = word.strip_prefix("0o") {
            return if all(digits, |byte| matches!(byte, b'0'..=b'7')) {
                Kind::Int(radix(digits, 8))
            } else {
                Kind::Text
            };
        }
        if let Some(digits) = word.strip_prefix("0x") {
            return if all(digits, |byte| byte.is_ascii_hexdigit()) {
                Kind::Int(radix(digits, 16))
            } else {
                Kind::Text
            };
        }
        let unsigned = unsigned(word);
        if all(unsigned, |byte| byte.is_ascii_digit()) {
            return Kind::Int(radix(unsigned, 10));
        }
        if is_special_float(unsigned, word) || is_core_float(unsigned) { Kind::Float } else { Kind::Text }
    }

    fn unsigned(word: &str) -> &str {
        word.strip_prefix(['-', '+']).unwrap_or(word)
    }

    fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
        !text.is_empty() && text.bytes().all(allowed)
    }

    fn radix(digits: &str, radix: u32) -> Option<i128> {
        i128::from_str_radix(&digits.replace('_', ""), radix).ok()
    }

    fn is_special_float(unsigned: &str, word: &str) -> bool {
        matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN")
    }

    /// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
    fn is_core_float(unsigned: &str) -> bool {
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
            None => (unsigned, None),
        };
        let digit = |byte: u8| byte.is_ascii_digit();
        let mantissa_fits = match mantissa.split_once('.') {
            Some(("", fraction)) => all(fraction, digit),
            Some((whole, fraction)) => all(whole, digit) && fraction.bytes().all(digit),
            None => all(mantissa, digit),
        };
        mantissa_fits && exponent.is_none_or(|exponent| all(self::unsigned(exponent), digit))
    }

    fn old_number(word: &str) -> Kind {
        let unsigned = unsigned(word);
        let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
        if let Some(digits) = unsigned.strip_prefix("0b") {
            return if all(digits, |b| matches!(b, b'0' | b'1' | b'_')) {
                Kind::Int(radix(digits, 2))
            } else {
                Kind::Text
            };
        }
        if let Some(digits) = unsigned.strip_prefix("0x") {
            let fits = all(digits, |b| b.is_ascii_hexdigit() || b == b'_');
            return if fits { Kind::Int(radix(digits, 16)) } else { Kind::Text };
        }
        if unsigned.len() > 1 && unsigned.starts_with('0') && all(&unsigned[1..], |b| matches!(b, b'0'..=b'7' | b'_')) {
            return Kind::Int(radix(&unsigned[1..], 8));
        }
        let first = unsigned.bytes().next();
        if unsigned == "0" || (first.is_some_and(|b| matches!(b, b'1'..=b'9')) && all(unsigned, digit_or_line)) {
            return Kind::Int(radix(unsigned, 10));
        }
        if is_special_float(unsigned, word) || is_old_float(unsigned) || is_base_60(unsigned) {
            return if unsigned.contains('.') { Kind::Float } else { Kind::Int(None) };
        }
        Kind::Text
    }

    /// Digits with a point, the exponent only with a sign; or a point and digits.
    fn is_old_float(unsigned: &str) -> bool {
        let Some((whole, rest)) = unsigned.split_once('.') else { return false };
        let (fraction, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
        let begins = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        let mantissa_fits = if whole.is_empty() {
            begins(fraction) && all(fraction, digit_or_line)
        } else {
            begins(whole) && all(whole, digit_or_line) && fraction.bytes().all(digit_or_line)
        };
        mantissa_fits
            && exponent.is_none_or(|exponent| {
                exponent.starts_with(['-', '+']) && all(&exponent[1..], |byte| byte.is_ascii_digit())
            })
    }

    /// Numbers to the base of sixty: `12:30:45`, the last part with a fraction or not.
    fn is_base_60(unsigned: &str) -> bool {
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let mut parts = whole.split(':');
        let Some(head) = parts.next() else { return false };
        let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
        let head_fits = all(head, digit_or_line)
            && head
                .bytes()
                .next()
                .is_some_and(|b| if fraction.is_some() { b.is_ascii_digit() } else { matches!(b, b'1'..=b'9') });
        let mut count = 0;
        let parts_fit = parts.all(|part| {
            count += 1;
            let bytes = part.as_bytes();
            match bytes.len() {
                1 => bytes[0].is_ascii_digit(),
                2 => matches!(bytes[0], b'0'..=b'5') && bytes[1].is_ascii_digit(),
                _ => false,
            }
        });
        head_fits && parts_fit && count > 0 && fraction.is_none_or(|fraction| fraction.bytes().all(digit_or_line))
    }

    /// `2026-01-01`, or a date and a time whose offset, if any, has a colon or no minutes.
    fn is_date(word: &str) -> bool {
        let Some((date, rest)) = cut_date(word) else { return false };
        if rest.is_empty() {
            return date;
        }
        let time = match rest.strip_prefix(['T', 't']) {
            Some(time) => time,
            None if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
            None => return false,
        };
        is_time(time)
    }

    /// Splits year, month and day off; tells whether month and day have two digits.
    fn cut_date(word: &str) -> Option<(bool, &str)> {
        let (year, rest) = cut_digits(word, 4, 4)?;
        let (month, rest) = cut_digits(rest.strip_prefix('-')?, 1, 2)?;
        let (day, rest) = cut_digits(rest.strip_prefix('-')?, 1, 2)?;
        Some((year == 4 && month == 2 && day == 2, rest))
    }

    fn cut_digits(text: &str, least: usize, most: usize) -> Option<(usize, &str)> {
        let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        (count >= least).then(|| (count, &text[count..]))
    }

    fn is_time(time: &str) -> bool {
        let rest = (|| {
            let (_, rest) = cut_digits(time, 1, 2)?;
            let (_, rest) = cut_digits(rest.strip_prefix(':')?, 2, 2)?;
            let (_, rest) = cut_digits(rest.strip_prefix(':')?, 2, 2)?;
            Some(rest)
        })();
        let Some(rest) = rest else { return false };
        let rest =
            rest.strip_prefix('.').map_or(rest, |fraction| fraction.trim_start_matches(|c: char| c.is_ascii_digit()));
        let rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() || rest == "Z" {
            return true;
        }
        let Some((_, rest)) = rest.strip_prefix(['-', '+']).and_then(|offset| cut_digits(offset, 1, 2)) else {
            return false;
        };
        rest.is_empty() || rest.strip_prefix(':').is_some_and(|minutes| cut_digits(minutes, 2, 2) == Some((2, "")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        parse(text).expect("one document").expect("not empty").value
    }

    #[test]
    fn words_that_the_versions_read_differently_are_told() {
        for word in [
            "yes",
            "No",
            "on",
            "OFF",
            "010",
            "1e3",
            "0o7",
            "1_000",
            "12:30:45",
            "2026-01-01",
            "<<",
            "=",
            "0b1",
            "09",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01 00:00:00 +00",
            "2026-13-45",
        ] {
            assert!(matches!(value(word), Value::Ambiguous { .. }), "{word}: {:?}", value(word));
        }
    }

    #[test]
    fn words_that_both_read_alike_are_what_they_are() {
        for word in ["true", "12", "-7", "0", "1.5", ".inf", "0x1F"] {
            assert!(matches!(value(word), Value::Other { .. }), "{word}: {:?}", value(word));
        }
        for word in ["2026-01-01T00:00:00 +0000", "a", "1.2.3", "y", "\"yes\"", "'010'", "!!str 5", "12:60", "2026-1-1"]
        {
            assert!(matches!(value(word), Value::Text(_)), "{word}: {:?}", value(word));
        }
        assert_eq!(value("~"), Value::Null);
        assert_eq!(parse("# only a comment\n").expect("fine"), None);
    }

    #[test]
    fn bombs_nests_and_doubles_are_refused_with_a_line() {
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
            let below = format!("*a{},", level - 1).repeat(9);
            format!("{text}a{level}: &a{level} [{below}]\n")
        });
        assert!(parse(&bomb).expect_err("too many values").what.contains("more than"));
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert_eq!(parse("a: 1\nb: 2\na: 3\n").expect_err("twice").line, 3);
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
        assert!(parse("a: \u{1}\n").is_err());
        assert!(parse("a: !custom x\n").is_err());
    }

    #[test]
    fn lines_are_kept() {
        let node = parse("a: 1\nb:\n  c: x\n").expect("fine").expect("there");
        assert_eq!(node.get("b").and_then(|b| b.get("c")).map(|c| c.line), Some(3));
    }
}
