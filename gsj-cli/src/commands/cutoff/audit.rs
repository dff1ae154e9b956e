//! `gsj cutoff audit`: what a checkout really holds.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_cutoff::{CutoffError, Expectation, audit};

use super::told;
use crate::error::CliError;
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, RED, paint};

pub(super) const EXAMPLE: &str =
    "Example:\n  gsj cutoff audit /tmp/w --timestep 12 --forbid-from /srv/repos/o/harbor-lease.git";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The checkout.
    dir: PathBuf,
    /// The last page that may be there; with it the checkout is judged as an episode's: one commit, shallow, pages 1..T
    #[arg(long)]
    timestep: Option<u32>,
    /// Prove that nothing of this repository is in the checkout but what its HEAD may hold
    #[arg(long, value_name = "REPO")]
    forbid_from: Option<PathBuf>,
    /// How many bytes the objects may inflate to in all [default: 8 GiB and 64 for each byte of a pack]
    #[arg(long, value_name = "BYTES")]
    most_inflated: Option<u64>,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: Args) -> Result<ExitCode, CliError> {
    let Args { dir, timestep, forbid_from, most_inflated, format } = args;
    if std::fs::symlink_metadata(dir.join(".git")).is_err() {
        return Err(CliError::usage(format!("`{}` is no checkout: it has no folder .git", dir.display()))
            .hint("gsj cutoff checkout makes one"));
    }
    let format = format.resolve();
    let found = match audit(&dir, &Expectation { timestep, forbid_from, most_inflated, ..Expectation::default() }) {
        Ok(found) => found,
        // There is nothing to be measured, and why is what an audit has to tell.
        Err(error @ CutoffError::NotACheckout { .. }) if format == Format::Json => {
            let leak = serde_json::json!({"where": ".git", "what": error.to_string()});
            output::json(&serde_json::json!({"evidence": null, "leaks": [leak]}));
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(told(&error)),
    };
    match format {
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
