//! `gsj show`: one session result as a person reads it.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_trace::json::Value;
use gsj_trace::outline::{Outline, render};

use crate::error::{CliError, Context as _};
use crate::{output, terminal};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj show /var/lib/gsj/demo/traces/ses_0123.thinking-off.json")]
pub(crate) struct Args {
    /// A session result, or a file of the quarantine.
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let bytes = std::fs::read(&args.file)
        .map_err(|error| CliError::usage(format!("read `{}`: {error}", args.file.display())))?;
    let value = Value::parse(&bytes).failed()?;
    output::line(&render(&Outline::of(&value), terminal::width()));
    Ok(ExitCode::SUCCESS)
}
