//! `gsj pins`: the approved sets, each value with the artifact it came from.

mod derive;
mod diff;
mod hash;
mod show;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use gsj_pins::Pins;

use crate::error::{CliError, Context as _};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj pins show fixtures/pins/thinking-off.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show every approved value with the artifact it came from.
    Show(show::Args),
    /// Check a pins file whole, and each value against the artifact it came from.
    Verify(verify::Args),
    /// Say what moved between two pins files, and which gate fails because of it.
    Diff(diff::Args),
    /// Make a pins file from artifacts.
    Derive(Box<derive::Args>),
    /// Print the digest of a file by one of the four conventions.
    Hash(hash::Args),
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Show(args) => show::run(&args),
        Action::Verify(args) => verify::run(&args),
        Action::Diff(args) => diff::run(&args),
        Action::Derive(args) => derive::run(&args),
        Action::Hash(args) => hash::run(&args),
    }
}

/// Reads a pins file that must be one.
fn read(file: &Path) -> Result<Pins, CliError> {
    let pins = Pins::read(file);
    pins.check_usable().usage()?;
    Ok(pins)
}
