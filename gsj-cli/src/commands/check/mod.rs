//! `gsj check`: the validators on session results.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_checks::{Policy, Profile, Verdict, validate};
use gsj_pins::Pins;
use gsj_trace::json::Value;

use super::gates;
use crate::environment;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{self, BOLD, GREEN, RED, paint, progress};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj check --pins pins.json /var/lib/gsj/demo/traces")]
pub(crate) struct Args {
    /// `.json` files (a document each), `.jsonl` files (one a line), folders, or `-`
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// The pins file [default: $GSJ_PINS_PATH, else ./pins/pins.gsj.json]
    #[arg(long)]
    pins: Option<PathBuf>,
    /// Which validators: only `reference` is built in yet
    #[arg(long, value_enum, default_value_t = ProfileArg::Reference)]
    profile: ProfileArg,
    /// A knob of the policy, for example `zero_at_mask1_max_rate=0.1`
    #[arg(long = "policy", value_name = "KEY=VALUE")]
    policy: Vec<String>,
    #[command(flatten)]
    format: FormatArg,
}

/// Which set of validators runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileArg {
    /// The reference's rules.
    Reference,
    /// The reference's rules and those against its defects.
    Strict,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let policy = policy(args.profile, &args.policy)?;
    let format = args.format.resolve();
    let pins = Pins::read(&pins_file(args.pins)?);
    let mut inputs = Vec::new();
    for input in &args.inputs {
        collect(input, true, &mut inputs)?;
    }
    if inputs.is_empty() {
        let looked = args.inputs.iter().map(|input| format!("`{}`", input.display())).collect::<Vec<_>>().join(", ");
        return Err(CliError::usage(format!("no .json or .jsonl file in {looked}")));
    }
    progress("profile: reference (strict is not built in yet)");
    let mut tally = Tally::default();
    let many = inputs.len() > 1;
    for input in &inputs {
        let bytes = read(input)?;
        for (source, body) in bodies(input, &bytes) {
            let verdict = match verdict(body, &pins, &policy) {
                Ok(verdict) => verdict,
                Err(error) => return pins_fault(format, &source, &error),
            };
            tally.add(&verdict);
            print(format, &source, &verdict, many);
        }
    }
    if format == Format::Human {
        tally.print();
    }
    Ok(if tally.rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Where the pins are, by the order of spec `checks.md` 5.2.
pub(crate) fn pins_file(option: Option<PathBuf>) -> Result<PathBuf, CliError> {
    if let Some(path) = option.or_else(environment::pins_path) {
        return Ok(path);
    }
    let fallback = PathBuf::from("pins/pins.gsj.json");
    if fallback.exists() {
        return Ok(fallback);
    }
    Err(CliError::usage(
        "no pins file: neither --pins nor GSJ_PINS_PATH is given, and ./pins/pins.gsj.json is not there",
    )
    .hint("`gsj demo` writes one beside its traces; an estate's own belongs into its configuration's `checks.pins`"))
}

/// Builds the policy from the options.
pub(crate) fn policy(profile: ProfileArg, knobs: &[String]) -> Result<Policy, CliError> {
    if profile == ProfileArg::Strict {
        return Err(CliError::usage("profile `strict` is not built in yet").hint("--profile reference"));
    }
    let mut policy = Policy { profile: Profile::Reference, ..Policy::default() };
    for knob in knobs {
        let bad = |why: &str| CliError::usage(format!("--policy {knob}: {why}"));
        let Some((key, value)) = knob.split_once('=') else { return Err(bad("must be KEY=VALUE")) };
        let number = || value.parse::<f64>().map_err(|_| bad("the value must be a number"));
        match key {
            "sentinel_threshold" => policy.sentinel_threshold = number()?,
            "zero_at_mask1_max_rate" => policy.zero_at_mask1_max_rate = number()?,
            "reject_toolless_roster" => {
                policy.reject_toolless_roster =
                    value.parse().map_err(|_| bad("the value must be `true` or `false`"))?;
            }
            _ => {
                return Err(bad("no such key; there are sentinel_threshold, zero_at_mask1_max_rate and \
                                reject_toolless_roster"));
            }
        }
    }
    Ok(policy)
}

fn collect(path: &Path, named: bool, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        found.push(path.to_owned());
        return Ok(());
    }
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", path.display()));
    if std::fs::metadata(path).map_err(fault)?.is_dir() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(fault)?
            .map(|entry| entry.map(|e| e.path()))
            .collect::<Result<_, _>>()
            .map_err(fault)?;
        entries.sort();
        for entry in entries {
            collect(&entry, false, found)?;
        }
    } else if named || path.extension().is_some_and(|ext| ext == "json" || ext == "jsonl") {
        found.push(path.to_owned());
    }
    Ok(())
}

