//! What the demo prints when its episode has ended.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_checks::Policy;
use gsj_client::{Collected, Item};
use gsj_trace::json::Value;
use gsj_trace::outline::{Outline, render};

use super::estate::Estate;
use crate::commands::gates;
use crate::error::{CliError, Context as _, Kind};
use crate::output::{self, Format};
use crate::terminal::{self, BOLD, GREEN, RED, YELLOW, paint};

/// Prints the trajectory, the gates and the places; exit 0 only if the one result was accepted.
pub(crate) fn report(format: Format, estate: &Estate, collected: &Collected) -> Result<ExitCode, CliError> {
    let (item, findings, error) = the_one(collected)?;
    let accepted = !collected.accepted.is_empty();
    let session = item.session_id.clone().unwrap_or_default();
    let artifacts = estate.artifacts(&session);
    let folder = if accepted { estate.traces() } else { estate.quarantine() };
    let trace = stored(&folder, &session);
    let deliverables = files(&artifacts.join("out"));
    if format == Format::Json {
        output::json(&serde_json::json!({
            "accepted": accepted, "session_id": session, "findings": findings, "error": error, "trace": trace,
            "pins": estate.pins_path(), "config": estate.config_path(), "artifacts": artifacts,
            "deliverables": deliverables, "profile": "strict",
        }));
        return Ok(if accepted { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    let value = Value::parse(&item.bytes).failed()?;
    output::line(&render(&Outline::of(&value), terminal::width()));
    output::line(&format!("\n{}", paint(BOLD, "gates (profile strict)")));
    output::line(&gates::table(&findings, &Policy::default(), terminal::width()));
    output::line(&format!("\n{}", paint(BOLD, "where")));
    place("trace", trace.as_deref());
    place("transcript", Some(&artifacts.join("pi_transcript.jsonl")));
    if deliverables.is_empty() {
        place("deliverable", None);
    }
    for file in &deliverables {
        place("deliverable", Some(file));
    }
    place("gateway log", Some(&artifacts.join("session.log")));
    place("pins", Some(&estate.pins_path()));
    place("configuration", Some(&estate.config_path()));
    if let Some(error) = &error {
        output::line(&format!("\n{} {error}", paint(RED, "the session failed:")));
    }
    output::line("");
    if accepted {
        output::line(&paint(GREEN, "accepted"));
        if let Some(trace) = &trace {
            let (pins, trace) = (estate.pins_path(), trace.display());
            output::line(&format!("again: gsj check --pins {} {trace}", pins.display()));
        }
        Ok(ExitCode::SUCCESS)
    } else {
        output::line(&paint(RED, "not accepted"));
        Ok(ExitCode::from(1))
    }
}

/// The demo's one result, its findings, and why its session failed if it did.
fn the_one(collected: &Collected) -> Result<(&Item, Vec<String>, Option<String>), CliError> {
    if let Some(item) = collected.accepted.first() {
        return Ok((item, Vec::new(), None));
    }
    if let Some(rejected) = collected.rejected.first() {
        return Ok((&rejected.item, rejected.findings.clone(), None));
    }
    if let Some(failed) = collected.failed.first() {
        let why = failed.error.clone().unwrap_or_else(|| failed.status.clone());
        return Ok((&failed.item, failed.findings.clone(), Some(why)));
    }
    Err(CliError::new(Kind::Failed, "the server gave no result").hint("run it again with GSJ_LOG=debug"))
}

fn place(name: &str, path: Option<&Path>) {
    match path.filter(|path| path.exists()) {
        Some(path) => output::line(&format!("  {name:<14} {}", path.display())),
        None => output::line(&format!("  {name:<14} {}", paint(YELLOW, "none"))),
    }
}

/// The stored result of a session: `<session>.<mode>.json`.
fn stored(folder: &Path, session: &str) -> Option<PathBuf> {
    let prefix = format!("{session}.");
    files(folder).into_iter().find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            && path.extension().is_some_and(|ext| ext == "json")
    })
}

/// The regular files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found.sort();
    found
}
