//! `gsj estate down`: stops the server of an estate, and takes the estate away when that is said and confirmed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::up::{self, Asker};
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, paint, progress, warn};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate down\n  gsj estate down --wipe")]
pub(super) struct Args {
    /// The folder of the estate [default: estate in the state folder]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// How long sessions under way may take to end, in seconds; then they are cut off
    #[arg(long, value_name = "S", default_value_t = 900)]
    deadline: u64,
    /// Delete everything of the estate: repositories, pins, traces, state. The corpus stays
    #[arg(long)]
    wipe: bool,
    /// Answer every question with yes
    #[arg(short = 'y', long)]
    yes: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let home = up::home(args.home.as_deref())?;
    if !home.is_one() {
        return Err(CliError::usage(format!("no estate stands in `{}`", home.root().display()))
            .hint("--home DIR names the folder that `gsj estate up` was given"));
    }
    let claim = home.claim("gsj estate down").usage()?;
    if args.wipe {
        let name = home.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Asker::new(args.yes).confirm_by(
            &format!("This deletes everything of the estate in {}, its traces too.", home.root().display()),
            &name,
        )?;
    }
    let running = up::find(&home)?;
    if let Some(serving) = &running {
        progress(&format!("stopping the server on {} (process {})", serving.listen, serving.pid));
        up::stop(&home, serving, Duration::from_secs(args.deadline))?;
    }
    let mut left = Vec::new();
    if args.wipe {
        left = claim.wipe(gsj_sandbox::remove_tree).usage()?;
        for path in &left {
            warn(&format!("not of the estate, and left: {}", path.display()));
        }
    }
    match args.format.resolve() {
        Format::Json => output::json(&serde_json::json!({
            "home": home.root(), "stopped": running.is_some(), "wiped": args.wipe, "left": left,
        })),
        Format::Human => {
            let word = if running.is_some() { "stopped" } else { "no server ran" };
            let data = if args.wipe { "everything of it is deleted" } else { "its data stays" };
            output::line(&format!("{}: {data} ({})", paint(GREEN, word), home.root().display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
