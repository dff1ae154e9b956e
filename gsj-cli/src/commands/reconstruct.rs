//! `gsj reconstruct`: completion sessions to trajectories.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gsj_checks::FindingKind;
use gsj_trace::engine::{Dialect, normalize_response, normalize_whole};
use gsj_trace::json::{Array, Object, ReadError, Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Options, build};
use gsj_trace::tokenizer::Tokenizer;

use super::gates::sentence;
use crate::error::{CliError, Kind};
use crate::inputs::{self, Document, Inputs};
use crate::output::{self, Format, FormatArg};
use crate::progress::Progress;
use crate::terminal::{self, BOLD, DIM, GREEN, RED, paint, progress, warn};
use gsj_trace::outline::wrap;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj reconstruct --tokenizer fixtures/tokenizer/tokenizer.json --eot 2 \\\n    /var/lib/gsj/demo/artifacts/*/session.log"
)]
pub(crate) struct Args {
    /// Completion sessions: `.json` files (one each), `.jsonl` files (one a line), folders, `-`; or a gateway's
    /// `session.log`, which holds a completion a line
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// How completions are joined: `same_text`, `exact`, or `reference` as the Python reference does
    #[arg(long, value_name = "MODE", default_value = Continuity::SameText.name(),
          value_parser = [Continuity::SameText, Continuity::Exact, Continuity::Reference].map(Continuity::name))]
    continuity: String,
    /// The answers are raw ones of this engine and are normalised first
    #[arg(long, value_name = "ENGINE", value_parser = [Dialect::Vllm, Dialect::Sglang].map(Dialect::name))]
    engine: Option<String>,
    /// The id that ends a turn [default: found per chain, which is a finding]
    #[arg(long, value_name = "ID")]
    eot: Option<i64>,
    /// Ids that the template writes before a turn and not into its history
    #[arg(long, value_name = "ID,ID", value_delimiter = ',')]
    glue: Vec<i64>,
    /// The engine's tokenizer.json: tells contexts that say the same in other tokens from those that don't
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let options = options(&args)?;
    let inputs = Inputs::open(&args.inputs, &["jsonl", "log"])?;
    let mut report =
        Report { format: args.format.resolve(), progress: Progress::new(inputs.size()), seen: 0, failed: 0 };
    let builder = Builder { options, dialect: args.engine.as_deref().and_then(Dialect::from_name) };
    let mut log: Option<Log> = None;
    for document in inputs {
        let document = document?;
        let size = document.bytes.len() as u64;
        if let Some(ended) = log.take_if(|log| log.file != document.file) {
            report.add(&ended.built(&builder));
        }
        match read(&document) {
            Ok(Input::Session(session)) => report.add(&builder.build(&document.source, session)),
            Ok(Input::Record(record)) => log.get_or_insert_with(|| Log::of(&document)).push(record),
            Err(error) => report.add(&error),
        }
        report.progress.advance(size, || format!("{} sessions, {} not complete", report.seen, report.failed));
    }
    if let Some(log) = log {
        report.add(&log.built(&builder));
    }
    Ok(report.finish())
}

fn options(args: &Args) -> Result<Options, CliError> {
    let continuity = Continuity::from_name(&args.continuity)
        .ok_or_else(|| CliError::usage(format!("--continuity: there is no `{}`", args.continuity)))?;
    let mut options =
        Options { continuity, end_of_turn_token_id: args.eot, glue_ids: args.glue.clone(), ..Options::default() };
    if let Some(path) = &args.tokenizer {
        let tokenizer = Tokenizer::from_bytes(&inputs::read(path)?)
            .map_err(|error| CliError::from_error(Kind::Usage, &error).named(&path.display().to_string()))?;
        options.tokenizer = Some(Arc::new(tokenizer));
    }
    Ok(options)
}

/// What one document is.
enum Input<'d> {
    /// A completion session.
    Session(Value<'d>),
    /// One completion of a session's log.
    Record(Value<'d>),
}

/// What came of one session.
enum Outcome {
    Built { source: String, trajectory: Value<'static> },
    Failed { source: String, code: &'static str, message: String },
}

fn read(document: &Document) -> Result<Input<'_>, Outcome> {
    let failed = |code, message| Outcome::Failed { source: document.source.clone(), code, message };
    let value = Value::parse(&document.bytes)
        .map_err(|error: ReadError| failed(error.code(), format!("the session is not JSON: {error}")))?;
    if value.as_object().is_none() {
        return Err(failed("not_an_object", "the session is not a JSON object".to_owned()));
    }
    let is_record = value.get("completion_id").is_some() && value.get("completions").is_none();
    Ok(if is_record { Input::Record(value) } else { Input::Session(value) })
}

/// How sessions are built.
struct Builder {
    options: Options,
    dialect: Option<Dialect>,
}

impl Builder {
    fn build(&self, source: &str, mut session: Value<'_>) -> Outcome {
        if let Some(dialect) = self.dialect {
            let records = session.get_mut("completions").and_then(Value::as_array_mut);
            for response in records.into_iter().flatten().filter_map(|record| record.get_mut("response")) {
                match self.options.continuity {
                    Continuity::Reference => normalize_response(dialect, response),
                    _ => normalize_whole(dialect, response),
                }
            }
        }
        match build(&session, &self.options) {
            Ok(trajectory) => Outcome::Built { source: source.to_owned(), trajectory },
            Err(error) => {
                Outcome::Failed { source: source.to_owned(), code: "not_an_object", message: error.to_string() }
            }
        }
    }
}

/// The completions of a gateway's log, while they are read.
struct Log {
    file: PathBuf,
    records: Vec<Value<'static>>,
    /// Calls that ended without a whole answer.
    left_out: usize,
}

impl Log {
    fn of(document: &Document) -> Self {
        Self { file: document.file.clone(), records: Vec::new(), left_out: 0 }
    }

    fn push(&mut self, mut record: Value<'_>) {
        if record.get("outcome").is_some_and(|outcome| outcome.as_str() != Some("completed")) {
            self.left_out += 1;
            return;
        }
        if let Some(members) = record.as_object_mut() {
            // The raw answer is large and says nothing that the answer does not.
            members.remove("raw");
        }
        self.records.push(record.into_owned());
    }

    fn built(self, builder: &Builder) -> Outcome {
        let source = self.file.display().to_string();
        if self.left_out > 0 {
            let calls = if self.left_out == 1 { "call" } else { "calls" };
            warn(&format!("{source}: {} {calls} without a whole answer left out", self.left_out));
        }
        let mut metadata: Object<'static> = self
            .records
            .first()
            .and_then(|record| record.get("metadata"))
            .and_then(ValueRef::as_object)
            .map(|members| members.iter().map(|(key, value)| (key.escaped().into_owned(), value.to_owned())).collect())
            .unwrap_or_default();
        for of_one_call in ["gsj_sampling", "gsj_timing"] {
            metadata.remove(of_one_call);
        }
        let mut session = Object::new();
        session.insert("session_id", session_of(&self.file));
        session.insert("task_id", metadata.get("task_id").map(|id| id.to_owned()));
        session.insert("metadata", metadata);
        session.insert("completions", self.records);
        builder.build(&source, Value::from(session))
    }
}

/// The session that a log belongs to: the server keeps it as `<session>/session.log`.
fn session_of(file: &Path) -> String {
    let name = |path: Option<&std::ffi::OsStr>| path.map(|name| name.to_string_lossy().into_owned());
    let folder = file.parent().and_then(|folder| name(folder.file_name()));
    match folder {
        Some(folder) if file.file_stem().is_some_and(|stem| stem == "session") => folder,
        _ => name(file.file_stem()).unwrap_or_default(),
    }
}

/// Prints trajectories as they come.
struct Report {
    format: Format,
    progress: Progress,
    seen: usize,
    /// Sessions without a complete trajectory.
    failed: usize,
}

impl Report {
    fn add(&mut self, outcome: &Outcome) {
        self.seen += 1;
        let complete = match outcome {
            Outcome::Built { trajectory, .. } => {
                trajectory.get("status").and_then(ValueRef::as_str) == Some("COMPLETED")
            }
            Outcome::Failed { .. } => false,
        };
        self.failed += usize::from(!complete);
        let apart = self.seen > 1;
        self.progress.aside(|| match (self.format, outcome) {
            (Format::Json, Outcome::Built { trajectory, .. }) => output::exact(&trajectory.to_json()),
            (Format::Json, Outcome::Failed { source, code, message }) => {
                output::json(&serde_json::json!({"source": source, "error": code, "message": message}));
            }
            (Format::Human, _) => {
                if apart {
                    output::line("");
                }
                output::line(paragraph(outcome, complete, terminal::width()).trim_end());
            }
        });
    }

    fn finish(self) -> ExitCode {
        self.progress.finish();
        if self.seen > 1 {
            let summary = format!("{} sessions, {} not complete", self.seen, self.failed);
            match self.format {
                Format::Human => output::line(&format!("\n{}", paint(BOLD, &summary))),
                Format::Json => progress(&summary),
            }
        }
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }
}

fn paragraph(outcome: &Outcome, complete: bool, width: usize) -> String {
    let mark = if complete { paint(GREEN, "✓") } else { paint(RED, "✗") };
    let (source, trajectory) = match outcome {
        Outcome::Failed { source, code, message } => return format!("{mark} {source}: {code}: {message}"),
        Outcome::Built { source, trajectory } => (source, trajectory.as_ref()),
    };
    let text = |pointer: &str| trajectory.pointer(pointer).filter(|v| !v.is_null()).map(ValueRef::show);
    let session = text("/metadata/session_id").map(|id| format!("  {}", paint(DIM, &id))).unwrap_or_default();
    let mut out = format!("{mark} {source}{session}\n");
    let mut says = |text: &str| {
        for line in wrap(text, width.saturating_sub(4)) {
            let _ = writeln!(out, "    {line}");
        }
    };
    says(&match text("/error") {
        Some(error) => format!("{}: {error}", text("/status").unwrap_or_default()),
        None => text("/status").unwrap_or_default(),
    });
    says(&chains(trajectory));
    if let Some(contexts) = contexts(trajectory) {
        says(&contexts);
    }
    for finding in elements(trajectory.pointer("/metadata/gsj_validation/findings")).map(ValueRef::show) {
        let _ = writeln!(out, "    {}", paint(RED, &finding));
        if let Some(kind) = FindingKind::of(&finding) {
            for line in wrap(&format!("{}. {}", sentence(kind.meaning), kind.action), width.saturating_sub(8)) {
                let _ = writeln!(out, "        {}", paint(DIM, &line));
            }
        }
    }
    out
}

/// How many completions became how many traces.
fn chains(trajectory: ValueRef<'_>) -> String {
    let number = |pointer: &str| trajectory.pointer(pointer).and_then(ValueRef::as_i64).unwrap_or(0);
    let stats = |key: &str| number(&format!("/metadata/reconstruction_stats/{key}"));
    let (mut prompt, mut response, mut trained) = (0, 0, 0);
    for trace in elements(trajectory.get("traces")) {
        prompt += elements(trace.get("prompt_ids")).count();
        response += elements(trace.get("response_ids")).count();
        trained += elements(trace.get("loss_mask")).filter(|mask| mask.as_i64() == Some(1)).count();
    }
    let excluded = number("/metadata/completion_filter/excluded_completions");
    let mut out = format!(
        "{} from {}, {} merged",
        counted(stats("chains_total"), "chain"),
        counted(number("/metadata/record_count"), "completion"),
        stats("completions_merged"),
    );
    if excluded > 0 {
        let _ = write!(out, ", {excluded} excluded");
    }
    let truncated = stats("chains_reconstructed_truncated");
    if truncated > 0 {
        let _ = write!(out, ", {} not merged to its end", counted(truncated, "chain"));
    }
    let _ = write!(out, "; {prompt} prompt ids, {response} response ids, {trained} trained on");
    out
}

/// The kinds of context, and the completions that were sampled from another one than the trace says.
fn contexts(trajectory: ValueRef<'_>) -> Option<String> {
    let certificate = trajectory.pointer("/metadata/gsj_fidelity")?;
    let kinds = ["exact", "retokenized", "template", "rewritten", "inexact", "superseded"];
    let counts: Vec<String> = kinds
        .iter()
        .filter_map(|kind| Some((certificate.get(kind)?.as_i64().filter(|n| *n > 0)?, kind)))
        .map(|(n, kind)| format!("{n} {kind}"))
        .collect();
    let mut out = format!("contexts: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
    if certificate.get("tokenizer").is_none_or(ValueRef::is_null) && counts.iter().any(|text| text.ends_with("inexact"))
    {
        out.push_str(" (--tokenizer FILE would say how they differ)");
    }
    Some(out)
}

fn elements(value: Option<ValueRef<'_>>) -> impl Iterator<Item = ValueRef<'_>> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(Array::iter)
}

fn counted(n: i64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_names_its_session() {
        assert_eq!(session_of(Path::new("/var/lib/gsj/artifacts/ses_1/session.log")), "ses_1");
        assert_eq!(session_of(Path::new("records.jsonl")), "records");
        assert_eq!(session_of(Path::new("session.log")), "session");
    }
}
