//! `gsj cutoff`: truncated checkouts and what they really hold.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_cutoff::{CheckoutRequest, CutoffError, Expectation, audit, checkout};

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
    /// Make a checkout that holds one commit and nothing later, and print its evidence.
    #[command(
        after_help = "Example:\n  gsj cutoff checkout --repo /srv/repos/o/harbor-lease.git --branch timestep-12 --dest /tmp/w"
    )]
    Checkout {
        /// The case's bare repository on this machine, a path or a file:// URL.
        #[arg(long)]
        repo: String,
        /// The branch, `timestep-T`.
        #[arg(long)]
        branch: String,
        /// Where the checkout goes; must not exist or be empty.
        #[arg(long)]
        dest: PathBuf,
        /// The last page [default: the branch's number]
        #[arg(long)]
        timestep: Option<u32>,
        /// The recipe that the repository was made by, stated in the evidence
        #[arg(long, value_parser = ["sealed", "reference"], default_value = "sealed")]
        recipe: String,
        /// The case id [default: the repository's name]
        #[arg(long)]
        case: Option<String>,
    },
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
        Action::Checkout { repo, branch, dest, timestep, recipe, case } => {
            let timestep = timestep
                .or_else(|| branch.strip_prefix("timestep-").and_then(|number| number.parse().ok()))
                .ok_or_else(|| CliError::usage(format!("`{branch}` names no timestep")).hint("--timestep T"))?;
            let source = local(&repo)?;
            let name = source.file_name().map(|n| n.to_string_lossy().trim_end_matches(".git").to_owned());
            let case_id = case.or(name).unwrap_or_default();
            let clone_url = format!("file://{}", source.display());
            let evidence = checkout(&CheckoutRequest {
                source: &source,
                branch: &branch,
                case_id: &case_id,
                timestep,
                clone_url: &clone_url,
                recipe: &recipe,
                dest: &dest,
            })
            .map_err(|error| told(&error))?;
            output::json_pretty(&evidence);
            Ok(ExitCode::SUCCESS)
        }
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

/// The absolute path of a repository that is given as a path or a `file://` URL.
fn local(repo: &str) -> Result<PathBuf, CliError> {
    let path = repo.strip_prefix("file://").unwrap_or(repo);
    if path.contains("://") {
        return Err(CliError::usage("--repo: only a path or a file:// URL is built in yet")
            .hint("git clone --bare URL case.git, then --repo case.git"));
    }
    std::path::absolute(path).map_err(|error| CliError::usage(format!("--repo {repo}: {error}")))
}

/// A wrong option is usage; what is wrong with the objects of a repository or checkout is a failure.
fn told(error: &CutoffError) -> CliError {
    let (kind, hint) = match error {
        CutoffError::Source { .. } => {
            (Kind::Usage, Some("name a bare repository, as `gsj estate scaffold` makes them"))
        }
        CutoffError::BranchMissing { .. } | CutoffError::BranchTimestep { .. } => (Kind::Usage, None),
        CutoffError::Destination { .. } => (Kind::Usage, Some("a folder that is empty or not there: --dest DIR")),
        _ => (Kind::Failed, None),
    };
    let told = CliError::from_error(kind, error);
    match hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
