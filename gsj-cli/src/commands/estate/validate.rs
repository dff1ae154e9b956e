//! `gsj estate validate`: every rule of the corpus contract.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_estate::{Report, validate};

use super::report;
use crate::error::CliError;
use crate::output::FormatArg;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate validate --corpus corpus")]
pub(super) struct Args {
    /// The corpus folder.
    #[arg(long)]
    corpus: PathBuf,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let found = look(&args.corpus)?;
    report::print("validate", &found, args.format.resolve());
    Ok(if found.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Validates a corpus; a folder that is not there is a fault of the call.
pub(super) fn look(corpus: &Path) -> Result<Report, CliError> {
    if !corpus.is_dir() {
        return Err(CliError::usage(format!("`{}` is not a folder", corpus.display())));
    }
    Ok(validate(corpus))
}
