//! `gsj cutoff`: truncated checkouts and what they really hold.

mod checkout;

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_cutoff::{CutoffError, Expectation, audit};

use crate::error::{CliError, Kind};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, RED, paint};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj cutoff checkout --repo /srv/repos/o/harbor-lease.git --branch timestep-12 --dest /tmp/w\n  gsj cutoff audit /tmp/w --timestep 12"
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
    #[command(
        after_help = "Example:\n  gsj cutoff audit /tmp/w --timestep 12 --forbid-from /srv/repos/o/harbor-lease.git"
    )]
    Audit {
        /// The checkout.
        dir: PathBuf,
        /// The last page that may be there
        #[arg(long)]
        timestep: Option<u32>,
        /// Prove that nothing else of this repository is in the checkout
        #[arg(long)]
        forbid_from: Option<PathBuf>,
        #[command(flatten)]
        format: FormatArg,
    },
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Checkout(args) => checkout::run(&args),
        Action::Audit { dir, timestep, forbid_from, format } => {
            if !dir.join(".git").is_dir() {
                return Err(CliError::usage(format!("`{}` is no checkout: it has no folder .git", dir.display()))
                    .hint("gsj cutoff checkout makes one"));
            }
            let found = audit(&dir, &Expectation { timestep, forbid_from, ..Expectation::default() })
                .map_err(|error| told(&error))?;
            match format.resolve() {
                Format::Json => output::json(&found),
                Format::Human => {
                    output::json_pretty(&found.evidence);
                    for leak in &found.leaks {
                        output::line(&format!("{} {}: {}", paint(RED, "leak"), leak.where_, leak.what));
                    }
                    if found.leaks.is_empty() {
                        output::line(&paint(GREEN, "no leak"));
                    }
                }
            }
            Ok(if found.leaks.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
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
