//! `gsj cutoff`: truncated checkouts and what they really hold.

mod audit;
mod checkout;
mod scan;

use std::process::ExitCode;

use gsj_cutoff::CutoffError;

use crate::error::{CliError, Kind};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj cutoff checkout --repo /srv/repos/o/harbor-lease.git --branch timestep-12 --dest /tmp/w\n  gsj cutoff audit /tmp/w --timestep 12\n  gsj cutoff scan --forbid later/ --allow visible/ trace.json"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a checkout that holds a cut of a repository and nothing later, and print its evidence.
    #[command(after_help = checkout::EXAMPLES)]
    Checkout(Box<checkout::Args>),
    /// Walk a checkout object by object and say what it holds.
    #[command(after_help = audit::EXAMPLE)]
    Audit(audit::Args),
    /// Find text of later pages in a file or trace.
    #[command(after_help = scan::EXAMPLE)]
    Scan(scan::Args),
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Checkout(args) => checkout::run(&args),
        Action::Audit(args) => audit::run(args),
        Action::Scan(args) => scan::run(&args),
    }
}

/// A wrong option is usage; what is wrong with the objects of a repository or checkout is a failure.
fn told(error: &CutoffError) -> CliError {
    let (kind, hint) = match error {
        CutoffError::Source { .. } => {
            (Kind::Usage, Some("name a repository, as `gsj estate scaffold` makes them or `git clone` does"))
        }
        CutoffError::BranchMissing { .. }
        | CutoffError::BranchTimestep { .. }
        | CutoffError::HistoryOfTimestep { .. }
        | CutoffError::NothingBefore { .. }
        | CutoffError::Id { .. }
        | CutoffError::Date { .. }
        | CutoffError::Credential => (Kind::Usage, None),
        CutoffError::Url { .. } => (Kind::Usage, Some("https://HOST/PATH, and a password by --credential-env NAME")),
        CutoffError::Fetch { .. } => (Kind::Server, Some("a remote that asks for a password: --credential-env NAME")),
        CutoffError::TooMuch { .. } => (Kind::Failed, Some("--most-inflated BYTES, where you know the repository")),
        CutoffError::Denied { .. } => (Kind::Failed, Some("cut before it: --commit its parent, or an earlier --date")),
        CutoffError::Destination { .. } => (Kind::Usage, Some("a folder that is empty or not there: --dest DIR")),
        _ => (Kind::Failed, None),
    };
    let told = CliError::from_error(kind, error);
    match hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
