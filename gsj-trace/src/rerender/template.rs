//! A chat template, rendered as `transformers` renders it.

use minijinja::value::{Kwargs, Value as Item, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, syntax::SyntaxConfig};

use super::clock::LocalTime;
use super::python_json::Dumps;
use super::{marks, message, python};
use crate::json::{Object, Value, ValueRef};

/// Steps that one rendering may take: a bound, not a measure. The longest recorded conversation takes some ten thousand.
const FUEL: u64 = 50_000_000;

/// Why a template cannot be compiled or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is no template.
    #[error("compile the chat template {name}, line {line}: {reason}")]
    Compile {
        /// What the template is called.
        name: String,
        /// The line, from 1; 0 when it is not known.
        line: usize,
        /// What the template engine says.
        reason: String,
    },
    /// The template failed, or refused the messages.
    #[error("render the chat template {name}, line {line}: {reason}")]
    Render {
        /// What the template is called.
        name: String,
        /// The line, from 1; 0 when it is not known.
        line: usize,
        /// What the template engine, or the template itself, says.
        reason: String,
    },
    /// A message or a tool cannot be put in front of a template.
    #[error("{what} cannot be rendered: {reason}")]
    Unfit {
        /// `message 3`, `the tools`, `the variable x`; messages are counted from 0.
        what: String,
        /// What is in the way.
        reason: String,
    },
    /// A text is no date.
    #[error("`{text}` is not a date and time such as 2026-11-29T18:05:00")]
    Time {
        /// The text.
        text: String,
    },
}

/// How a conversation is rendered. The default is what an engine does with a plain request.
#[derive(Debug, Clone)]
pub struct RenderOptions {
    /// Whether the opening of the next turn is put at the end.
    pub add_generation_prompt: bool,
    /// More variables of the template: `chat_template_kwargs` of a request, `bos_token` and the like.
    pub variables: Object<'static>,
    /// What `strftime_now` prints; without it a template that asks for the time is refused.
    pub now: Option<LocalTime>,
    /// What stands between the text parts of a message (a line feed in vLLM, a blank in SGLang).
    pub part_separator: String,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, variables: Object::default(), now: None, part_separator: "\n".to_owned() }
    }
}

/// A compiled chat template.
///
/// Renders as `transformers` does: blocks trimmed, loop controls, Python's printing of values, `tojson` without HTML
/// escapes, `{% generation %}`, `raise_exception`, `strftime_now`. Messages are prepared as engines prepare them:
/// text parts joined, tool-call arguments parsed, reasoning under both of its names.
///
/// Known to differ from Jinja, and an error or rare: `'%s' % x`, `~` and `join` with floats.
///
/// ```
/// use gsj_trace::json::Value;
/// use gsj_trace::rerender::{ChatTemplate, RenderOptions};
///
/// let template = ChatTemplate::new("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")?;
/// let messages = Value::parse(br#"[{"role": "user", "content": [{"type": "text", "text": "hi"}]}]"#).unwrap();
/// let messages: Vec<_> = messages.as_array().unwrap().iter().collect();
/// assert_eq!(template.render(&messages, None, &RenderOptions::default())?, "<user>hi");
/// # Ok::<(), gsj_trace::rerender::TemplateError>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    name: String,
    source: String,
}

