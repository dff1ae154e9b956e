//! The `gsj` command: thin over the library crates; one file per subcommand.

mod commands;
mod environment;
mod error;
mod inputs;
mod output;
mod progress;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::commands::Command;
use crate::error::CliError;

/// Runs a pinned agent on truncated cases and returns validated, training-ready trajectories.
#[derive(Debug, clap::Parser)]
#[command(
    name = "gsj",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  gsj demo\n\nExit codes: 0 done and clean; 1 something was rejected, failed or is missing;\n2 usage or configuration; 3 a server could not be reached or answered with an error."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // The init of a sandbox is this program too: it must run before anything opens a file or starts a thread.
    if std::env::args_os().nth(1).is_some_and(|first| first == environment::SANDBOX_INIT) {
        gsj_sandbox::init_main();
    }
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // Help and usage go where clap sends them; help that was asked for and not shown is no success.
            let code = if error.print().is_err() && code == 0 { 1 } else { code };
            return shown(ExitCode::from(code));
        }
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => {
            drop(error.print());
            return ExitCode::from(2);
        }
    };
    environment::start_tracing(cli.command.serves());
    environment::install_tls();
    let code = match cli.command.run() {
        Ok(code) => code,
        Err(error) => report(&error),
    };
    shown(code)
}

/// The exit code, unless it says that all is well and what is well could not be shown.
fn shown(code: ExitCode) -> ExitCode {
    let Err(lost) = output::finish() else { return code };
    if let Some(error) = lost {
        error.print();
    }
    if code == ExitCode::SUCCESS { ExitCode::from(1) } else { code }
}

fn report(error: &CliError) -> ExitCode {
    error.print();
    ExitCode::from(error.code())
}
