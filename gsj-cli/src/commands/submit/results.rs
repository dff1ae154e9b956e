//! What came back: a line for each session, and the results in a folder or in one file.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_client::{Collected, Item};
use gsj_tables::{TaskKey, TokenRow, TokenWriter};
use gsj_trace::json::{Value, ValueRef};

use crate::error::{CliError, Context as _};
use crate::output::{self, Format};
use crate::terminal::{GREEN, RED, paint, progress};

/// How accepted results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Export {
    /// `accepted.jsonl`: a trace a line, with ids, mask and logprobs only
    Jsonl,
    /// `accepted.parquet`: a trace a row, with ids, mask and logprobs only
    Parquet,
}

/// Takes what is collected, task by task.
pub(super) struct Results {
    format: Format,
    sink: Sink,
    accepted: u64,
    rejected: u64,
    failed: u64,
    missing: u64,
    by_length: u64,
    /// Tasks that the server refused.
    refused: u64,
}

enum Sink {
    Nowhere,
    /// A file for each result, as it came.
    Folder(PathBuf),
    Jsonl(Whole),
    Parquet(Box<TokenWriter<Whole>>),
}

impl Results {
    pub(super) fn open(format: Format, out: Option<&Path>, export: Option<Export>) -> Result<Self, CliError> {
        let sink = match (out, export) {
            (None, _) => Sink::Nowhere,
            (Some(folder), None) => Sink::Folder(folder.to_owned()),
            (Some(folder), Some(Export::Jsonl)) => Sink::Jsonl(Whole::create(folder, "accepted.jsonl")?),
            (Some(folder), Some(Export::Parquet)) => {
                let whole = Whole::create(folder, "accepted.parquet")?;
                Sink::Parquet(Box::new(TokenWriter::new(whole).usage()?))
            }
        };
        Ok(Self { format, sink, accepted: 0, rejected: 0, failed: 0, missing: 0, by_length: 0, refused: 0 })
    }

    /// Takes the results of one task; of a bank's, `key` says which row it was.
    pub(super) fn take(&mut self, collected: &Collected, key: Option<&TaskKey>) -> Result<(), CliError> {
        for item in &collected.accepted {
            self.by_length += u64::from(ended_by_length(item));
            let path = self.keep(&collected.task_id, item)?;
            self.line(Line { status: "accepted", path: path.as_deref(), ..Line::of(key, &collected.task_id, item) });
        }
        for rejected in &collected.rejected {
            let line = Line::of(key, &collected.task_id, &rejected.item);
            self.line(Line { status: "rejected", findings: &rejected.findings, ..line });
        }
        for failed in &collected.failed {
            let line = Line::of(key, &collected.task_id, &failed.item);
            self.line(Line {
                status: &failed.status,
                findings: &failed.findings,
                error: failed.error.as_deref(),
                ..line
            });
        }
        self.accepted += collected.accepted.len() as u64;
        self.rejected += collected.rejected.len() as u64;
        self.failed += collected.failed.len() as u64;
        self.missing += collected.missing;
        Ok(())
    }

    /// A task without results: refused, or not ended in time.
    pub(super) fn without(&mut self, key: &TaskKey, task_id: &str, status: &str, error: &str) {
        let line = Line {
            key: Some(key),
            task_id,
            session: None,
            status,
            findings: &[],
            error: Some(error),
            path: None,
            overhead_ms: None,
        };
        self.line(line);
        self.refused += 1;
    }

    /// Ends the file, says how much of what came back, and gives the exit code.
    pub(super) fn finish(self) -> Result<ExitCode, CliError> {
        let written = match self.sink {
            Sink::Nowhere | Sink::Folder(_) => None,
            Sink::Jsonl(whole) => Some(whole.finish()?),
            Sink::Parquet(writer) => Some(writer.finish().usage()?.finish()?),
        };
        if let Some(path) = written {
            progress(&format!("wrote {}", path.display()));
        }
        let all = self.accepted + self.rejected + self.failed + self.missing;
        let refused =
            if self.refused > 0 { format!(", {} tasks without results", self.refused) } else { String::new() };
        progress(&format!(
            "{} of {all} accepted, {} rejected, {} failed{refused}; {} ended by length",
            self.accepted, self.rejected, self.failed, self.by_length
        ));
        let complete = self.rejected + self.failed + self.missing + self.refused == 0;
        Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    /// Writes an accepted result; gives the file that is its own.
    fn keep(&mut self, task_id: &str, item: &Item) -> Result<Option<PathBuf>, CliError> {
        let session = item.session_id.as_deref().unwrap_or_default();
        match &mut self.sink {
            Sink::Nowhere => Ok(None),
            Sink::Folder(folder) => store(folder, session, &item.bytes).map(Some),
            Sink::Jsonl(whole) => {
                for row in token_rows(task_id, session, &item.bytes)? {
                    let line = serde_json::json!({
                        "session_id": row.session_id, "task_id": row.task_id, "trace": row.trace,
                        "prompt_ids": row.prompt_ids, "response_ids": row.response_ids, "loss_mask": row.loss_mask,
                        "response_logprobs": row.response_logprobs,
                    });
                    writeln!(whole.file, "{line}").map_err(|error| whole.fault(&error))?;
                }
                Ok(None)
            }
            Sink::Parquet(writer) => {
                for row in token_rows(task_id, session, &item.bytes)? {
                    writer.push(row).usage()?;
                }
                Ok(None)
            }
        }
    }

    fn line(&self, line: Line<'_>) {
        let session = line.session.unwrap_or_default();
        if self.format == Format::Json {
            let mut said = serde_json::json!({
                "session_id": session, "status": line.status, "findings": line.findings, "error": line.error,
                "path": line.path, "overhead_ms": line.overhead_ms,
            });
            if let (Some(key), Some(said)) = (line.key, said.as_object_mut()) {
                said.insert("task_id".into(), line.task_id.into());
                said.insert("case_id".into(), key.case_id.clone().into());
                said.insert("timestep".into(), key.timestep.into());
                said.insert("prompt_id".into(), key.prompt_id.clone().into());
            }
            output::json(&said);
            return;
        }
        let mark = if line.status == "accepted" { paint(GREEN, line.status) } else { paint(RED, line.status) };
        let task = line.key.map(|key| format!("  {key}")).unwrap_or_default();
        let around = line.overhead_ms.map(|ms| format!("  {ms:.0} ms around agent and engine")).unwrap_or_default();
        let place = line.path.map(|p| format!("  {}", p.display())).unwrap_or_default();
        output::line(format!("{session}  {mark}{task}{around}{place}").trim_start());
        if let Some(error) = line.error {
            output::line(&format!("    {error}"));
        }
        for finding in line.findings {
            output::line(&format!("    {finding}"));
        }
    }
}

struct Line<'a> {
    key: Option<&'a TaskKey>,
    task_id: &'a str,
    session: Option<&'a str>,
    status: &'a str,
    findings: &'a [String],
    error: Option<&'a str>,
    path: Option<&'a Path>,
    overhead_ms: Option<f64>,
}

