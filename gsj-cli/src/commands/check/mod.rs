//! `gsj check`: the validators on session results.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_checks::{Policy, Profile, Verdict, map_many, validate_parsed};
use gsj_pins::{Pins, PinsError};
use gsj_trace::json::{Value, ValueRef};

use crate::environment;
use crate::error::{CliError, Context as _};
use crate::inputs::{Document, Inputs};
use crate::output::{self, Format, FormatArg};
use crate::progress::Progress;
use report::{Judged, Report};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj check --pins /var/lib/gsj/demo/pins.json /var/lib/gsj/demo/traces")]
pub(crate) struct Args {
    /// `.json` files (a document each), `.jsonl` files (one a line), folders, or `-`
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// The pins file [default: $GSJ_PINS_PATH, else ./pins/pins.gsj.json]
    #[arg(long, value_name = "FILE")]
    pins: Option<PathBuf>,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    format: FormatArg,
}

/// The options that say how results are judged.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rules {
    /// Which validators: `strict`, or `reference` for what the Python reference says
    #[arg(long, default_value = Profile::Strict.name(), value_parser = Profile::ALL.map(Profile::name))]
    profile: String,
    /// A knob of the policy; there are sentinel_threshold, zero_at_mask1_max_rate, reject_toolless_roster,
    /// require_fidelity, max_inexact_contexts, count_retokenized and allow_forks
    #[arg(long = "policy", value_name = "KEY=VALUE")]
    policy: Vec<String>,
}

impl Rules {
    pub(crate) fn policy(&self) -> Result<Policy, CliError> {
        let mut policy = Policy::of(self.profile.parse().usage()?);
        for knob in &self.policy {
            let Some((key, value)) = knob.split_once('=') else {
                return Err(CliError::usage(format!("--policy {knob}: must be KEY=VALUE"))
                    .hint(format!("the keys are {}", Policy::KEYS.join(", "))));
            };
            policy.set(key, value).map_err(|error| CliError::usage(format!("--policy {knob}: {error}")))?;
        }
        Ok(policy)
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let policy = args.rules.policy()?;
    let format = args.format.resolve();
    let pins = Pins::read(&pins_file(args.pins)?);
    let inputs = Inputs::open(&args.inputs, &["jsonl"])?;
    let mut report = Report::new(format, &policy, Progress::new(inputs.size()));
    // A file that cannot be read ends the run, after what came before it was told.
    let mut broken = None;
    let documents = inputs.map_while(|document| document.map_err(|error| broken = Some(error)).ok());
    for (judged, answer) in map_many(documents, |document| judge(document, &pins, &policy)) {
        match answer {
            Ok(verdict) => report.add(judged, verdict),
            Err(error) => {
                report.interrupt();
                return pins_fault(format, &judged.source, &error);
            }
        }
    }
    report.finish();
    match broken {
        Some(error) => Err(error),
        None => Ok(if report.rejected() == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }),
    }
}

/// Where the pins are, by the order of spec `checks.md` 5.2.
pub(crate) fn pins_file(option: Option<PathBuf>) -> Result<PathBuf, CliError> {
    if let Some(path) = known_pins_file(option) {
        return Ok(path);
    }
    Err(CliError::usage(
        "no pins file: neither --pins nor GSJ_PINS_PATH is given, and ./pins/pins.gsj.json is not there",
    )
    .hint("`gsj pins derive` makes one from artifacts (docs/pins.md); `gsj demo` writes one beside its traces"))
}

/// The pins file, where there is any.
pub(crate) fn known_pins_file(option: Option<PathBuf>) -> Option<PathBuf> {
    let fallback = || Some(PathBuf::from("pins/pins.gsj.json")).filter(|path| path.exists());
    option.or_else(environment::pins_path).or_else(fallback)
}

/// Validates a document, read once; a file of the quarantine is unwrapped first.
fn judge(document: Document, pins: &Pins, policy: &Policy) -> (Judged, Result<Verdict, PinsError>) {
    let answer = match Value::parse(&document.bytes) {
        Ok(value) => validate_parsed(unwrapped(value.as_ref()), pins, policy),
        // Pins that cannot be used are a fault whatever the body is.
        Err(_) => gsj_checks::validate(&document.bytes, pins, policy),
    };
    let escapes = answer.as_ref().is_ok_and(|verdict| report::may_hold_escapes(verdict, &document.bytes));
    let size = document.bytes.len() as u64;
    (Judged { source: document.source, size, escapes }, answer)
}

/// The session result, or the one inside a file of the quarantine.
pub(crate) fn unwrapped(value: ValueRef<'_>) -> ValueRef<'_> {
    let is_wrapped = value.get("findings").is_some_and(|findings| findings.as_array().is_some());
    match value.get("session_result") {
        Some(inner) if is_wrapped && inner.as_object().is_some() => inner,
        _ => value,
    }
}

fn pins_fault(format: Format, source: &str, error: &PinsError) -> Result<ExitCode, CliError> {
    if format == Format::Json {
        output::json(&serde_json::json!({
            "source": source, "error": "pins_configuration", "message": error.to_string(),
        }));
        return Ok(ExitCode::from(2));
    }
    Err::<ExitCode, _>(error.clone()).usage()
}
