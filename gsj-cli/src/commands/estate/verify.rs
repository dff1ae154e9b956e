//! `gsj estate verify`: reads everything back and compares it with the corpus.

use std::process::ExitCode;

use gsj_estate::{Corpus, VerifyOptions, verify};

use super::place::{self, CorpusArgs, HostArgs, LockArgs, ServiceArgs};
use super::report;
use crate::error::CliError;
use crate::output::{Format, FormatArg};
use crate::terminal::progress;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate verify --corpus corpus --base-url file:///srv/repos --skip-ingest")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    service: ServiceArgs,
    /// Do not look at what the retrieval service serves
    #[arg(long)]
    skip_ingest: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    match args.corpus.read(&args.lock, format)? {
        Ok(corpus) => check(&corpus, &args.corpus, &args.host, &args.service, args.skip_ingest, format),
        Err(code) => Ok(code),
    }
}

/// Verifies a corpus that was read, and prints the table.
pub(super) fn check(
    corpus: &Corpus,
    which: &CorpusArgs,
    host: &HostArgs,
    service: &ServiceArgs,
    skip_ingest: bool,
    format: Format,
) -> Result<ExitCode, CliError> {
    let mut options = VerifyOptions::new(host.resolve(corpus, false)?);
    options.owner_override.clone_from(&host.owner_override);
    options.partial = which.is_partial();
    if !skip_ingest {
        options.service = service.resolve(corpus)?;
        if options.service.is_none() {
            progress("note: the corpus names no retrieval service, so none is looked at");
        }
    }
    if options.partial {
        progress("note: the task bank is looked at only as a whole, without --only");
    }
    let found = verify(corpus, &options).map_err(|error| place::of(&error))?;
    report::print("verify", &found, format);
    Ok(if found.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
