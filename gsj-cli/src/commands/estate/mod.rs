//! `gsj estate`: from a folder of pages to repositories.

mod report;
mod scaffold;
mod validate;

use std::process::ExitCode;

use crate::error::CliError;

pub(crate) use scaffold::build;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj estate validate --corpus corpus\n  gsj estate scaffold --corpus corpus --base-url file:///srv/repos"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check every rule of the corpus contract and print a table of findings.
    Validate(validate::Args),
    /// Turn each case into a bare repository with a branch per timestep, and write the lock.
    Scaffold(scaffold::Args),
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Validate(args) => validate::run(&args),
        Action::Scaffold(args) => scaffold::run(&args),
    }
}
