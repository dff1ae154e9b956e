//! `gsj estate validate`: every rule of the corpus contract, once or on every save.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use gsj_estate::{EstateError, Report, Watch};
use serde::Serialize;

use super::place::CorpusArgs;
use super::report;
use crate::commands::runtime::{self, Signals};
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::progress;

/// The least time between two looks at the folder.
const PAUSE: Duration = Duration::from_millis(400);
/// How long nothing must change before it is taken for done: an editor writes more than once, a copy for a while.
const QUIET: Duration = Duration::from_millis(150);
/// Of a watched folder so large that a look takes long: a look takes a twentieth of the time.
const SHARE: u32 = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate validate --corpus corpus --watch")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    /// Validate again whenever something changes, until Ctrl-C; the exit code is then the last verdict's
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    if args.watch {
        let only = args.corpus.is_partial().then(|| args.corpus.only.clone());
        return runtime::block_on(watch(Watch::new(&args.corpus.corpus, only), format));
    }
    let report = args.corpus.validate()?;
    report::print("validate", &report, format);
    Ok(verdict(&report))
}

fn verdict(report: &Report) -> ExitCode {
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

async fn watch(mut watch: Watch, format: Format) -> Result<ExitCode, CliError> {
    let mut signals = Signals::new()?;
    let mut last: Option<ExitCode> = None;
    let mut gone = false;
    while !output::is_lost() {
        let started = Instant::now();
        let mut changed = match watch.poll() {
            Ok(changed) => changed,
            // A folder that was there is waited for, as one that is being put in its place comes back.
            Err(error @ EstateError::NoCorpus { .. }) if last.is_some() => {
                if !std::mem::replace(&mut gone, true) {
                    progress(&format!("{error} any more; waiting for it; Ctrl-C ends it"));
                }
                last = Some(ExitCode::from(2));
                if signals.within(PAUSE).await {
                    break;
                }
                continue;
            }
            Err(error) => return Err(error).usage(),
        };
        // What came back is told of also where it is as it was.
        let back = std::mem::replace(&mut gone, false);
        let mut pause = PAUSE.max(started.elapsed() * SHARE);
        if last.is_some() && !changed.is_empty() {
            while !signals.within(QUIET).await {
                // A folder that goes now is told of at the next look.
                let more = watch.poll().unwrap_or_default();
                if more.is_empty() {
                    break;
                }
                changed.extend(more);
            }
            changed.sort();
            changed.dedup();
        }
        if !changed.is_empty() || last.is_none() || back {
            match watch.validate() {
                Ok(report) => {
                    match (format, last.is_some()) {
                        (Format::Human, true) => report::print_again("validate", &report, &changed),
                        (Format::Human, false) => report::print("validate", &report, format),
                        (Format::Json, again) => print_run(&report, if again { &changed } else { &[] }),
                    }
                    last = Some(verdict(&report));
                }
                // A case that was there goes on being watched for while it is not.
                Err(error @ EstateError::UnknownCases { .. }) if last.is_some() => {
                    CliError::from_error(crate::error::Kind::Usage, &error).print();
                    last = Some(ExitCode::from(2));
                }
                Err(EstateError::NoCorpus { .. }) if last.is_some() => continue,
                Err(error) => return Err(error).usage(),
            }
            if format == Format::Human {
                progress("watching; Ctrl-C ends it");
            }
            pause = PAUSE;
        }
        if signals.within(pause).await {
            break;
        }
    }
    progress("stopped");
    Ok(last.unwrap_or(ExitCode::SUCCESS))
}

/// The end of one run in the JSON form of `--watch`, behind the findings.
#[derive(Serialize)]
struct Run<'a> {
    /// The paths that changed since the run before, some of them when there are many.
    changed: &'a [String],
    changed_count: usize,
    ok: bool,
    passed: usize,
    failed: usize,
}

fn print_run(report: &Report, changed: &[String]) {
    report.findings.iter().for_each(output::json);
    let (passed, failed) = report.counts();
    let some = &changed[..changed.len().min(100)];
    output::json(&Run { changed: some, changed_count: changed.len(), ok: report.passed(), passed, failed });
}
