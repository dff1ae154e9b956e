//! `gsj estate up`: from a corpus folder and an engine to a server that takes tasks.

mod ask;
mod choice;
mod config;
mod pins;
mod report;
mod secret;
mod server;
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_estate::home::{Home, Record};
use gsj_estate::{Corpus, EstateError};
use gsj_server::config::Config;

use super::place::{LockArgs, RecipeArg, of, recipe};
use crate::commands::engine::Dialect;
use crate::error::{CliError, Context as _};
use crate::output::FormatArg;
use crate::terminal::progress;

pub(super) use ask::Asker;
pub(super) use choice::home;
pub(super) use pins::standing as pins_standing;

use choice::Choice;
pub(crate) use server::become_server;
pub(super) use server::{find, health, stop, url};
use steps::Steps;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj estate up --corpus corpus --engine-url http://127.0.0.1:8000 --engine-model Qwen/Qwen3-0.6B\n  gsj estate up            (again: the same corpus and engine as before)"
)]
pub(super) struct Args {
    /// The corpus folder [default: the one before]
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    #[command(flatten)]
    lock: LockArgs,
    /// The engine, without /v1 [default: the one before]
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// The name that the engine serves the model by [default: the one before]
    #[arg(long, value_name = "NAME")]
    engine_model: Option<String>,
    /// The dialect of the engine [default: the one before, else vllm]
    #[arg(long, value_enum)]
    engine: Option<Dialect>,
    /// Name of the variable that holds the engine's key
    #[arg(long, value_name = "NAME")]
    engine_api_key_env: Option<String>,
    /// The engine's tokenizer.json: contexts that differ are told apart by it, and it is pinned
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The agent [default: the one before, else pi]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// A folder with further agents, one folder each
    #[arg(long, value_name = "DIR")]
    agents_dir: Option<PathBuf>,
    /// The folder for everything of the estate [default: estate in the state folder]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The state folder where agents are installed [default: the one before, else $XDG_STATE_HOME/gsj, or /var/lib/gsj for root]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Address and port of the server [default: the one before, else 127.0.0.1:8080 or a free port]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// The commit recipe [default: the lock's; `reference` beside a lock without one; else `sealed`]
    #[arg(long, value_enum)]
    recipe: Option<RecipeArg>,
    /// Answer every question with yes
    #[arg(short = 'y', long)]
    yes: bool,
    #[command(flatten)]
    format: FormatArg,
}

/// The configuration of an estate, or why it cannot be used.
pub(super) fn config(home: &Home) -> Result<Config, String> {
    config::read(home).map_err(|error| error.text())
}

/// As root every path is seen; the sandbox's user must get through each folder on the way too.
fn reachable(home: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::PermissionsExt as _;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let closed = |folder: &&Path| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
    match home.ancestors().find(closed) {
        None => Ok(()),
        Some(folder) => Err(CliError::usage(format!(
            "the sandbox's user cannot reach `{}`: `{}` lets nobody through",
            home.display(),
            folder.display()
        ))
        .hint(format!("--home DIR below folders that everybody may enter, or: chmod o+x {}", folder.display()))),
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    let asker = Asker::new(args.yes);
    let home = choice::home(args.home.as_deref())?;
    let before = if home.is_one() { Some(Record::read(&home).usage()?) } else { None };
    let choice = Choice::of(args, before.as_ref())?;
    let corpus = match Corpus::read(&choice.corpus) {
        Ok(corpus) => corpus,
        Err(EstateError::Invalid { report, .. }) => {
            super::report::print("validate", &report, format);
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(of(&error)),
    };
    reachable(home.root())?;
    progress(&format!("the corpus passes: {} cases", corpus.cases.len()));
    if before.is_none() {
        asker.confirm(&format!(
            "Stand up an estate of {} in {}: repositories, task bank, one bring-up episode against {}, and a server?",
            choice.corpus.display(),
            home.root().display(),
            choice.engine.url
        ))?;
    }
    let claim = home.claim("gsj estate up").usage()?;
    // What another command did before it let go of the folder counts too.
    let record = Record::read(&home).usage()?;
    let choice = Choice::of(args, Some(&record))?;
    let corpus = LockArgs { lock_dir: choice.lock_dir.clone() }.place(corpus)?;
    let recipe = recipe(args.recipe, &corpus.lock_dir)?;
    let mut steps =
        Steps { home: claim.home(), choice: &choice, corpus: &corpus, recipe, asker, record, done: Vec::new() };
    let stands = steps.walk(before.is_none())?;
    pins::warn_of_others(&home);
    report::print(&steps, &stands, format)?;
    Ok(ExitCode::SUCCESS)
}
