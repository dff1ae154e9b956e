//! `gsj agent`: agents from their manifests and locks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_server::agent::{self, Agents, InstallOptions, Presence};

use crate::environment;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{DIM, GREEN, RED, YELLOW, paint, progress};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj agent install pi")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install an agent from its lock into the state folder.
    #[command(after_help = "Example:\n  gsj agent install pi")]
    Install {
        /// The agent's name.
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// List the agents that there are, and whether they are installed.
    #[command(after_help = "Example:\n  gsj agent list")]
    List {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Read every file of an installed agent again and compare it with what was installed.
    #[command(after_help = "Example:\n  gsj agent verify pi")]
    Verify {
        /// The agent's name.
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where agents come from and go to.
#[derive(Debug, clap::Args)]
struct Place {
    /// The state folder [default: $XDG_STATE_HOME/gsj, or /var/lib/gsj for root]
    #[arg(long)]
    state: Option<PathBuf>,
    /// A folder with further agents, one folder each
    #[arg(long)]
    agents_dir: Option<PathBuf>,
}

impl Place {
    fn state(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(environment::state_dir)
    }
}

/// The built-in agents and those of a folder.
pub(crate) fn agents(folder: Option<&Path>) -> Result<Agents, CliError> {
    let mut agents = Agents::builtin().usage()?;
    if let Some(folder) = folder {
        agents.add_folder(folder).usage()?;
    }
    Ok(agents)
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Install { name, place } => {
            let agents = agents(place.agents_dir.as_deref())?;
            let agent = agents.find(&name).usage()?;
            progress(&format!("installing {name} from its lock (a minute the first time)"));
            let installed = agent::install(agent, &place.state(), &InstallOptions::default()).usage()?;
            let identity = installed.identity();
            output::line(&format!(
                "{} {} {} in {}",
                paint(GREEN, "installed"),
                identity.name,
                identity.version,
                installed.dir().display()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Action::List { place, format } => {
            let agents = agents(place.agents_dir.as_deref())?;
            for listed in agent::list(&agents, &place.state()) {
                let (word, style) = match listed.presence {
                    Presence::Installed => ("installed", GREEN),
                    Presence::Absent => ("not installed", DIM),
                    Presence::Damaged(_) => ("damaged", YELLOW),
                };
                match format.resolve() {
                    Format::Json => output::json(&serde_json::json!({
                        "name": listed.name, "version": listed.version, "about": listed.about, "state": word,
                        "lock_sha256": listed.lock_sha256, "dir": listed.dir,
                    })),
                    Format::Human => output::line(&format!(
                        "{:<10} {:<10} {}  {}",
                        listed.name,
                        listed.version,
                        paint(style, word),
                        listed.about
                    )),
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Verify { name, place } => {
            let agents = agents(place.agents_dir.as_deref())?;
            match agent::verify(agents.find(&name).usage()?, &place.state()) {
                Ok(identity) => {
                    output::line(&format!("{} {} {}", paint(GREEN, "unchanged"), identity.name, identity.version));
                    Ok(ExitCode::SUCCESS)
                }
                Err(error) => {
                    output::line(&format!("{} {name}", paint(RED, "not as installed")));
                    Err(error).failed()
                }
            }
        }
    }
}
