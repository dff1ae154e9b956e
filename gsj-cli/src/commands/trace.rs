//! `gsj trace`: traces against the template and the tokenizer they claim to come from.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::rerender::{ChatTemplate, LocalTime, RenderOptions, Verdict, rerender};
use gsj_trace::tokenizer::Tokenizer;
use gsj_trace::tokens::TokenText as _;

use crate::error::{CliError, Context as _};
use crate::inputs::{self, Inputs};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{BOLD, GREEN, RED, paint};

const EXAMPLE: &str = "Example:\n  gsj trace rerender /var/lib/gsj/demo/traces --tokenizer fixtures/tokenizer/tokenizer.json \\\n      --template fixtures/template/chat_template.jinja";
/// Variables that a tokenizer_config.json gives to its template.
const SPECIAL: [&str; 4] = ["bos_token", "eos_token", "pad_token", "unk_token"];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Render a trace's messages through a chat template and compare ids with the trace's.
    #[command(
        after_help = EXAMPLE,
        long_about = "Renders a trace's messages through a chat template, tokenizes the text and compares the ids with \
                      prompt_ids and response_ids.\n\nExit code 0 when every trace comes out id by id, 1 when one does \
                      not or cannot be compared."
    )]
    Rerender(RerenderArgs),
}

#[derive(Debug, clap::Args)]
struct RerenderArgs {
    /// Session results, files of the quarantine, trajectories or traces: `.json`, `.jsonl` (one a line), folders, or `-`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The tokenizer.json of the model
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// The chat template that the engine serves, or the tokenizer_config.json that holds it
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// A variable of the template, such as `bos_token=<s>`; `enable_thinking`, if not given, is found by trying
    #[arg(long = "set", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// The time that the template printed, such as 2026-11-29T18:05:00
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// What the engine puts between the text parts of a message
    #[arg(long, value_enum, default_value_t = Parts::Line)]
    parts: Parts,
    /// Take other ids that say the same text for equal
    #[arg(long)]
    same_text: bool,
    #[command(flatten)]
    format: FormatArg,
}

/// What stands between text parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Parts {
    /// A line feed, as in vLLM.
    Line,
    /// A blank, as in SGLang.
    Blank,
    /// Nothing.
    None,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let Action::Rerender(args) = args.action;
    let format = args.format.resolve();
    let shown = args.tokenizer.display();
    let tokenizer = Tokenizer::from_bytes(&inputs::read(&args.tokenizer)?)
        .usage()
        .map_err(|error| error.hint(format!("the file is --tokenizer {shown}")))?;
    let (template, options) = template(&args)?;
    let mut tally = Tally::default();
    for document in Inputs::open(&args.files, &["jsonl"])? {
        let document = document?;
        let source = &document.source;
        let comparison = Comparison { source, tokenizer: &tokenizer, template: &template, options: &options };
        comparison.body(&document.bytes, format, args.same_text, &mut tally);
    }
    if format == Format::Human && tally.seen > 1 {
        let equal = tally.seen - tally.failed;
        output::line(&paint(BOLD, &format!("{} traces, {equal} equal, {} not", tally.seen, tally.failed)));
    }
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

#[derive(Debug, Default)]
struct Tally {
    seen: usize,
    failed: usize,
}

/// What the traces of one body are compared by.
struct Comparison<'c> {
    source: &'c str,
    tokenizer: &'c Tokenizer,
    template: &'c ChatTemplate,
    options: &'c RenderOptions,
}

