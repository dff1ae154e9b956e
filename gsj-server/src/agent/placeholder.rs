//! `{name}` in a manifest's strings. A value that is put in is not looked at again, so that text from a
//! session can't name anything.

use std::collections::BTreeMap;

use serde_json::Value;

/// The parts of a text: literal, then the name of the placeholder that follows, if one does.
fn parts(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest.take()?;
        let mut from = 0;
        while let Some(open) = current[from..].find('{').map(|at| at + from) {
            let after = &current[open + 1..];
            let length = after
                .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
                .unwrap_or(after.len());
            if length > 0 && after[length..].starts_with('}') {
                rest = Some(&after[length + 1..]);
                return Some((&current[..open], Some(&after[..length])));
            }
            from = open + 1;
        }
        Some((current, None))
    })
}

/// The names used in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    parts(text).filter_map(|(_, name)| name)
}

/// Calls `each` with every string in a document.
pub(super) fn strings<'v>(document: &'v Value, each: &mut impl FnMut(&'v str)) {
    match document {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(members) => members.values().for_each(|value| strings(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The values of one session. A name without a value stays as it is written: the manifest's check has
/// refused those that can't have one.
pub(super) struct Values(pub(super) BTreeMap<String, Value>);

impl Values {
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (literal, name) in parts(text) {
            out.push_str(literal);
            match name.map(|name| (name, self.0.get(name))) {
                Some((_, Some(Value::String(value)))) => out.push_str(value),
                Some((_, Some(value))) => out.push_str(&value.to_string()),
                Some((name, None)) => {
                    out.push('{');
                    out.push_str(name);
                    out.push('}');
                }
                None => {}
            }
        }
        out
    }

    pub(super) fn document(&self, document: &Value) -> Value {
        match document {
            Value::String(text) => {
                let mut parts = parts(text);
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(("", Some(name))), Some(("", None)), None) => {
                        self.0.get(name).cloned().unwrap_or_else(|| document.clone())
                    }
                    _ => Value::String(self.text(text)),
                }
            }
            Value::Array(items) => items.iter().map(|item| self.document(item)).collect(),
            Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), self.document(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => document.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> Values {
        Values(BTreeMap::from([("model".to_owned(), json!("{tools}")), ("max_tokens".to_owned(), json!(8))]))
    }

    #[test]
    fn a_value_put_in_is_not_looked_at_again() {
        assert_eq!(values().text("a{model}b{max_tokens}{"), "a{tools}b8{");
    }

    #[test]
    fn a_string_that_is_one_placeholder_takes_the_type_of_the_value() {
        let document = json!({"n": "{max_tokens}", "s": "n={max_tokens}", "k": ["{model}"]});
        assert_eq!(values().document(&document), json!({"n": 8, "s": "n=8", "k": ["{tools}"]}));
    }

    #[test]
    fn port_placeholders_of_the_launcher_and_stray_braces_are_literal() {
        assert_eq!(names("{port:0} {} {A} {x").count(), 0);
        assert_eq!(values().text("{port:0} {} {{max_tokens}}"), "{port:0} {} {8}");
    }
}
