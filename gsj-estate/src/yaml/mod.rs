//! YAML as the corpus files use it: one document, positions kept, no name twice, no word that changes its meaning
//! between YAML 1.1 and 1.2.

mod words;

use crate::names::shown;
use crate::report::At;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The longest document, in bytes.
pub(crate) const LONGEST: u64 = 16 << 20;
/// The deepest nesting, aliases counted by what they stand for.
const DEEPEST: usize = 64;
/// The most that a document may stand for: every value counts [`VALUE`] and its text, also where an alias repeats it.
const HEAVIEST: usize = 64 << 20;
/// What one value counts, about what it takes in memory.
const VALUE: usize = 256;

/// A value and where it stands. Copies share the value, so an alias costs no memory.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Rc<Value>,
    pub(crate) at: At,
}

/// A value; of scalars that are no text only the words are kept, as no corpus file has a place for one.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing, as it was written.
    Null(String),
    Text(String),
    /// A boolean or number, as it was written.
    Other {
        written: String,
        kind: String,
    },
    /// A bare word that the two versions read differently.
    Ambiguous {
        written: String,
        old: String,
        new: String,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Why a text is not one YAML document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) at: At,
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &*self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn map(&self) -> Option<&[(Self, Self)]> {
        match &*self.value {
            Value::Map(members) => Some(members),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(*self.value, Value::Null(_))
    }

    /// The member of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.map()?.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// What stands here, for a message that wants something else.
    pub(crate) fn described(&self) -> String {
        match &*self.value {
            Value::Null(written) if written.is_empty() => "nothing".into(),
            Value::Null(written) if written.eq_ignore_ascii_case("null") => format!("a bare `{written}`"),
            Value::Null(written) => format!("`{}`, which is null", shown(written)),
            Value::Text(text) if text.is_empty() => "an empty string".into(),
            Value::Text(text) => format!("`{}`", shown(text)),
            Value::Other { written, kind } => format!("`{}`, which is {kind}", shown(written)),
            Value::Ambiguous { written, old, new } => {
                format!("`{}`, which YAML 1.1 reads as {old} and YAML 1.2 as {new}: put it in quotes", shown(written))
            }
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(members) => format!("a mapping of {}", members.len()),
        }
    }

    /// A key for a message that does not want it: quotes would not make it right, and what else it is read as matters
    /// only where the two versions differ.
    pub(crate) fn as_words(&self) -> String {
        if let Value::Ambiguous { written, old, new } = &*self.value {
            return format!("`{}`, which YAML 1.1 reads as {old} and YAML 1.2 as {new}", shown(written));
        }
        match self.as_key() {
            Some((_, "")) => "(empty)".into(),
            Some((_, words)) => format!("`{}`", shown(words)),
            None => self.described(),
        }
    }

    /// What tells one key from another: its kind and its words.
    fn as_key(&self) -> Option<(bool, &str)> {
        match &*self.value {
            Value::Text(text) => Some((true, text)),
            Value::Null(written) | Value::Other { written, .. } | Value::Ambiguous { written, .. } => {
                Some((false, written))
            }
            Value::List(_) | Value::Map(_) => None,
        }
    }
}

