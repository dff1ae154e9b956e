//! A message, as far as anything here reads it.
//!
//! A body of four mebibytes can hold millions of values, each of which would take a hundred times its length in memory.
//! What is asked for has a dozen names at three depths; everything else is passed over.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The names that mean something in a message, in its params, or in what these hold.
const NAMES: [&str; 18] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "name",
    "arguments",
    "query",
    "k",
    "from_year",
    "to_year",
    "court",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "version",
    "uri",
];
/// How deep members are read: of the message, of its params, of a call's arguments.
const DEEPEST: usize = 2;

/// Reads a JSON text. Of an object only members that mean something are kept, of two with one name the last; lists, and
/// objects deeper than arguments, are left empty. `None` for what is no JSON.
pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_str(std::str::from_utf8(bytes).ok()?);
    let message = Kept { depth: 0 }.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(message)
}

#[derive(Clone, Copy)]
struct Kept {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Kept {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kept {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if self.depth <= DEEPEST && NAMES.contains(&name.as_str()) {
                kept.insert(name, members.next_value_seed(Self { depth: self.depth + 1 })?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_call_says_is_kept_and_nothing_else() {
        let text = r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":-5,"x":[1e999],"method":"tools/call","params":{"_meta":5,
            "name":"search_case","arguments":{"k":[1,2,[3]],"query":"\u00e4 {","timestep":9,"from_year":1e300,
            "court":{"court":{"court":1}},"to_year":null}}}"#;
        assert_eq!(
            read(text.as_bytes()),
            Some(json!({"jsonrpc": "2.0", "id": -5, "method": "tools/call", "params": {"name": "search_case",
                "arguments": {"k": [], "query": "ä {", "from_year": 1e300, "court": {}, "to_year": null}}}))
        );
        assert_eq!(read(b" [{\"id\":1}] "), Some(json!([])));
        assert_eq!(read(b"18446744073709551615"), Some(json!(u64::MAX)));
    }

    #[test]
    fn every_argument_that_a_tool_declares_is_read() {
        let listing = crate::Tools::builtin().expect("shipped").listing();
        let tools = listing["tools"].as_array().or(listing.as_array()).expect("a list of tools");
        let declared = tools.iter().filter_map(|tool| tool.pointer("/inputSchema/properties")?.as_object());
        let names: Vec<&String> = declared.flat_map(Map::keys).collect();
        assert!(names.len() > tools.len(), "{names:?}");
        assert!(names.iter().all(|name| NAMES.contains(&name.as_str())), "{names:?}");
    }

    #[test]
    fn what_is_passed_over_must_be_json_too() {
        for text in ["", "{", "{} x", "[1,]", r#"{"x":tru}"#, r#"{"x":"a}"#, r#"{"x":01}"#, "\u{feff}{}", "[NaN]"] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read(b"{\"x\":\"\xff\"}"), None);
        assert_eq!(read("[".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn a_body_full_of_values_is_not_held() {
        for unit in ["0,", "[],", "{},", r#"{"k":{"k":{}}},"#] {
            let text = format!(r#"{{"id":1,"params":{{"arguments":{{"k":[{}0]}}}}}}"#, unit.repeat(100_000));
            assert_eq!(read(text.as_bytes()), Some(json!({"id": 1, "params": {"arguments": {"k": []}}})));
        }
    }
}
