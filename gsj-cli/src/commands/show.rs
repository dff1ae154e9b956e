//! `gsj show`: one session result as a person reads it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_checks::{Policy, validate_parsed};
use gsj_pins::Pins;
use gsj_trace::json::Value;
use gsj_trace::outline::{Outline, render};

use super::check::{Rules, known_pins_file, unwrapped};
use super::gates;
use crate::error::{CliError, Context as _, Kind};
use crate::terminal::{BOLD, DIM, GREEN, RED, paint};
use crate::{inputs, output, terminal};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj show --pins /var/lib/gsj/demo/pins.json /var/lib/gsj/demo/traces/*.json")]
pub(crate) struct Args {
    /// Session results, or files of the quarantine
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The pins file, by which the gates are judged [default: $GSJ_PINS_PATH, else ./pins/pins.gsj.json]
    #[arg(long, value_name = "FILE")]
    pins: Option<PathBuf>,
    #[command(flatten)]
    rules: Rules,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let policy = args.rules.policy()?;
    let pins = known_pins_file(args.pins.clone()).map(|path| Pins::read(&path));
    if let Some(pins) = &pins {
        pins.check_usable().usage()?;
    }
    for (index, file) in args.files.iter().enumerate() {
        if index > 0 {
            output::line(&format!("\n{}\n", paint(DIM, &"─".repeat(terminal::width()))));
        }
        show(file, pins.as_ref(), &policy)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(file: &Path, pins: Option<&Pins>, policy: &Policy) -> Result<(), CliError> {
    let name = file.display();
    let bytes = inputs::read(file)?;
    let value = Value::parse(&bytes)
        .map_err(|error| CliError::new(Kind::Failed, format!("`{name}` is no JSON document: {error}")))?;
    let result = unwrapped(value.as_ref());
    if result.get("trajectory").is_none() && value.get("session_result").is_none() {
        return Err(CliError::new(Kind::Failed, format!("`{name}` is no session result: it has no `trajectory`"))
            .hint("session results lie in the configuration's traces_dir and quarantine_dir"));
    }
    output::line(render(&Outline::of(&value), terminal::width()).trim_end());
    let Some(pins) = pins else {
        output::line(&format!(
            "\n{}",
            paint(DIM, "gates were not judged: --pins FILE or GSJ_PINS_PATH names the pins")
        ));
        return Ok(());
    };
    let head = format!("gates by {} (profile {})", pins.label(), policy.profile);
    output::line(&format!("\n{}", paint(BOLD, &head)));
    let verdict = validate_parsed(result, pins, policy).usage()?;
    output::line(&gates::table(&verdict.findings, policy, terminal::width()));
    output::line(&match verdict.findings.len() {
        0 => format!("\n{}", paint(GREEN, "accepted")),
        1 => format!("\n{}", paint(RED, "rejected: 1 finding")),
        n => format!("\n{}", paint(RED, &format!("rejected: {n} findings"))),
    });
    Ok(())
}
