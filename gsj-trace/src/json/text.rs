//! Strings that may hold lone surrogates.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

/// A string of code points U+0000 to U+10FFFF, lone surrogates included.
///
/// Ordinary text is a (borrowed or owned) `str`. Only a string that really holds a surrogate is
/// kept as generalised UTF-8 bytes, in which a surrogate is its three-byte form and two adjacent
/// ones are never fused.
#[derive(Clone)]
pub struct Str<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    Utf8(Cow<'a, str>),
    Wide(Box<[u8]>),
}

/// A borrowed [`Str`], cheap to copy.
#[derive(Clone, Copy)]
pub struct StrRef<'v>(RefRepr<'v>);

#[derive(Clone, Copy)]
enum RefRepr<'v> {
    Utf8(&'v str),
    Wide(&'v [u8]),
}

impl<'a> Str<'a> {
    /// The borrowed form.
    pub fn as_ref(&self) -> StrRef<'_> {
        StrRef(match &self.0 {
            Repr::Utf8(text) => RefRepr::Utf8(text),
            Repr::Wide(bytes) => RefRepr::Wide(bytes),
        })
    }

    /// The text, unless it holds a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        self.as_ref().as_str()
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Str<'static> {
        Str(match self.0 {
            Repr::Utf8(text) => Repr::Utf8(Cow::Owned(text.into_owned())),
            Repr::Wide(bytes) => Repr::Wide(bytes),
        })
    }

    /// Joins parts without a separator; adjacent lone surrogates stay apart. A single part is
    /// borrowed.
    pub fn concat(parts: impl IntoIterator<Item = StrRef<'a>>) -> Self {
        let mut parts = parts.into_iter();
        let (Some(first), second) = (parts.next(), parts.next()) else {
            return Self::from("");
        };
        let Some(second) = second else {
            return first.to_str();
        };
        let mut bytes = Vec::with_capacity(first.as_bytes().len() + second.as_bytes().len());
        for part in [first, second].into_iter().chain(parts) {
            bytes.extend_from_slice(part.as_bytes());
        }
        Self::from_generalized(bytes)
    }

    /// Takes bytes that are UTF-8 except that surrogates may stand in their three-byte form.
    pub(super) fn from_generalized(bytes: Vec<u8>) -> Self {
        Self(match String::from_utf8(bytes) {
            Ok(text) => Repr::Utf8(Cow::Owned(text)),
            Err(error) => Repr::Wide(error.into_bytes().into_boxed_slice()),
        })
    }
}

impl Default for Str<'_> {
    fn default() -> Self {
        Self::from("")
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Repr::Utf8(Cow::Borrowed(text)))
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Self(Repr::Utf8(Cow::Owned(text)))
    }
}

impl<'a> From<&'a String> for Str<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl<'a> From<Cow<'a, str>> for Str<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Repr::Utf8(text))
    }
}

impl<'v> From<&'v str> for StrRef<'v> {
    fn from(text: &'v str) -> Self {
        Self(RefRepr::Utf8(text))
    }
}

impl<'v> From<StrRef<'v>> for Str<'v> {
    fn from(text: StrRef<'v>) -> Self {
        text.to_str()
    }
}

