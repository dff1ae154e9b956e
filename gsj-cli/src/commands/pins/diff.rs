//! `gsj pins diff`: what moved between two pins files, and which gate fails because of it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use gsj_pins::diff::{Diff, Moved, diff};
use gsj_trace::json::{Object, Value};

use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{self, BOLD, DIM, GREEN, RED, paint, warn};
use gsj_trace::outline::wrap;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj pins diff fixtures/pins/thinking-off.json fixtures/pins/thinking-on.json")]
pub(crate) struct Args {
    /// The pins file as it was
    old: PathBuf,
    /// The pins file as it is to be
    new: PathBuf,
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let (old, new) = (super::read(&args.old)?, super::read(&args.new)?);
    let found = diff(&old, &new).usage()?;
    for pins in [&old, &new] {
        if let Err(fault) = pins.check_whole() {
            warn(&fault.to_string());
        }
    }
    match args.format.resolve() {
        Format::Json => output::exact(&document(&found).to_json()),
        Format::Human => output::line(human(&found, terminal::width()).trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

fn document(found: &Diff) -> Value<'static> {
    let texts = |texts: &[String]| Value::from(texts.iter().cloned().map(Value::from).collect::<Vec<_>>());
    let sets = found.sets.iter().map(|moved| {
        let effects = moved.effects.iter().map(|effect| {
            let findings = effect.findings.iter().map(|finding| Value::from((*finding).to_owned()));
            Value::from(Object::from_iter([
                ("under", Value::from(effect.under.name().to_owned())),
                ("findings", Value::from(findings.collect::<Vec<_>>())),
                ("words", Value::from(effect.words.clone())),
            ]))
        });
        Value::from(Object::from_iter([
            ("set", Value::from(moved.set.name().to_owned())),
            ("gate", Value::from(moved.set.gate().map(str::to_owned))),
            ("added", texts(&moved.added)),
            ("removed", texts(&moved.removed)),
            ("kept", Value::from(moved.kept as u64)),
            ("effects", Value::from(effects.collect::<Vec<_>>())),
        ]))
    });
    let mode = found
        .mode
        .as_ref()
        .map(|(old, new)| Object::from_iter([("old", Value::from(old.clone())), ("new", Value::from(new.clone()))]));
    Value::from(Object::from_iter([
        ("mode", mode.map_or(Value::Null, Value::from)),
        ("sets", Value::from(sets.collect::<Vec<_>>())),
    ]))
}

fn human(found: &Diff, width: usize) -> String {
    let mut out = String::new();
    if let Some((old, new)) = &found.mode {
        let _ = writeln!(out, "{}  {old} -> {new}", paint(BOLD, "mode"));
        let _ = writeln!(out, "  {}\n", paint(DIM, "the names of stored results carry it"));
    }
    for moved in &found.sets {
        set(&mut out, moved, width);
    }
    if found.sets.is_empty() {
        out.push_str("the same values are approved\n");
    }
    out
}

fn set(out: &mut String, moved: &Moved, width: usize) {
    let gate = moved.set.gate().map_or_else(|| "no gate asks for it".to_owned(), |gate| format!("gate {gate}"));
    let _ = writeln!(out, "{}  {}", paint(BOLD, moved.set.name()), paint(DIM, &format!("{gate}, {} kept", moved.kept)));
    for (sign, style, values) in [("-", RED, &moved.removed), ("+", GREEN, &moved.added)] {
        for value in values {
            let _ = writeln!(out, "  {} {value}", paint(style, sign));
        }
    }
    for effect in &moved.effects {
        for line in wrap(&effect.words, width.saturating_sub(4)) {
            let _ = writeln!(out, "    {line}");
        }
    }
    if moved.effects.iter().any(|effect| !effect.findings.is_empty()) {
        let _ = writeln!(out, "    {}", paint(DIM, &moved.set.findings().join(", ")));
    }
    out.push('\n');
}