/// Reads one document; `None` when there is nothing but comments.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    // Read and dropped, as both versions have it at the beginning of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The parser would drop another.
    if text.starts_with('\u{feff}') {
        return Err(Fault { what: "begins with more than one byte order mark".into(), at: At::START });
    }
    if let Some((at, character)) = text.char_indices().find(|(_, character)| !is_plain(*character)) {
        let code = u32::from(character);
        let what = if matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}') {
            format!(
                "holds the character U+{code:04X}, which YAML 1.1 reads as a line break and YAML 1.2 as text: \
                 write \"\\u{code:04X}\" in double quotes"
            )
        } else {
            format!("holds the character U+{code:04X}, which YAML does not allow")
        };
        return Err(Fault { what, at: At::of(&text[..at]) });
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let (info, said) = (error.info().to_string(), at(error.marker().line(), error.marker().col()));
            let at = if info.contains("tab") { tab_in_front(text, said.line).unwrap_or(said) } else { said };
            Fault { what: format!("is not YAML: {}", shown(&info)), at }
        })?;
        let event = match event {
            // The parser calls what is left out by a word that nobody wrote.
            Event::Scalar(_, ScalarStyle::Plain, anchor, tag) if span.is_empty() => {
                Event::Scalar("".into(), ScalarStyle::Plain, anchor, tag)
            }
            // It ends the last line of a block with a line feed also where the file has none.
            Event::Scalar(block, style @ (ScalarStyle::Literal | ScalarStyle::Folded), anchor, tag)
                if text.rsplit(['\n', '\r']).next().is_some_and(|last| !last.trim_matches(' ').is_empty())
                    && span.byte_range().is_some_and(|range| range.end == text.len()) =>
            {
                let block = block.strip_suffix('\n').map(|block| block.to_owned().into()).unwrap_or(block);
                Event::Scalar(block, style, anchor, tag)
            }
            event => event,
        };
        builder.take(event, at(span.start.line(), span.start.col()))?;
    }
    Ok(builder.root.map(|part| part.node))
}

/// The tab that indents a line or the next that is not blank: the parser finds it where the text before it ended.
fn tab_in_front(text: &str, line: usize) -> Option<At> {
    let joined = text.replace("\r\n", "\n");
    let (number, found) = (1..)
        .zip(joined.split(['\n', '\r']))
        .skip(line.saturating_sub(1))
        .filter(|(_, text)| !text.trim().is_empty())
        .take(2)
        .find(|(_, text)| text[..text.len() - text.trim_start().len()].contains('\t'))?;
    Some(At { line: number, column: found.chars().take_while(|character| *character != '\t').count() + 1 })
}

/// The parser counts lines from 1 and columns from 0.
fn at(line: usize, column: usize) -> At {
    At { line, column: column + 1 }
}

fn is_plain(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{fffd}' | '\u{10000}'..)
}

/// A node with what it counts.
#[derive(Clone)]
struct Part {
    node: Node,
    weight: usize,
    depth: usize,
}

#[derive(Default)]
struct Builder {
    root: Option<Part>,
    documents: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Part>,
}

/// A list or map being read.
struct Open {
    items: Vec<Node>,
    is_map: bool,
    anchor: usize,
    at: At,
    weight: usize,
    depth: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: At) -> Result<(), Fault> {
        let fault = |what: &str| Fault { what: what.to_owned(), at };
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fault("holds more than one document"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let weight = VALUE + text.len();
                let value =
                    scalar(text, style, tag.as_deref()).ok_or_else(|| fault("has a tag that is not understood"))?;
                self.put(Part { node: Node { value: Rc::new(value), at }, weight, depth: 0 }, anchor)?;
            }
            Event::SequenceStart(_, anchor, tag) => self.begin(false, anchor, tag.as_deref(), at)?,
            Event::MappingStart(_, anchor, tag) => self.begin(true, anchor, tag.as_deref(), at)?,
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Err(fault("ends what it did not begin")) };
                let anchor = open.anchor;
                self.put(open.close()?, anchor)?;
            }
            Event::Alias(anchor) => {
                let mut part =
                    self.anchors.get(&anchor).cloned().ok_or_else(|| fault("has an alias inside of what it names"))?;
                part.node.at = at;
                self.put(part, 0)?;
            }
            Event::UnresolvedAlias(_) => return Err(fault("has an alias that names nothing")),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, is_map: bool, anchor: usize, tag: Option<&Tag>, at: At) -> Result<(), Fault> {
        let expected = if is_map { "map" } else { "seq" };
        if tag.is_some_and(|tag| !tag.is_yaml_core_schema_tag(expected)) {
            return Err(Fault { what: "has a tag that is not understood".into(), at });
        }
        if self.open.len() >= DEEPEST {
            return Err(too_deep(at));
        }
        self.open.push(Open { items: Vec::new(), is_map, anchor, at, weight: VALUE, depth: 0 });
        Ok(())
    }

    fn put(&mut self, part: Part, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            self.anchors.insert(anchor, part.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(part);
            return Ok(());
        };
        open.weight = open.weight.saturating_add(part.weight);
        open.depth = open.depth.max(part.depth + 1);
        if open.weight > HEAVIEST {
            let what = format!("stands for more than {} MiB of values, aliases written out", HEAVIEST >> 20);
            return Err(Fault { what, at: part.node.at });
        }
        if open.depth >= DEEPEST {
            return Err(too_deep(part.node.at));
        }
        open.items.push(part.node);
        Ok(())
    }
}