impl<'v> StrRef<'v> {
    /// The text, unless it holds a lone surrogate.
    pub fn as_str(self) -> Option<&'v str> {
        match self.0 {
            RefRepr::Utf8(text) => Some(text),
            RefRepr::Wide(_) => None,
        }
    }

    /// Generalised UTF-8: byte order is code point order.
    pub fn as_bytes(self) -> &'v [u8] {
        match self.0 {
            RefRepr::Utf8(text) => text.as_bytes(),
            RefRepr::Wide(bytes) => bytes,
        }
    }

    /// Whether there is no code point at all.
    pub fn is_empty(self) -> bool {
        self.as_bytes().is_empty()
    }

    /// The same string as a [`Str`] that borrows from where this one does.
    pub fn to_str(self) -> Str<'v> {
        Str(match self.0 {
            RefRepr::Utf8(text) => Repr::Utf8(Cow::Borrowed(text)),
            RefRepr::Wide(bytes) => Repr::Wide(bytes.into()),
        })
    }

    /// The code points, surrogates included.
    pub fn code_points(self) -> impl Iterator<Item = u32> + 'v {
        let bytes = self.as_bytes();
        let mut at = 0;
        std::iter::from_fn(move || {
            let (point, length) = decode(bytes.get(at..)?)?;
            at += length;
            Some(point)
        })
    }

    /// The first `count` code points.
    pub fn prefix(self, count: usize) -> Str<'v> {
        match self.0 {
            RefRepr::Utf8(text) => {
                let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
                Str::from(&text[..end])
            }
            RefRepr::Wide(bytes) => {
                let mut end = 0;
                for _ in 0..count {
                    let Some((_, length)) = decode(&bytes[end..]) else { break };
                    end += length;
                }
                Str::from_generalized(bytes[..end].to_vec())
            }
        }
    }

    /// Text for people and findings: a lone surrogate becomes the six characters of its JSON
    /// escape.
    pub fn escaped(self) -> Cow<'v, str> {
        self.replacing_surrogates(|point, out| {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{point:04x}");
        })
    }

    /// Text for searching: a lone surrogate becomes U+FFFD, which is no digit, space or quote
    /// either.
    pub fn lossy(self) -> Cow<'v, str> {
        self.replacing_surrogates(|_, out| out.push(char::REPLACEMENT_CHARACTER))
    }

    fn replacing_surrogates(self, replace: impl Fn(u32, &mut String)) -> Cow<'v, str> {
        match self.0 {
            RefRepr::Utf8(text) => Cow::Borrowed(text),
            RefRepr::Wide(_) => {
                let mut out = String::new();
                for point in self.code_points() {
                    match char::from_u32(point) {
                        Some(c) => out.push(c),
                        None => replace(point, &mut out),
                    }
                }
                Cow::Owned(out)
            }
        }
    }
}

/// Decodes one code point of well-formed generalised UTF-8; `None` at the end.
fn decode(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    let (initial, length) = match first {
        0x00..=0x7f => return Some((u32::from(first), 1)),
        0x80..=0xdf => (u32::from(first & 0x1f), 2),
        0xe0..=0xef => (u32::from(first & 0x0f), 3),
        _ => (u32::from(first & 0x07), 4),
    };
    let rest = bytes.get(1..length)?;
    Some((rest.iter().fold(initial, |point, byte| point << 6 | u32::from(byte & 0x3f)), length))
}

impl PartialEq for StrRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for StrRef<'_> {}

impl PartialEq<str> for StrRef<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for StrRef<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Hash for StrRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Ord for StrRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for StrRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Str<'_> {}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_ref() == *other
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_ref() == **other
    }
}

impl fmt::Debug for StrRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.escaped(), f)
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high() -> Str<'static> {
        Str::from_generalized(vec![0xed, 0xa0, 0xbd])
    }

    fn low() -> Str<'static> {
        Str::from_generalized(vec![0xed, 0xb8, 0x80])
    }

    #[test]
    fn adjacent_surrogates_are_not_fused() {
        let (high, low) = (high(), low());
        let joined = Str::concat([high.as_ref(), low.as_ref()]);
        assert_eq!(joined.as_str(), None, "a pair made by joining is still two lone surrogates");
        assert_eq!(joined.as_ref().code_points().collect::<Vec<_>>(), [0xd83d, 0xde00]);
        assert_eq!(joined.as_ref().escaped(), "\\ud83d\\ude00");
    }

    #[test]
    fn prefix_counts_code_points() {
        let text = Str::concat([StrRef::from("é🔎"), high().as_ref(), StrRef::from("z")]).into_owned();
        assert_eq!(text.as_ref().prefix(2), "é🔎");
        assert_eq!(text.as_ref().prefix(3).as_ref().escaped(), "é🔎\\ud83d");
        assert_eq!(StrRef::from("añb").prefix(9), "añb");
    }

    #[test]
    fn one_part_is_borrowed() {
        let text = String::from("abc");
        let joined = Str::concat([StrRef::from(text.as_str())]);
        assert!(std::ptr::eq(joined.as_str().expect("utf-8"), text.as_str()), "no copy");
    }
}
