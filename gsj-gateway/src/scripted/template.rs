//! Requests of the wire, put in front of a chat template.

use gsj_trace::json::{Object, Value as Document, ValueRef};
use gsj_trace::rerender::{self, Dumps, RenderOptions};
use serde_json::Value;

use super::ScriptedError;

/// The template that every prompt of the engine is rendered with.
pub(super) struct ChatTemplate {
    template: rerender::ChatTemplate,
    end_of_turn: &'static str,
}

impl ChatTemplate {
    pub(super) fn compile(source: &str, end_of_turn: &'static str) -> Result<Self, ScriptedError> {
        Ok(Self { template: rerender::ChatTemplate::new(source)?, end_of_turn })
    }

    /// The prompt of a chat request.
    pub(super) fn render(&self, request: &Value) -> Result<String, String> {
        let text = request.to_string();
        let request = document(&text)?;
        let mut variables = match request.get("chat_template_kwargs").map(ValueRef::to_owned) {
            Some(Document::Object(given)) => given,
            _ => Object::default(),
        };
        variables.insert("bos_token", "");
        variables.insert("eos_token", self.end_of_turn);
        let add_generation_prompt = request.get("add_generation_prompt").is_none_or(ValueRef::truthy);
        let options = RenderOptions { variables, add_generation_prompt, ..RenderOptions::default() };
        let messages: Vec<ValueRef<'_>> =
            request.get("messages").and_then(ValueRef::as_array).map(|list| list.iter().collect()).unwrap_or_default();
        self.template.render(&messages, request.get("tools"), &options).map_err(|error| error.to_string())
    }
}

/// The text of a message's content, its parts on lines of their own.
pub(super) fn flat(content: Option<&Value>) -> String {
    let text = content.map(ToString::to_string).unwrap_or_default();
    let content = document(&text).unwrap_or_default();
    rerender::flat(Some(content.as_ref()), "\n").as_ref().lossy().into_owned()
}

/// A value as a chat template's `tojson` writes it.
pub(super) fn python_json(value: &Value) -> String {
    let text = value.to_string();
    document(&text).map(|value| Dumps::default().write(value.as_ref())).unwrap_or(text)
}

fn document(text: &str) -> Result<Document<'_>, String> {
    Document::parse(text.as_bytes()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(source: &str, request: &Value) -> Result<String, String> {
        ChatTemplate::compile(source, "<|im_end|>").map_err(|e| e.to_string())?.render(request)
    }

    #[test]
    fn a_request_gives_the_template_what_an_engine_gives_it() {
        let request = json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                {"role": "assistant", "content": null, "reasoning": "r",
                 "tool_calls": [{"function": {"name": "f", "arguments": "{\"k\":[1,2.0]}"}}]},
            ],
            "tools": [{"z": "<a> & 'b'", "a": 1}],
            "chat_template_kwargs": {"enable_thinking": false},
        });
        let source = "{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}[{{ m.content }}|{{ m.reasoning_content }}]{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ enable_thinking }}{{ add_generation_prompt }}{{ bos_token }}{{ eos_token }}";
        assert_eq!(
            render(source, &request).unwrap(),
            r#"{"z": "<a> & 'b'", "a": 1}[one
two|][|r]{"k": [1, 2.0]}FalseTrue<|im_end|>"#
        );
        let history = json!({"messages": [], "add_generation_prompt": false});
        assert_eq!(render("{{ add_generation_prompt }}{{ tools }}", &history).unwrap(), "FalseNone");
    }

    #[test]
    fn a_template_may_refuse() {
        let error = render("{{ raise_exception('no system role') }}", &json!({"messages": []})).unwrap_err();
        assert!(error.contains("no system role"), "{error}");
        assert!(render("{% if %}", &json!({})).is_err(), "a broken template is named at the start");
    }

    #[test]
    fn content_is_read_from_texts_and_parts() {
        assert_eq!(flat(Some(&json!([{"type": "text", "text": "a"}, "b"]))), "a\nb");
        assert_eq!(flat(Some(&json!("a"))), "a");
        assert_eq!(flat(None), "");
    }
}