/// Messages and tools in the template engine's own form, to be rendered more than once.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) messages: Vec<Item>,
    tools: Item,
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`TemplateError::Compile`] with the line.
    pub fn new(source: &str) -> Result<Self, TemplateError> {
        Self::named("chat_template", source)
    }

    /// Compiles a template that errors call `name`, its file for example.
    ///
    /// # Errors
    /// [`TemplateError::Compile`] with the line.
    pub fn named(name: &str, source: &str) -> Result<Self, TemplateError> {
        Self::with_fuel(name, source, FUEL)
    }

    fn with_fuel(name: &str, source: &str, fuel: u64) -> Result<Self, TemplateError> {
        let wrong = |error: Error| TemplateError::Compile {
            name: name.to_owned(),
            line: error.line().unwrap_or(0),
            reason: reason(&error),
        };
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(fuel));
        environment.set_unknown_method_callback(python::method);
        environment.set_formatter(|out, _, value| {
            let written = match value.as_str() {
                Some(text) => out.write_str(text),
                None => out.write_str(&python::text(value)?),
            };
            written.map_err(|_| Error::new(ErrorKind::WriteFailure, "print a value"))
        });
        environment.add_filter("tojson", to_json);
        environment.add_filter("string", |value: Item| python::text(&value));
        environment.add_filter("trim", trim);
        // Python's strings and mappings are sequences too.
        environment.add_test("sequence", |value: Item| {
            matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
        });
        environment.add_test("iterable", |value: Item| !value.is_none() && value.try_iter().is_ok());
        environment.add_function("raise_exception", |message: String| -> Result<Item, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_template_owned("chat", marks::prepare(source)).map_err(wrong)?;
        Ok(Self { environment, name: name.to_owned(), source: source.to_owned() })
    }

    /// Renders messages, with the tools of the request if there are any.
    ///
    /// # Errors
    /// [`TemplateError::Render`] with the line when the template fails or refuses, [`TemplateError::Unfit`] for values
    /// that no engine can render.
    pub fn render(
        &self,
        messages: &[ValueRef<'_>],
        tools: Option<ValueRef<'_>>,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        let prepared = Prepared::new(messages, tools, options)?;
        self.render_prepared(&prepared.messages, &prepared, options.add_generation_prompt, options)
    }

    /// Renders some of the messages.
    pub(super) fn render_prepared(
        &self,
        messages: &[Item],
        prepared: &Prepared,
        add_generation_prompt: bool,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        let mut context: Vec<(String, Item)> = vec![
            ("messages".to_owned(), Item::from(messages)),
            ("tools".to_owned(), prepared.tools.clone()),
            ("documents".to_owned(), Item::from(())),
            ("add_generation_prompt".to_owned(), Item::from(add_generation_prompt)),
            ("strftime_now".to_owned(), clock(options.now)),
        ];
        for (name, value) in &options.variables {
            let name = name.lossy();
            context.push((name.clone().into_owned(), fit(value, || format!("the variable {name}"))?));
        }
        let failed = |error: Error| TemplateError::Render {
            name: self.name.clone(),
            line: error.line().unwrap_or(0),
            reason: reason(&error),
        };
        let template = self.environment.get_template("chat").map_err(failed)?;
        template.render(Item::from_pairs(context)).map_err(failed)
    }

    /// Whether the template speaks of a variable at all.
    pub(super) fn mentions(&self, variable: &str) -> bool {
        self.source.contains(variable)
    }
}

impl Prepared {
    pub(super) fn new(
        messages: &[ValueRef<'_>],
        tools: Option<ValueRef<'_>>,
        options: &RenderOptions,
    ) -> Result<Self, TemplateError> {
        let messages = messages
            .iter()
            .enumerate()
            .map(|(at, message)| {
                let ready = message::prepared(*message, &options.part_separator);
                fit(ready.as_ref(), || format!("message {at}"))
            })
            .collect::<Result<_, _>>()?;
        // No tools at all is what a template tests for, not an empty list.
        let tools = tools.filter(|tools| tools.as_array().is_some_and(|list| !list.is_empty()));
        let tools = tools.map_or(Ok(Item::from(())), |tools| fit(tools, || "the tools".to_owned()))?;
        Ok(Self { messages, tools })
    }
}

fn fit(value: ValueRef<'_>, what: impl Fn() -> String) -> Result<Item, TemplateError> {
    python::item(value).map_err(|unfit| TemplateError::Unfit { what: what(), reason: unfit.to_string() })
}

/// What is wrong, with the causes behind it.
fn reason(error: &Error) -> String {
    let mut out = match error.detail() {
        Some(detail) if error.kind() == ErrorKind::InvalidOperation => detail.to_owned(),
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        out.push_str(": ");
        out.push_str(&cause.to_string());
        source = cause.source();
    }
    out
}

fn clock(now: Option<LocalTime>) -> Item {
    Item::from_function(move |pattern: String| -> Result<String, Error> {
        let refuse = |text: String| Error::new(ErrorKind::InvalidOperation, text);
        let now = now.ok_or_else(|| refuse("it prints the time, and no time was given to print".to_owned()))?;
        now.format(&pattern)
            .ok_or_else(|| refuse(format!("strftime_now: `{pattern}` has a directive that is not known")))
    })
}

fn trim(text: &str, chars: Option<&str>) -> String {
    match chars {
        None => text.trim_matches(python::is_space),
        Some(chars) => text.trim_matches(|c| chars.contains(c)),
    }
    .to_owned()
}

fn to_json(value: Item, options: Kwargs) -> Result<String, Error> {
    let indent: Option<Item> = options.get("indent")?;
    let separators: Option<Item> = options.get("separators")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    let ensure_ascii: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let dumps = Dumps {
        indent: indent.filter(|indent| !indent.is_none()).map(|indent| blanks(&indent)).transpose()?,
        separators: separators.filter(|pair| !pair.is_none()).map(|pair| two_texts(&pair)).transpose()?,
        ensure_ascii: ensure_ascii.unwrap_or(false),
        sort_keys: sort_keys.unwrap_or(false),
    };
    let plain: Value<'_> = python::plain(&value)?;
    Ok(dumps.write(plain.as_ref()))
}

fn blanks(indent: &Item) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    let count = i64::try_from(indent.clone())?;
    let most = 64;
    usize::try_from(count.max(0))
        .ok()
        .filter(|count| *count <= most)
        .map(|count| " ".repeat(count))
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("tojson: an indent of at most {most} is taken")))
}

