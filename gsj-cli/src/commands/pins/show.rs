//! `gsj pins show`: every approved value with the artifact it came from.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use gsj_pins::{Pinned, Pins, Set, Source};
use gsj_trace::json::{Object, Value};

use crate::commands::check::pins_file;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{self, BOLD, DIM, GREEN, RED, YELLOW, paint};
use gsj_trace::outline::wrap;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj pins show fixtures/pins/thinking-off.json")]
pub(crate) struct Args {
    /// The pins file [default: $GSJ_PINS_PATH, else ./pins/pins.gsj.json]
    file: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let pins = super::read(&pins_file(args.file.clone())?)?;
    let values = pins.values().usage()?;
    match args.format.resolve() {
        Format::Json => output::exact(&document(&pins, &values).to_json()),
        Format::Human => output::line(human(&pins, &values, terminal::width()).trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

fn document(pins: &Pins, values: &[Pinned<'_>]) -> Value<'static> {
    let text = |text: &str| Value::from(text.to_owned());
    let sets = Set::ALL.into_iter().filter_map(|set| {
        let of: Vec<Value<'static>> = values
            .iter()
            .filter(|pinned| pinned.set == set)
            .map(|pinned| {
                let skills: Vec<Value<'static>> = pinned.skills.iter().map(|name| text(name)).collect();
                let sources: Vec<Value<'static>> = pinned.sources.iter().map(source).collect();
                Value::from(Object::from_iter([
                    ("value", pinned.value.to_owned()),
                    ("skills", Value::from(skills)),
                    ("sources", Value::from(sources)),
                ]))
            })
            .collect();
        (!of.is_empty()).then(|| {
            let findings: Vec<Value<'static>> = set.findings().iter().map(|finding| text(finding)).collect();
            Value::from(Object::from_iter([
                ("set", text(set.name())),
                ("gate", Value::from(set.gate().map(str::to_owned))),
                ("findings", Value::from(findings)),
                ("values", Value::from(of)),
            ]))
        })
    });
    Value::from(Object::from_iter([
        ("file", text(pins.label())),
        ("sha256", Value::from(pins.digest().map(str::to_owned))),
        ("mode", text(pins.mode())),
        ("fault", Value::from(pins.check_whole().err().map(|fault| fault.to_string()))),
        ("sets", Value::from(sets.collect::<Vec<_>>())),
    ]))
}

fn source(source: &Source) -> Value<'static> {
    Value::from(Object::from_iter([
        ("artifact", Value::from(source.artifact.clone())),
        ("part", Value::from(source.part.clone())),
        ("sha256", Value::from(source.sha256.clone())),
    ]))
}

fn human(pins: &Pins, values: &[Pinned<'_>], width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  mode {}", paint(BOLD, pins.label()), pins.mode());
    match pins.check_whole() {
        Ok(()) => {
            let _ = writeln!(out, "{}: every gate has what it asks for", paint(GREEN, "whole"));
        }
        Err(fault) => {
            let _ = writeln!(out, "{}", paint(RED, "not whole"));
            for line in wrap(&fault.to_string(), width.saturating_sub(2)) {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
    for set in Set::ALL {
        let of: Vec<&Pinned<'_>> =
            values.iter().filter(|pinned| pinned.set == set && !is_told(pinned, values)).collect();
        if of.is_empty() {
            continue;
        }
        let gate = set.gate().map_or_else(|| "no gate asks for it".to_owned(), |gate| format!("gate {gate}"));
        let _ = writeln!(out, "\n{:<24}{}", set.name(), paint(DIM, &gate));
        for pinned in of {
            let skills = match (set, pinned.skills.is_empty()) {
                (Set::SkillCards, _) | (_, true) => String::new(),
                _ => format!("  {}", pinned.skills.join(", ")),
            };
            let _ = writeln!(out, "  {}{skills}", pinned.text());
            if let Some(odd) = never_passes(pinned, values) {
                let _ = writeln!(out, "      {}", paint(YELLOW, odd));
            }
            if pinned.sources.is_empty() && set != Set::SkillCards {
                let _ = writeln!(out, "      {}", paint(DIM, "the file does not say where it came from"));
            }
            for source in &pinned.sources {
                let _ = writeln!(out, "      {}", origin(source, pinned));
            }
        }
    }
    out
}

/// Whether the hashes of the skills say it already.
fn is_told(pinned: &Pinned<'_>, values: &[Pinned<'_>]) -> bool {
    let card = Set::from(gsj_pins::Key::SkillCard);
    pinned.set == Set::SkillCards && values.iter().any(|other| other.set == card && other.value == pinned.value)
}

/// Why a card that is approved in one place passes no gate all the same.
fn never_passes(pinned: &Pinned<'_>, values: &[Pinned<'_>]) -> Option<&'static str> {
    let has_cards = values.iter().any(|other| other.set == Set::SkillCards);
    match pinned.set {
        Set::SkillCards => Some("it is not in skill_card_hash, so it never passes"),
        Set::Key(gsj_pins::Key::SkillCard) if has_cards && pinned.skills.is_empty() => {
            Some("skill_cards lists it for no skill, so it never passes under the profile strict")
        }
        _ => None,
    }
}

/// The artifact; its digest only where that says more than the value does.
fn origin(source: &Source, pinned: &Pinned<'_>) -> String {
    let mut out = format!("from {}", source.artifact);
    if let Some(part) = &source.part {
        let _ = write!(out, "#{part}");
    }
    match &source.sha256 {
        Some(digest) if pinned.value.as_str() != Some(digest) => {
            let short: String = digest.chars().take(12).collect();
            let _ = write!(out, "  {}", paint(DIM, &format!("(sha256 {short}…)")));
        }
        _ => {}
    }
    out
}
