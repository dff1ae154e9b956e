//! The declarations of the four tools, which are data.

use crate::RetrievalError;
use serde_json::{Map, Value};

/// The tools' names in the order in which they are always listed.
pub const TOOL_NAMES: [&str; 4] = ["search_case", "search_decisions", "case_status", "decision_stats"];

/// Ours, in our own words.
const BUILTIN: &[u8] = include_bytes!("../data/tools.json");

/// What `tools/list` answers: names and order are fixed, descriptions and schemas come from a file and are served
/// member for member as they stand there.
#[derive(Debug, Clone, PartialEq)]
pub struct Tools {
    list: Vec<Value>,
}

impl Tools {
    /// The declarations that gsj ships.
    ///
    /// # Errors
    /// Never, unless the shipped file was edited into another form.
    pub fn builtin() -> Result<Self, RetrievalError> {
        Self::from_bytes(BUILTIN)
    }

    /// Reads declarations: a list of tools as MCP's `tools/list` gives it, bare, as `{"tools": [..]}`, or that object as
    /// member `tools_list` of another.
    ///
    /// # Errors
    /// Says which tool has another name, place or form than the fixed four.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RetrievalError> {
        let bad = |problem: String| RetrievalError::Tools { problem };
        let document: Value =
            serde_json::from_slice(bytes).map_err(|error| bad(format!("not valid JSON ({error})")))?;
        let inner = document.get("tools_list").unwrap_or(&document);
        let Value::Array(list) = inner.get("tools").unwrap_or(inner) else {
            return Err(bad("no list of tools found, neither bare nor as `tools` or `tools_list.tools`".into()));
        };
        let names: Vec<&str> =
            list.iter().map(|tool| tool.get("name").and_then(Value::as_str).unwrap_or("?")).collect();
        if names != TOOL_NAMES {
            return Err(bad(format!("found {}, expected exactly {}", names.join(", "), TOOL_NAMES.join(", "))));
        }
        for (name, tool) in names.iter().zip(list) {
            if !tool.get("description").is_some_and(Value::is_string) {
                return Err(bad(format!("`{name}` has no description")));
            }
            let schema = tool.get("inputSchema");
            if schema.and_then(|schema| schema.get("type")).and_then(Value::as_str) != Some("object") {
                return Err(bad(format!("`{name}` has no inputSchema of type object")));
            }
        }
        Ok(Self { list: list.clone() })
    }

    /// The result of `tools/list`.
    #[must_use]
    pub fn listing(&self) -> Value {
        Value::Object(Map::from_iter([("tools".to_owned(), Value::Array(self.list.clone()))]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_declarations_are_usable() {
        let tools = Tools::builtin().expect("shipped data is valid");
        assert_eq!(tools.listing()["tools"].as_array().expect("a list").len(), 4);
    }

    #[test]
    fn the_three_forms_are_one() {
        let tools = Tools::builtin().expect("valid");
        let listing = tools.listing();
        let bare = serde_json::to_vec(&listing["tools"]).expect("serialises");
        let nested = serde_json::to_vec(&serde_json::json!({"about": "x", "tools_list": listing})).expect("serialises");
        assert_eq!(Tools::from_bytes(&bare).expect("bare"), tools);
        assert_eq!(Tools::from_bytes(&nested).expect("nested"), tools);
    }

    #[test]
    fn member_order_and_unknown_members_survive() {
        let declare = |name: &&str| {
            format!(r#"{{"zzz":1.0,"description":"d","inputSchema":{{"type":"object"}},"name":"{name}","aaa":null}}"#)
        };
        let text = format!("[{}]", TOOL_NAMES.iter().map(declare).collect::<Vec<_>>().join(","));
        let tools = Tools::from_bytes(text.as_bytes()).expect("valid");
        assert_eq!(tools.listing().to_string(), format!("{{\"tools\":{text}}}"));
    }

    #[test]
    fn another_roster_is_refused_by_name() {
        let mut listing = Tools::builtin().expect("valid").listing();
        listing["tools"].as_array_mut().expect("a list").swap(0, 1);
        let error = Tools::from_bytes(listing.to_string().as_bytes()).expect_err("order is fixed");
        assert!(error.to_string().contains("found search_decisions, search_case"), "{error}");
        for bytes in ["", "{}", "[]", "{\"tools\":{}}", "[1,2,3,4]"] {
            assert!(Tools::from_bytes(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
