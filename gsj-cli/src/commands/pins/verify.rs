//! `gsj pins verify`: a pins file against the artifacts it was made from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_pins::verify::{Check, Outcome, Verification};
use gsj_pins::{Key, Pins, Set};
use gsj_trace::json::{Object, Value};
use gsj_trace::tokenizer::Tokenizer;
use gsj_trace::tokens::TokenText;

use crate::commands::check::pins_file;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{self, DIM, GREEN, RED, YELLOW, paint, warn};
use gsj_trace::outline::wrap;

/// Column at which a line says more of the line above it.
const DETAIL_AT: usize = 15;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj pins verify fixtures/pins/thinking-off.json --artifacts fixtures")]
pub(crate) struct Args {
    /// The pins file [default: $GSJ_PINS_PATH, else ./pins/pins.gsj.json]
    file: Option<PathBuf>,
    /// Where the artifacts lie that the file names by relative paths [default: here, else beside the file]
    #[arg(long, value_name = "DIR")]
    artifacts: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let file = pins_file(args.file.clone())?;
    let pins = super::read(&file)?;
    let beside = file.parent().map(Path::to_owned).unwrap_or_default();
    let folders = args.artifacts.clone().map_or_else(|| vec![PathBuf::new(), beside], |folder| vec![folder]);
    let read = |name: &str| read_artifact(&folders, name);
    let tokenizer = tokenizer(&pins, &read)?;
    let found = pins.verify(read, tokenizer.as_ref().map(|t| t as &dyn TokenText)).usage()?;
    match args.format.resolve() {
        Format::Json => output::exact(&document(&pins, &found).to_json()),
        Format::Human => output::line(human(&pins, &found, terminal::width()).trim_end()),
    }
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The bytes of an artifact: a file, or `FILE:LINE` of a file with a document a line.
fn read_artifact(folders: &[PathBuf], name: &str) -> Result<Vec<u8>, String> {
    let mut why = "not found".to_owned();
    for folder in folders {
        match std::fs::read(folder.join(name)) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => why = error.to_string(),
            Err(_) => {}
        }
        if let Some((file, line)) = name.rsplit_once(':')
            && let (Ok(line), Ok(bytes)) = (line.parse::<usize>(), std::fs::read(folder.join(file)))
        {
            let found = line.checked_sub(1).and_then(|at| bytes.split(|byte| *byte == b'\n').nth(at));
            return found.map(<[u8]>::to_vec).ok_or_else(|| "it has no such line".to_owned());
        }
    }
    Err(why)
}

/// The pinned tokenizer, when its artifact is at hand and there are ids to read with it.
fn tokenizer(pins: &Pins, read: &impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<Option<Tokenizer>, CliError> {
    let values = pins.values().usage()?;
    if !values.iter().any(|pinned| pinned.set == Key::TailIds.into()) {
        return Ok(None);
    }
    let named = values.iter().filter(|pinned| pinned.set == Set::from(Key::Tokenizer)).flat_map(|p| &p.sources);
    for source in named {
        let Ok(bytes) = read(&source.artifact) else { continue };
        match Tokenizer::from_bytes(&bytes) {
            Ok(tokenizer) => return Ok(Some(tokenizer)),
            Err(error) => warn(&format!("`{}` reads no ids: {error}", source.artifact)),
        }
    }
    Ok(None)
}

fn document(pins: &Pins, found: &Verification) -> Value<'static> {
    let checks = found.checks.iter().map(|check| {
        Value::from(Object::from_iter([
            ("set", Value::from(check.set.name().to_owned())),
            ("value", Value::from(check.value.clone())),
            ("artifact", Value::from(check.artifact.clone())),
            ("outcome", Value::from(check.outcome.name().to_owned())),
            ("detail", Value::from(detail(&check.outcome))),
        ]))
    });
    Value::from(Object::from_iter([
        ("file", Value::from(pins.label().to_owned())),
        ("fault", Value::from(found.fault.as_ref().map(ToString::to_string))),
        ("checks", Value::from(checks.collect::<Vec<_>>())),
    ]))
}

/// What the outcome says besides its name.
fn detail(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Recorded(why) => Some((*why).to_owned()),
        Outcome::Differs(found) => Some(format!("it gives {found} now")),
        Outcome::Changed(digest) => {
            Some(format!("the value still holds, but the file is another one: sha256 {digest}"))
        }
        Outcome::Unread(why) => Some(why.clone()),
        Outcome::NoSource => Some("the file does not say where it came from".to_owned()),
        Outcome::NotApproved => Some("only the provenance names it; no gate approves it".to_owned()),
        _ => None,
    }
}

fn human(pins: &Pins, found: &Verification, width: usize) -> String {
    let mut out = String::new();
    match &found.fault {
        None => {
            let _ = writeln!(out, "{}: {}", pins.label(), paint(GREEN, "whole"));
        }
        Some(fault) => {
            let _ = writeln!(out, "{}: {}", pins.label(), paint(RED, "not whole"));
            for line in wrap(&fault.to_string(), width.saturating_sub(2)) {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    for Check { set, value, artifact, outcome, .. } in &found.checks {
        *counts.entry(outcome.name()).or_default() += 1;
        let style = match outcome {
            Outcome::Confirmed => GREEN,
            Outcome::Differs(_) => RED,
            Outcome::Recorded(_) => DIM,
            _ => YELLOW,
        };
        let mark = paint(style, &format!("{:<12}", word(outcome)));
        let said = format!("{:<20}  {}", set.name(), short(value));
        let from = artifact.as_deref().unwrap_or_default();
        let fits = DETAIL_AT + said.chars().count() + 2 + from.chars().count() <= width;
        let _ = writeln!(out, "{}", format!("  {mark} {said}  {}", if fits { from } else { "" }).trim_end());
        if !fits {
            let _ = writeln!(out, "{:DETAIL_AT$}{from}", "");
        }
        if let Some(detail) = detail(outcome) {
            for line in wrap(&detail, width.saturating_sub(DETAIL_AT)) {
                let _ = writeln!(out, "{:DETAIL_AT$}{}", "", paint(DIM, &line));
            }
        }
    }
    let counts: Vec<String> = counts.iter().map(|(name, n)| format!("{n} {}", name.replace('_', " "))).collect();
    let _ = writeln!(out, "{}", if counts.is_empty() { "no values".to_owned() } else { counts.join(", ") });
    out
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Differs(_) => "DIFFERS".to_owned(),
        other => other.name().replace('_', " "),
    }
}

fn short(value: &str) -> String {
    let is_hash = value.len() >= 40 && value.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { format!("{}…", &value[..12]) } else { value.to_owned() }
}