fn too_deep(at: At) -> Fault {
    Fault { what: format!("is nested more than {DEEPEST} deep"), at }
}

impl Open {
    fn close(self) -> Result<Part, Fault> {
        let (at, weight, depth) = (self.at, self.weight, self.depth);
        let value = if self.is_map { Value::Map(members(self.items)?) } else { Value::List(self.items) };
        Ok(Part { node: Node { value: Rc::new(value), at }, weight, depth })
    }
}

/// Pairs keys with values, and refuses a key that stands twice.
fn members(items: Vec<Node>) -> Result<Vec<(Node, Node)>, Fault> {
    let mut members: Vec<(Node, Node)> = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        members.push((key, value));
    }
    let mut seen = BTreeMap::new();
    for (key, _) in &members {
        let Some(name) = key.as_key() else {
            return Err(Fault { what: format!("has {} where a key must stand", key.described()), at: key.at });
        };
        if let Some(first) = seen.insert(name, key.at.line) {
            let what = format!("has the key {} twice, first in line {first}", key.as_words());
            return Err(Fault { what, at: key.at });
        }
    }
    Ok(members)
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Option<Value> {
    let other = |kind: &str| Value::Other { written: text.to_string(), kind: kind.to_owned() };
    if let Some(tag) = tag {
        return match tag.core_suffix() {
            Some("str") => Some(Value::Text(text.into_owned())),
            Some("null") => Some(Value::Null(text.into_owned())),
            Some("bool") => Some(other("a boolean")),
            Some("int" | "float") => Some(other("a number")),

            _ => None,
        };
    }
    if style != ScalarStyle::Plain {
        return Some(Value::Text(text.into_owned()));
    }
    let (old, new) = (words::read_as_1_1(&text), words::read_as_1_2(&text));
    Some(match (old, new) {
        (words::Kind::Text, words::Kind::Text) => Value::Text(text.into_owned()),
        (words::Kind::Null, words::Kind::Null) => Value::Null(text.into_owned()),
        (old, new) if old == new => other(&old.described()),
        (old, new) => Value::Ambiguous { written: text.into_owned(), old: old.described(), new: new.described() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        let node = parse(text).expect("one document").expect("not empty");
        Rc::into_inner(node.value).expect("held once")
    }

    fn described(text: &str) -> String {
        parse(text).expect("one document").expect("not empty").described()
    }

    #[test]
    fn words_that_the_versions_read_differently_are_told_with_both_readings() {
        let words = [
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "N",
            "010",
            "1e3",
            "0o10",
            "1_000",
            "1:30",
            "12:30:45",
            "1:30.5",
            "-0x1F",
            "<<",
            "=",
            "0b11",
            "09",
            "+0777",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01 00:00:00 +00",
            "2026-13-45",
            "1.5e3",
        ];
        let lines: Vec<String> = words.iter().map(|word| described(word).replace(": put it in quotes", "")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        `yes`, which YAML 1.1 reads as the boolean true and YAML 1.2 as text
        `No`, which YAML 1.1 reads as the boolean false and YAML 1.2 as text
        `on`, which YAML 1.1 reads as the boolean true and YAML 1.2 as text
        `OFF`, which YAML 1.1 reads as the boolean false and YAML 1.2 as text
        `y`, which YAML 1.1 reads as the boolean true and YAML 1.2 as text
        `N`, which YAML 1.1 reads as the boolean false and YAML 1.2 as text
        `010`, which YAML 1.1 reads as the number 8 and YAML 1.2 as the number 10
        `1e3`, which YAML 1.1 reads as text and YAML 1.2 as a number
        `0o10`, which YAML 1.1 reads as text and YAML 1.2 as the number 8
        `1_000`, which YAML 1.1 reads as the number 1000 and YAML 1.2 as text
        `1:30`, which YAML 1.1 reads as the number 90 and YAML 1.2 as text
        `12:30:45`, which YAML 1.1 reads as the number 45045 and YAML 1.2 as text
        `1:30.5`, which YAML 1.1 reads as a number and YAML 1.2 as text
        `-0x1F`, which YAML 1.1 reads as the number -31 and YAML 1.2 as text
        `<<`, which YAML 1.1 reads as a merge key and YAML 1.2 as text
        `=`, which YAML 1.1 reads as a default key and YAML 1.2 as text
        `0b11`, which YAML 1.1 reads as the number 3 and YAML 1.2 as text
        `09`, which YAML 1.1 reads as text and YAML 1.2 as the number 9
        `+0777`, which YAML 1.1 reads as the number 511 and YAML 1.2 as the number 777
        `2026-01-01`, which YAML 1.1 reads as a date and YAML 1.2 as text
        `2026-01-01T00:00:00Z`, which YAML 1.1 reads as a date and YAML 1.2 as text
        `2026-01-01T00:00:00+00:00`, which YAML 1.1 reads as a date and YAML 1.2 as text
        `2026-01-01 00:00:00 +00`, which YAML 1.1 reads as a date and YAML 1.2 as text
        `2026-13-45`, which YAML 1.1 reads as a date and YAML 1.2 as text
        `1.5e3`, which YAML 1.1 reads as text and YAML 1.2 as a number
        ");
        for word in words {
            assert!(matches!(value(word), Value::Ambiguous { .. }), "{word}: {:?}", value(word));
            assert_eq!(value(&format!("\"{word}\"")), Value::Text(word.into()), "in quotes it is text");
        }
    }

    #[test]
    fn words_that_both_read_alike_are_what_they_are() {
        for word in ["true", "False", "12", "-7", "0", "1.5", ".inf", "-.INF", ".nan", "0x1F", "1.5e+3", ".5", "7."] {
            assert!(matches!(value(word), Value::Other { .. }), "{word}: {:?}", value(word));
        }
        for word in [
            "2026-01-01T00:00:00 +0000",
            "a",
            "1.2.3",
            "\"yes\"",
            "'010'",
            "!!str 5",
            "12:60",
            "2026-1-1",
            "yEs",
            "nULL",
            "0x",
            "0b",
            "0o8",
            "+",
            "-",
            ".",
            "1,000",
            "tRue",
            "1 2",
        ] {
            if word != "-" {
                assert!(matches!(value(word), Value::Text(_)), "{word}: {:?}", value(word));
            }
        }
        for word in ["~", "null", "Null", "NULL", "!!null x"] {
            assert!(matches!(value(word), Value::Null(_)), "{word}: {:?}", value(word));
        }
        assert_eq!((described("~"), described("null")), ("`~`, which is null".into(), "a bare `null`".into()));
        for text in ["---\n", "!!null\n", "&a\n"] {
            assert_eq!(described(text), "nothing");
        }
        let node = parse("a:\nb: [x, ~]\n").expect("fine").expect("there");
        assert_eq!(node.get("a").map(Node::described).as_deref(), Some("nothing"));
        assert_eq!(parse("# only a comment\n").expect("fine"), None);
        assert_eq!(parse("").expect("fine"), None);
    }

    #[test]
    fn aliases_cost_nothing_and_are_counted() {
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
            let below = format!("*a{},", level - 1).repeat(9);
            format!("{text}a{level}: &a{level} [{below}]\n")
        });
        assert!(parse(&bomb).expect_err("too many values").what.contains("stands for more than 64 MiB"));
        let text = format!("- &a {}\n{}", "x".repeat(1 << 20), "- *a\n".repeat(10_000));
        assert!(parse(&text).expect_err("too much text").what.contains("stands for more than 64 MiB"));
        let chain: String = (1..100_000)
            .map(|level| format!("- &a{level} [*a{}]\n", level - 1))
            .fold("- &a0 x\n".into(), |a, b| a + &b);
        assert!(parse(&chain).expect_err("too deep").what.contains("deep"));
        let node = parse("a: &x {k: v}\nb: *x\n").expect("fine").expect("there");
        assert_eq!(node.get("b"), node.get("a"));
        assert_eq!(node.get("b").map(|node| node.at), Some(At { line: 2, column: 4 }));
        assert!(parse("&a [*a]").is_err());
        assert!(parse("[*nothing]").is_err());
    }

    #[test]
    fn nests_doubles_and_foreign_tags_are_refused_with_their_place() {
        for text in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(50_000), "? ".repeat(100_000)] {
            assert!(parse(&text).is_err());
        }
        let fault = |text: &str| {
            let fault = parse(text).expect_err("refused");
            (fault.at.line, fault.at.column, fault.what)
        };
        let (line, column, what) = fault("a: 1\nb: 2\n  \na: 3\n");
        assert_eq!((line, column), (4, 1));
        assert!(what.contains("`a` twice, first in line 1"), "{what}");
        assert_eq!((fault("a: 1\n---\nb: 2\n").0, fault("x: {1: a, 1: b}\n").1), (2, 11));
        assert_eq!((fault("a: \u{1}\n").0, fault("a: \u{1}\n").1), (1, 4));
        assert_eq!(fault("é: \u{2028}\n").1, 4);
        assert!(fault("a: \u{2028}\n").2.contains("YAML 1.1 reads as a line break"));
        assert!(fault("? [a]\n: b\n").2.contains("where a key must stand"));
        assert!(parse("a: !custom x\n").is_err());
        assert!(parse("a: !!binary aGk=\n").is_err());
        assert_eq!(fault("\u{feff}\u{feff}a: 1\n").2, "begins with more than one byte order mark");
        assert_eq!((fault("a: 1\rb:\r  c: x\r\td: y\r").0, fault("a: 1\rb:\r  c: x\r\td: y\r").1), (4, 1));
        assert_eq!((fault("b:\r\n  - c\r\n  \t- d: y\r\n").0, fault("a: 1\nb: word\n\n \tc: y\n").0), (3, 4));
        assert!(parse("a: [\n").is_err());
        assert!(parse("---\na: 1\n...\n").is_ok());
    }

    #[test]
    fn marks_and_line_ends_are_read() {
        assert_eq!(value("\u{feff}a\n"), Value::Text("a".into()));
        assert_eq!(value("x\u{feff}y\n"), Value::Text("x\u{feff}y".into()), "a mark inside is text");
        let node = parse("a: |\r\n  one\r\n  two\r\nb: 1\r\n").expect("fine").expect("there");
        assert_eq!(node.get("a").and_then(Node::text), Some("one\ntwo\n"));
        for (text, wanted) in
            [("|\n x", "x"), ("|\n x\n", "x\n"), ("|-\n x", "x"), (">\n x\n y", "x y"), ("|+\n x", "x")]
        {
            assert_eq!(value(text), Value::Text(wanted.into()), "{text:?}");
        }
        let node = parse("a: 1\nb:\n  c: x\n").expect("fine").expect("there");
        assert_eq!(node.get("b").and_then(|b| b.get("c")).map(|c| c.at), Some(At { line: 3, column: 6 }));
    }
}
