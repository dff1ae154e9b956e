//! The reference page and the JSON Schema, generated from the types.

use serde_json::Value;

use super::Config;

/// The JSON Schema of `rollout.yaml`.
pub fn schema() -> Value {
    schemars::schema_for!(Config).to_value()
}

/// The page `docs/configuration.md`: every key with its type, default and meaning.
pub fn reference_markdown() -> String {
    let schema = schema();
    let defaults = serde_json::to_value(Config::default()).unwrap_or(Value::Null);
    let mut page = String::from(
        "# Configuration\n\nWritten by `cargo xtask docs` from the types; don't edit it.\n\n\
         One YAML file, given as `--config rollout.yaml`. `gsj config check rollout.yaml` shows it with every default \
         filled in, `gsj config schema` prints its JSON Schema. Relative paths start at the file's folder. Unknown keys \
         are refused, except in `polar`, `runtime`, `harness` and `receiver`, where keys of the Python reference that \
         mean nothing here are named in a warning, and in `user`, which is kept and never read. Secrets stand nowhere in \
         the file: it holds the names of environment variables.\n",
    );
    let Some(sections) = schema.pointer("/properties").and_then(Value::as_object) else { return page };
    for (name, section) in sections {
        let about = text(section, "description");
        page.extend(["\n## `", name, "`\n\n", about, "\n"]);
        let Some(definition) = resolve(&schema, section) else { continue };
        let default = defaults.get(name).cloned().unwrap_or(Value::Null);
        let mut rows = Vec::new();
        collect(&schema, definition, "", &default, &mut rows);
        if rows.is_empty() {
            continue;
        }
        page += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
        for row in rows {
            page += &row;
        }
    }
    page
}

fn collect(schema: &Value, definition: &Value, prefix: &str, default: &Value, rows: &mut Vec<String>) {
    let Some(members) = definition.get("properties").and_then(Value::as_object) else { return };
    for (key, member) in members {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let default = default.get(key).cloned().unwrap_or(Value::Null);
        let target = resolve(schema, member);
        if target.is_some_and(|t| t.get("properties").is_some()) {
            if let Some(target) = target {
                collect(schema, target, &path, &default, rows);
            }
            continue;
        }
        let kind = kind(schema, member);
        let about = text(member, "description").replace('\n', " ").replace('|', "\\|");
        let shown = if default.is_null() { String::new() } else { format!("`{default}`") };
        rows.push(format!("| `{path}` | {kind} | {shown} | {about} |\n"));
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn resolve<'v>(schema: &'v Value, member: &'v Value) -> Option<&'v Value> {
    if member.get("properties").is_some() {
        return Some(member);
    }
    let pointer = member.get("$ref")?.as_str()?.strip_prefix('#')?;
    schema.pointer(pointer)
}

fn kind(schema: &Value, member: &Value) -> String {
    if let Some(target) = resolve(schema, member) {
        let words: Vec<String> = target
            .get("oneOf")
            .and_then(Value::as_array)
            .map(|options| {
                options
                    .iter()
                    .filter_map(|o| o.get("const").and_then(Value::as_str))
                    .map(|w| format!("`{w}`"))
                    .collect()
            })
            .unwrap_or_default();
        if !words.is_empty() {
            return words.join(" or ");
        }
    }
    match member.get("type") {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(many)) => {
            many.iter().filter_map(Value::as_str).filter(|w| *w != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}
