//! `gsj show`: one session result as a person reads it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_trace::json::Value;
use gsj_trace::outline::{Outline, render};

use crate::error::{CliError, Kind};
use crate::{output, terminal};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj show /var/lib/gsj/demo/traces/ses_0123.thinking-off.json")]
pub(crate) struct Args {
    /// Session results, or files of the quarantine
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    for (index, file) in args.files.iter().enumerate() {
        if index > 0 {
            output::line("");
        }
        show(file)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(file: &Path) -> Result<(), CliError> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| CliError::usage(format!("read `{name}`: {error}")))?;
    let value = Value::parse(&bytes)
        .map_err(|error| CliError::new(Kind::Failed, format!("`{name}` is no JSON document: {error}")))?;
    if ["trajectory", "session_result"].iter().all(|key| value.get(key).is_none()) {
        return Err(CliError::new(Kind::Failed, format!("`{name}` is no session result: it has no `trajectory`"))
            .hint("session results lie in the configuration's traces_dir and quarantine_dir"));
    }
    output::line(&render(&Outline::of(&value), terminal::width()));
    Ok(())
}
