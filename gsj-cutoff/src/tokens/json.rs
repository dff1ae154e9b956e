//! A JSON reader that refuses a name given twice, at any depth.
//!
//! Two readers of one token must see the same claims; with a name given twice, one takes the first and another the
//! last.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// A JSON value, as far as tokens need one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// Written with a fraction or an exponent, or beyond 64 bits.
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
}

impl Json {
    pub(super) fn parse_object(bytes: &[u8]) -> Option<BTreeMap<String, Self>> {
        match serde_json::from_slice(bytes) {
            Ok(Self::Map(map)) => Some(map),
            Ok(_) | Err(_) => None,
        }
    }

    /// Whole seconds; a fraction is cut off, as the numeric dates of RFC 7519 may have one.
    pub(super) fn seconds(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            #[expect(clippy::cast_possible_truncation, reason = "saturates, which is what a far date means")]
            Self::Float(number) if number.is_finite() => Some(number.trunc() as i64),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Json, E> {
        Ok(i64::try_from(number).map_or(Json::Int(i64::MAX), Json::Int))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Float(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, Json>()? {
            if map.insert(name, value).is_some() {
                return Err(de::Error::custom("a name is given twice"));
            }
        }
        Ok(Json::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_name_is_refused_at_any_depth() {
        assert!(Json::parse_object(br#"{"a":1,"b":2}"#).is_some());
        assert!(Json::parse_object(br#"{"a":1,"a":1}"#).is_none());
        assert!(Json::parse_object(br#"{"x":[{"a":1,"\u0061":2}]}"#).is_none());
    }

    #[test]
    fn seconds_come_from_numbers_only() {
        assert_eq!(Json::Int(5).seconds(), Some(5));
        assert_eq!(Json::Float(5.9).seconds(), Some(5));
        assert_eq!(Json::Text("5".into()).seconds(), None);
        assert_eq!(Json::Bool(true).seconds(), None);
        assert_eq!(Json::Null.seconds(), None);
    }
}