fn read(input: &Path) -> Result<Vec<u8>, CliError> {
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", input.display()));
    if input.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(fault)?;
        return Ok(bytes);
    }
    std::fs::read(input).map_err(fault)
}

/// The bodies of a file: one, or one a line for `.jsonl`.
fn bodies<'b>(input: &Path, bytes: &'b [u8]) -> Vec<(String, &'b [u8])> {
    let name = input.display().to_string();
    if input.extension().is_none_or(|ext| ext != "jsonl") {
        return vec![(name, bytes)];
    }
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| (format!("{name}:{}", index + 1), line))
        .collect()
}

/// Validates a body; a file of the quarantine is unwrapped first.
pub(crate) fn verdict(body: &[u8], pins: &Pins, policy: &Policy) -> Result<Verdict, gsj_pins::PinsError> {
    if let Ok(value) = Value::parse(body)
        && let Some(inner) = value.get("session_result")
        && value.get("findings").is_some_and(|findings| findings.as_array().is_some())
        && inner.as_object().is_some()
    {
        return gsj_checks::validate_parsed(inner, pins, policy);
    }
    validate(body, pins, policy)
}

fn print(format: Format, source: &str, verdict: &Verdict, many: bool) {
    match (format, &verdict.unreadable) {
        (Format::Json, Some(unreadable)) => output::json(&serde_json::json!({
            "source": source, "session_id": null, "error": unreadable.code(), "message": unreadable.to_string(),
        })),
        (Format::Json, None) => output::json(&serde_json::json!({
            "source": source, "session_id": verdict.session_id, "findings": verdict.findings,
        })),
        (Format::Human, Some(unreadable)) => {
            output::line(&format!("{} {source}: {}: {unreadable}", paint(RED, "✗"), unreadable.code()));
        }
        (Format::Human, None) => {
            let session = verdict.session_id.as_deref().unwrap_or("no session id");
            if verdict.findings.is_empty() {
                output::line(&format!("{} {source} ({session})", paint(GREEN, "✓")));
            } else {
                output::line(&format!("{} {source} ({session})", paint(RED, "✗")));
                for finding in &verdict.findings {
                    output::line(&format!("    {finding}"));
                }
            }
            if !many {
                output::line(&gates::table(&verdict.findings, terminal::width()));
            }
        }
    }
}

fn pins_fault(format: Format, source: &str, error: &gsj_pins::PinsError) -> Result<ExitCode, CliError> {
    if format == Format::Json {
        output::json(&serde_json::json!({
            "source": source, "error": "pins_configuration", "message": error.to_string(),
        }));
        return Ok(ExitCode::from(2));
    }
    Err::<ExitCode, _>(error.clone()).usage()
}

/// Counts over all results.
#[derive(Debug, Default)]
struct Tally {
    seen: usize,
    rejected: usize,
    by_rule: BTreeMap<String, usize>,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        self.seen += 1;
        if verdict.unreadable.is_some() || !verdict.findings.is_empty() {
            self.rejected += 1;
        }
        for finding in &verdict.findings {
            let rule: Vec<&str> = finding.splitn(3, ':').take(2).collect();
            *self.by_rule.entry(rule.join(":")).or_default() += 1;
        }
    }

    fn print(&self) {
        if self.seen < 2 {
            return;
        }
        output::line(&format!("\n{}", paint(BOLD, &format!("{} results, {} rejected", self.seen, self.rejected))));
        for (rule, count) in &self.by_rule {
            output::line(&format!("{count:>8}  {rule}"));
        }
        if std::io::stderr().is_terminal() && self.rejected > 0 {
            progress("a line per result: --format json");
        }
    }
}
