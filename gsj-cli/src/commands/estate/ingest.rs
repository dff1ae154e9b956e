//! `gsj estate ingest`: has the retrieval service read what was pushed.

use std::process::ExitCode;

use gsj_estate::{Corpus, ingest};

use super::place::{self, CorpusArgs, LockArgs, ServiceArgs};
use crate::error::CliError;
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, paint, progress};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate ingest --corpus corpus --mcp-url http://127.0.0.1:8790")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    service: ServiceArgs,
    /// Say what would be asked, and ask nothing
    #[arg(long)]
    dry_run: bool,
    /// Do nothing
    #[arg(long)]
    skip_ingest: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    match args.corpus.read(&args.lock, format)? {
        Ok(corpus) => tell(&corpus, &args.service, args.dry_run, args.skip_ingest, format).map(|()| ExitCode::SUCCESS),
        Err(code) => Ok(code),
    }
}

/// Tells the service to read anew and waits for it, where there is one.
pub(super) fn tell(
    corpus: &Corpus,
    service: &ServiceArgs,
    dry_run: bool,
    skip: bool,
    format: Format,
) -> Result<(), CliError> {
    if skip {
        progress("ingest: skipped");
        return Ok(());
    }
    // What asks nothing needs no secret.
    if let Some(url) = service.url(corpus).filter(|_| dry_run) {
        progress(&format!("ingest: would tell {url} to read {} cases anew", corpus.cases.len()));
        return Ok(());
    }
    let Some(service) = service.resolve(corpus)? else {
        progress("ingest: the corpus names no retrieval service, so none is told");
        return Ok(());
    };
    progress(&format!("ingest: waiting for {}", service.url));
    let done = ingest(&corpus.lock_dir, &service).map_err(|error| place::of(&error))?;
    match format {
        Format::Json => output::json(&done),
        Format::Human => {
            let what = match (done.cases, done.by_commit) {
                (0, false) => "the service does not tell which cases it serves".to_owned(),
                (cases, true) => format!("{cases} cases served by the lock's commits"),
                (cases, false) => format!("{cases} cases served (it does not tell by which commits)"),
            };
            output::line(&format!("{} {what}", paint(GREEN, "indexed")));
        }
    }
    Ok(())
}
