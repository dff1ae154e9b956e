//! Rendering a chat template as the engines do.

use minijinja::value::{Kwargs, Serde, Value as Item};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, syntax::SyntaxConfig};
use serde_json::{Map, Value};

use super::{ScriptedError, python_json};

/// Steps that one rendering may take: a bound, not a measure.
const FUEL: u64 = 200_000_000;

pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    end_of_turn: &'static str,
}

impl ChatTemplate {
    pub(super) fn compile(source: &str, end_of_turn: &'static str) -> Result<Self, ScriptedError> {
        let wrong = |e: Error| ScriptedError::Template { reason: format!("{e:#}") };
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", |message: String| -> Result<Item, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_template_owned("chat", without_generation_marks(source)).map_err(wrong)?;
        Ok(Self { environment, end_of_turn })
    }

    /// The prompt of a chat request.
    pub(super) fn render(&self, request: &Value) -> Result<String, String> {
        let mut context = Map::new();
        if let Some(Value::Object(more)) = request.get("chat_template_kwargs") {
            context.extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let prompted = |key: &str| request.get(key).cloned();
        context.insert("messages".to_owned(), messages.iter().map(message).collect());
        context.insert("tools".to_owned(), tools(request));
        let generate = prompted("add_generation_prompt").unwrap_or(Value::Bool(true));
        context.insert("add_generation_prompt".to_owned(), generate);
        context.insert("bos_token".to_owned(), Value::String(String::new()));
        context.insert("eos_token".to_owned(), Value::String(self.end_of_turn.to_owned()));
        let shown = |e: Error| format!("render the chat template: {e:#}");
        let template = self.environment.get_template("chat").map_err(shown)?;
        template.render(Item::from(Serde(Value::Object(context)))).map_err(shown)
    }
}

/// No tools at all is what a template tests for, not an empty list.
fn tools(request: &Value) -> Value {
    match request.get("tools") {
        Some(Value::Array(list)) if !list.is_empty() => Value::Array(list.clone()),
        _ => Value::Null,
    }
}

/// A message as the engines hand it to a template: text parts joined, tool arguments parsed,
/// reasoning under the name that templates know.
fn message(message: &Value) -> Value {
    let Value::Object(fields) = message else { return message.clone() };
    let mut fields = fields.clone();
    fields.insert("content".to_owned(), Value::String(flat(message.get("content"))));
    if let Some(reasoning) = fields.remove("reasoning").filter(|r| !r.is_null()) {
        fields.insert("reasoning_content".to_owned(), reasoning);
    }
    if let Some(Value::Array(calls)) = fields.get_mut("tool_calls") {
        for call in calls {
            let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
            if let Some(parsed) = arguments.as_str().and_then(|text| serde_json::from_str(text).ok()) {
                *arguments = parsed;
            }
        }
    }
    Value::Object(fields)
}

/// The text of a message's content: a string, or text parts on lines of their own.
pub(super) fn flat(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

fn tojson(value: Item, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let sorted: Option<bool> = options.get("sort_keys")?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    if ascii == Some(true) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: ensure_ascii=True is not supported"));
    }
    if sorted == Some(true) {
        let mut plain =
            serde_json::to_value(&value).map_err(|e| Error::new(ErrorKind::InvalidOperation, e.to_string()))?;
        plain.sort_all_objects();
        return Ok(python_json::write(&plain, indent));
    }
    Ok(python_json::write(&value, indent))
}

/// Turns `{% generation %}` marks, which only training code understands, into blocks without
/// effect, keeping the whitespace control of each mark.
fn without_generation_marks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        let Some(end) = tag.find("%}") else { break };
        let (tag, after) = tag.split_at(end + 2);
        let word = tag[2..end].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        out.push_str(before);
        match word {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(source: &str, request: &Value) -> Result<String, String> {
        ChatTemplate::compile(source, "<|im_end|>").map_err(|e| e.to_string())?.render(request)
    }

    #[test]
    fn marks_of_training_templates_have_no_effect() {
        assert_eq!(
            without_generation_marks("a{%- generation %}b{% endgeneration -%}c{% if x %}d"),
            "a{%- if true %}b{% endif -%}c{% if x %}d"
        );
    }

    #[test]
    fn tools_are_written_as_python_writes_them_and_never_escaped() {
        let request = json!({"messages": [], "tools": [{"z": "<a> & 'b'", "a": 1}]});
        let text = render("{% for t in tools %}{{ t | tojson }}{% endfor %}", &request).unwrap();
        assert_eq!(text, r#"{"z": "<a> & 'b'", "a": 1}"#);
    }

    #[test]
    fn arguments_arrive_parsed_parts_joined_and_switches_reach_the_template() {
        let request = json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                {"role": "assistant", "content": null, "reasoning": "r",
                 "tool_calls": [{"function": {"name": "f", "arguments": "{\"k\":[1,2]}"}}]},
            ],
            "chat_template_kwargs": {"enable_thinking": false},
        });
        let source = "{% for m in messages %}[{{ m.content }}|{{ m.reasoning_content }}]{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ enable_thinking }}{{ add_generation_prompt }}{{ 'ab'.startswith('a') }}";
        assert_eq!(render(source, &request).unwrap(), "[one\ntwo|][|r]{\"k\": [1, 2]}FalseTrueTrue");
    }

    #[test]
    fn a_template_may_refuse() {
        let error = render("{{ raise_exception('no system role') }}", &json!({"messages": []})).unwrap_err();
        assert!(error.contains("no system role"), "{error}");
        assert!(render("{% if %}", &json!({})).is_err(), "a broken template is named at the start");
    }
}
