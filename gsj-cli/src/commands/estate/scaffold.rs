//! `gsj estate scaffold`: from a corpus to repositories and the lock.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_estate::{Corpus, Recipe, ScaffoldOptions, Scaffolded, scaffold};

use super::{report, validate};
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{DIM, GREEN, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate scaffold --corpus corpus --base-url file:///srv/repos")]
pub(super) struct Args {
    /// The corpus folder.
    #[arg(long)]
    corpus: PathBuf,
    /// Where the repositories go: `file://` and a folder
    #[arg(long)]
    base_url: String,
    /// The commit recipe [default: the lock's; `reference` beside a lock without one; else `sealed`]
    #[arg(long, value_enum)]
    recipe: Option<RecipeArg>,
    /// Build everything and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: FormatArg,
}

/// How commits are made (spec `corpus.md` sections 7 and 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RecipeArg {
    /// Each timestep is a root commit; the full document is in a repository that no episode reads.
    Sealed,
    /// The ids of the Python reference.
    Reference,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let base = args
        .base_url
        .strip_prefix("file://")
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .ok_or_else(|| {
            CliError::usage(format!("--base-url {}: only file:// and an absolute path is built in yet", args.base_url))
                .hint("--base-url file:///srv/repos")
        })?;
    let found = validate::look(&args.corpus)?;
    if !found.passed() {
        report::print("validate", &found, args.format.resolve());
        return Ok(ExitCode::from(1));
    }
    let recipe = match args.recipe {
        Some(RecipeArg::Sealed) => Recipe::Sealed,
        Some(RecipeArg::Reference) => Recipe::Reference,
        None => gsj_estate::default_recipe(&args.corpus).usage()?,
    };
    let made = build(&args.corpus, &base, recipe, args.dry_run)?;
    for repo in &made.repos {
        match args.format.resolve() {
            Format::Json => output::json(repo),
            Format::Human => output::line(&format!(
                "{} {:<20} {:>2} branches  {}",
                paint(
                    GREEN,
                    match (repo.changed, args.dry_run) {
                        (false, _) => "unchanged",
                        (true, true) => "would make",
                        (true, false) => "made",
                    }
                ),
                repo.case_id,
                repo.refs.len(),
                paint(DIM, &repo.path.display().to_string())
            )),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a corpus and makes its repositories.
pub(crate) fn build(corpus: &Path, base: &Path, recipe: Recipe, dry_run: bool) -> Result<Scaffolded, CliError> {
    let read = Corpus::read(corpus).usage()?;
    scaffold(&read, &ScaffoldOptions { base: base.to_owned(), recipe, owner_override: None, dry_run }).usage()
}