fn two_texts(pair: &Item) -> Result<(String, String), Error> {
    let texts: Vec<Item> = pair.try_iter()?.take(3).collect();
    match texts.iter().map(Item::as_str).collect::<Option<Vec<_>>>().as_deref() {
        Some([comma, colon]) => Ok(((*comma).to_owned(), (*colon).to_owned())),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators are two texts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(object: Object<'_>) -> Object<'static> {
        match Value::Object(object).into_owned() {
            Value::Object(object) => object,
            _ => Object::default(),
        }
    }

    fn render_with(source: &str, messages: &str, variables: &str) -> Result<String, TemplateError> {
        let messages = Value::parse(messages.as_bytes()).expect("json");
        let messages: Vec<_> = messages.as_array().expect("an array").iter().collect();
        let variables = Value::parse(variables.as_bytes()).expect("json");
        let variables = variables.as_object().cloned().unwrap_or_default();
        let options = RenderOptions { variables: owned(variables), ..RenderOptions::default() };
        ChatTemplate::named("t.jinja", source)?.render(&messages, None, &options)
    }

    fn render(source: &str, variables: &str) -> String {
        render_with(source, "[]", variables).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn errors_name_the_template_and_the_line() {
        let error = |source: &str| render_with(source, "[]", "{}").expect_err("it fails").to_string();
        assert_eq!(
            error("a\n{{ raise_exception('no system role') }}"),
            "render the chat template t.jinja, line 2: no system role"
        );
        assert!(error("a\nb\n{% if %}").starts_with("compile the chat template t.jinja, line 3: syntax error: "));
        assert!(error("{{ 1 + 'a' }}").starts_with("render the chat template t.jinja, line 1: "));
        assert!(error("\n{{ strftime_now('%Y') }}").contains("line 2: it prints the time"));
        let endless = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
        let bounded = ChatTemplate::with_fuel("t.jinja", endless, 100_000).expect("compiles");
        let error = bounded.render(&[], None, &RenderOptions::default()).expect_err("it is stopped");
        assert!(error.to_string().contains("ran out of fuel"), "{error}");
    }

    #[test]
    fn what_no_engine_can_render_is_refused_by_its_place() {
        let message = render_with("", r#"[{"role":"user"},{"role":"user","content":"\ud800"}]"#, "{}");
        assert_eq!(
            message.expect_err("refused").to_string(),
            "message 1 cannot be rendered: it holds a lone surrogate, which no tokenizer takes"
        );
        let deep = |levels: usize| {
            format!(r#"[{{"role":"user","content":"","x":{}{}}}]"#, "[".repeat(levels), "]".repeat(levels))
        };
        let error = render_with("", &deep(300), "{}").expect_err("refused");
        assert!(error.to_string().contains("deeper than 256"), "{error}");
        let text = render_with("{{ messages[0].x }}{{ messages[0].x | tojson }}", &deep(250), "{}").expect("renders");
        assert_eq!(text.len(), 1000, "what is let in can be printed");
    }

    #[test]
    fn the_clock_is_what_was_given() {
        let options = RenderOptions { now: LocalTime::parse("2026-11-29").ok(), ..RenderOptions::default() };
        let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}").expect("compiles");
        assert_eq!(template.render(&[], None, &options).expect("renders"), "29 Nov 2026");
    }

    #[test]
    fn what_is_set_inside_a_generation_mark_stays_inside() {
        assert_eq!(
            render(
                "{% set x = 1 %}{% set ns = namespace(y=1) %}{% generation %}{% set x = 2 %}{% set ns.y = 2 %}{% endgeneration %}{{ x }}{{ ns.y }}",
                "{}"
            ),
            "12"
        );
    }

    #[test]
    fn a_number_of_any_size_reaches_the_text() {
        let big = "1".repeat(60);
        assert_eq!(
            render("{{ n }} {{ n | tojson }} {{ [n] }}", &format!("{{\"n\":{big}}}")),
            format!("{big} {big} [{big}]")
        );
    }
}
