//! `gsj estate all`: the phases one after the other, until one fails.

use std::process::ExitCode;

use gsj_estate::taskbank;

use super::place::{self, BuildArgs, CorpusArgs, HostArgs, LockArgs, ServiceArgs};
use super::{ingest, report, scaffold as scaffolding, taskbank as taskbanking, verify};
use crate::error::CliError;
use crate::output::FormatArg;
use crate::terminal::progress;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate all --corpus corpus --base-url file:///srv/repos --skip-ingest")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    build: BuildArgs,
    /// No retrieval service: neither tell it nor look at it
    #[arg(long)]
    skip_ingest: bool,
    /// Build and tell, touch nothing, and end before verify
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    let found = args.corpus.validate()?;
    report::print("validate", &found, format);
    if !found.passed() {
        return Ok(ExitCode::from(1));
    }
    let corpus = match args.corpus.read(&args.lock, format)? {
        Ok(corpus) => corpus,
        Err(code) => return Ok(code),
    };
    if !args.skip_ingest && !args.dry_run {
        // A secret that is missing is told before anything is pushed.
        args.service.resolve(&corpus)?;
    }
    let made = args.build.scaffold(&corpus, &args.corpus, &args.host, args.dry_run)?;
    scaffolding::print(&made, args.dry_run, format);
    ingest::tell(&corpus, &args.service, args.dry_run, args.skip_ingest, format)?;
    if args.corpus.is_partial() {
        progress("taskbank: skipped, a bank of some cases must never be");
    } else {
        let bank = taskbank(&corpus, args.dry_run).map_err(|error| place::of(&error))?;
        taskbanking::print(&bank, format);
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    verify::check(&corpus, &args.corpus, &args.host, &args.service, args.skip_ingest, format)
}
