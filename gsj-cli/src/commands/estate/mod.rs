//! `gsj estate`: from a folder of pages to repositories, a task bank and a service that knows them.

mod all;
mod bank;
mod down;
mod ingest;
mod place;
mod report;
mod scaffold;
mod status;
mod taskbank;
mod up;
mod validate;
mod verify;

use std::process::ExitCode;

use crate::error::CliError;

pub(crate) use scaffold::build;
pub(crate) use taskbank::SplitArg;
pub(crate) use up::become_server;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate validate --corpus corpus")]
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
    /// Have the retrieval service read what was pushed, and wait until it serves that.
    Ingest(ingest::Args),
    /// Validate, scaffold, ingest, task bank and verify, until one fails.
    All(all::Args),
    /// Read everything back and compare it with the corpus.
    Verify(verify::Args),
    /// Write the task bank, a row for each case, timestep and prompt, and have the lock claim it.
    Taskbank(taskbank::Args),
    /// Look into task banks.
    Bank(bank::Args),
    /// Stand up a whole estate of a corpus and an engine: repositories, task bank, pins, configuration, server.
    Up(up::Args),
    /// Say how an estate that was stood up is.
    Status(status::Args),
    /// Stop the server of an estate; its data stays.
    Down(down::Args),
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Validate(args) => validate::run(&args),
        Action::Scaffold(args) => scaffold::run(&args),
        Action::Ingest(args) => ingest::run(&args),
        Action::All(args) => all::run(&args),
        Action::Verify(args) => verify::run(&args),
        Action::Taskbank(args) => taskbank::run(&args),
        Action::Bank(args) => bank::run(&args),
        Action::Up(args) => up::run(&args),
        Action::Status(args) => status::run(&args),
        Action::Down(args) => down::run(&args),
    }
}