impl<'a> Line<'a> {
    fn of(key: Option<&'a TaskKey>, task_id: &'a str, item: &'a Item) -> Self {
        let session = item.session_id.as_deref();
        Self { key, task_id, session, status: "", findings: &[], error: None, path: None, overhead_ms: overhead(item) }
    }
}

fn ended_by_length(item: &Item) -> bool {
    Value::parse(&item.bytes).is_ok_and(|value| {
        value
            .as_ref()
            .pointer("/trajectory/traces/0/finish_reason")
            .is_some_and(|reason| reason.as_str() == Some("length"))
    })
}

fn overhead(item: &Item) -> Option<f64> {
    let value = Value::parse(&item.bytes).ok()?;
    value.as_ref().pointer("/metadata/gsj_overhead_ms")?.as_f64()
}

/// The traces of an accepted result, tokens only.
fn token_rows(task_id: &str, session: &str, bytes: &[u8]) -> Result<Vec<TokenRow>, CliError> {
    let fault = |what: &str| CliError::usage(format!("export session {session}: {what}"));
    let value = Value::parse(bytes).map_err(|error| fault(&error.to_string()))?;
    let traces = value.as_ref().pointer("/trajectory/traces").and_then(ValueRef::as_array);
    let mut rows = Vec::new();
    for (at, trace) in traces.ok_or_else(|| fault("it has no traces"))?.iter().enumerate() {
        let member = |name: &str| {
            trace.get(name).and_then(ValueRef::as_array).ok_or_else(|| fault(&format!("trace {at} has no list {name}")))
        };
        let ids = |name: &str| {
            let number = |item: ValueRef<'_>| item.as_i64().and_then(|number| i32::try_from(number).ok());
            let ids: Option<Vec<i32>> = member(name)?.iter().map(number).collect();
            ids.ok_or_else(|| fault(&format!("trace {at} has another value than a 32 bit integer in {name}")))
        };
        let logprobs: Option<Vec<f64>> = member("response_logprobs")?.iter().map(ValueRef::as_f64).collect();
        rows.push(TokenRow {
            session_id: session.to_owned(),
            task_id: task_id.to_owned(),
            trace: i32::try_from(at).unwrap_or(i32::MAX),
            prompt_ids: ids("prompt_ids")?,
            response_ids: ids("response_ids")?,
            loss_mask: ids("loss_mask")?,
            response_logprobs: logprobs.ok_or_else(|| fault(&format!("trace {at} has odd response_logprobs")))?,
        });
    }
    Ok(rows)
}

/// A file that takes its name when it is whole, and is gone otherwise.
struct Whole {
    file: BufWriter<std::fs::File>,
    beside: PathBuf,
    path: PathBuf,
}

impl Whole {
    fn create(folder: &Path, name: &str) -> Result<Self, CliError> {
        let (beside, path) = (folder.join(format!(".{name}.tmp")), folder.join(name));
        let file = std::fs::create_dir_all(folder).and_then(|()| std::fs::File::create(&beside));
        let file = file.map_err(|error| CliError::usage(format!("write `{}`: {error}", path.display())))?;
        Ok(Self { file: BufWriter::new(file), beside, path })
    }

    fn fault(&self, error: &std::io::Error) -> CliError {
        CliError::usage(format!("write `{}`: {error}", self.path.display()))
    }

    fn finish(mut self) -> Result<PathBuf, CliError> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        written.and_then(|()| std::fs::rename(&self.beside, &self.path)).map_err(|error| self.fault(&error))?;
        Ok(self.path.clone())
    }
}

impl std::io::Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // It has its name by now, or is not whole.
        drop(std::fs::remove_file(&self.beside));
    }
}

/// Writes a result by a rename, so that no half of one is ever there.
fn store(folder: &Path, session: &str, bytes: &[u8]) -> Result<PathBuf, CliError> {
    let path = folder.join(format!("{session}.json"));
    let fault = |error: std::io::Error| CliError::usage(format!("write `{}`: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(fault)?;
    let beside = folder.join(format!(".{session}.tmp"));
    std::fs::write(&beside, bytes).map_err(fault)?;
    std::fs::rename(&beside, &path).map_err(fault)?;
    Ok(path)
}