impl Comparison<'_> {
    fn body(&self, body: &[u8], format: Format, same_text: bool, tally: &mut Tally) {
        let value = match Value::parse(body) {
            Ok(value) => value,
            Err(error) => return self.failed(None, None, "unreadable", &error.to_string(), format, tally),
        };
        let result = value.get("session_result").unwrap_or(value.as_ref());
        let session = result.get("session_id").and_then(ValueRef::as_str);
        let traces = traces(result);
        if traces.is_empty() {
            let message = "it is no session result, trajectory or trace: there is nothing with `prompt_ids` in it";
            return self.failed(session, None, "no_trace", message, format, tally);
        }
        let several = traces.len() > 1;
        for (at, trace) in traces.iter().enumerate() {
            let report = match rerender(*trace, self.tokenizer, self.template, self.options) {
                Ok(report) => report,
                Err(error) => {
                    let number = several.then_some(at);
                    self.failed(session, number, "not_comparable", &error.to_string(), format, tally);
                    continue;
                }
            };
            let good = report.verdict == Verdict::Equal || (same_text && report.verdict == Verdict::Retokenized);
            tally.seen += 1;
            tally.failed += usize::from(!good);
            match format {
                Format::Json => {
                    let mut line = self.line(session, at);
                    if let Value::Object(members) = report.to_value() {
                        for (key, member) in members {
                            line.insert(key, member);
                        }
                    }
                    output::line(&Value::Object(line).to_json());
                }
                Format::Human => {
                    let mark = if good { paint(GREEN, "✓") } else { paint(RED, "✗") };
                    output::line(&format!("{mark} {}", self.heading(session, several.then_some(at))));
                    for line in report.to_text().lines() {
                        output::line(&format!("  {line}"));
                    }
                }
            }
        }
    }

    fn failed(
        &self,
        session: Option<&str>,
        trace: Option<usize>,
        code: &str,
        message: &str,
        format: Format,
        tally: &mut Tally,
    ) {
        tally.seen += 1;
        tally.failed += 1;
        match format {
            Format::Json => {
                let mut line = self.line(session, trace.unwrap_or(0));
                line.insert("error", code);
                line.insert("message", message.to_owned());
                output::line(&Value::Object(line).to_json());
            }
            Format::Human => {
                output::line(&format!("{} {}", paint(RED, "✗"), self.heading(session, trace)));
                output::line(&format!("  {message}"));
            }
        }
    }

    fn line(&self, session: Option<&str>, trace: usize) -> Object<'static> {
        Object::from_iter([
            ("source", Value::from(self.source.to_owned())),
            ("session_id", session.map(str::to_owned).into()),
            ("trace", trace.into()),
            ("tokenizer", self.tokenizer.identity().to_owned().into()),
        ])
    }

    fn heading(&self, session: Option<&str>, trace: Option<usize>) -> String {
        let trace = trace.map(|at| format!(", trace {}", at + 1)).unwrap_or_default();
        format!("{} ({}){trace}", self.source, session.unwrap_or("no session id"))
    }
}

/// The traces of a session result or a trajectory, or the value itself when it is one.
fn traces(value: ValueRef<'_>) -> Vec<ValueRef<'_>> {
    if value.get("prompt_ids").is_some() {
        return vec![value];
    }
    let list = value.pointer("/trajectory/traces").or_else(|| value.get("traces"));
    list.and_then(ValueRef::as_array).map(|list| list.iter().collect()).unwrap_or_default()
}

/// The template and how to render it: a `tokenizer_config.json` brings its special tokens along.
fn template(args: &RerenderArgs) -> Result<(ChatTemplate, RenderOptions), CliError> {
    let name = args.template.display().to_string();
    let text = String::from_utf8(inputs::read(&args.template)?)
        .map_err(|_| CliError::usage(format!("`{name}` is no chat template: it is not UTF-8")))?;
    let mut options = RenderOptions::default();
    let config = Value::parse(text.as_bytes()).ok().filter(|value| value.as_object().is_some());
    let source = match &config {
        None => text.as_str(),
        Some(config) => {
            for key in SPECIAL {
                let token = config.get(key).and_then(|token| token.as_str().or_else(|| token.get("content")?.as_str()));
                if let Some(token) = token {
                    options.variables.insert(key, token.to_owned());
                }
            }
            config.get("chat_template").and_then(ValueRef::as_str).ok_or_else(|| {
                CliError::usage(format!("`{name}` has no `chat_template` that is one text"))
                    .hint("write the template that the engine serves into a file of its own")
            })?
        }
    };
    let template = ChatTemplate::named(&name, source).usage()?;
    for variable in &args.variables {
        let (name, value) = variable.split_once('=').ok_or_else(|| {
            CliError::usage(format!("--set {variable}: must be NAME=VALUE")).hint("--set enable_thinking=false")
        })?;
        let value = Value::parse(value.as_bytes()).map_or_else(|_| Value::from(value.to_owned()), Value::into_owned);
        options.variables.insert(name.to_owned(), value);
    }
    options.now = args.now.as_deref().map(LocalTime::parse).transpose().usage()?;
    match args.parts {
        Parts::Line => "\n",
        Parts::Blank => " ",
        Parts::None => "",
    }
    .clone_into(&mut options.part_separator);
    Ok((template, options))
}
