//! `gsj estate`: from a folder of pages to repositories.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_estate::{Corpus, Recipe, Report, ScaffoldOptions, Scaffolded, scaffold, validate};

use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{BOLD, DIM, GREEN, RED, paint};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj estate validate --corpus corpus\n  gsj estate scaffold --corpus corpus --base-url file:///srv/repos"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check every rule of the corpus contract and print a table of findings.
    #[command(after_help = "Example:\n  gsj estate validate --corpus corpus")]
    Validate {
        /// The corpus folder.
        #[arg(long)]
        corpus: PathBuf,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Turn each case into a bare repository with a branch per timestep, and write the lock.
    #[command(after_help = "Example:\n  gsj estate scaffold --corpus corpus --base-url file:///srv/repos")]
    Scaffold {
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
    },
}

/// How commits are made (spec `corpus.md` sections 7 and 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RecipeArg {
    /// Each timestep is a root commit; the full document is in a repository that no episode reads.
    Sealed,
    /// The ids of the Python reference.
    Reference,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Validate { corpus, format } => {
            let report = look(&corpus)?;
            print(&report, format.resolve());
            Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        Action::Scaffold { corpus, base_url, recipe, dry_run, format } => {
            let base = base_url
                .strip_prefix("file://")
                .filter(|path| path.starts_with('/'))
                .map(PathBuf::from)
                .ok_or_else(|| {
                    CliError::usage(format!("--base-url {base_url}: only file:// and an absolute path is built in yet"))
                        .hint("--base-url file:///srv/repos")
                })?;
            let report = look(&corpus)?;
            if !report.passed() {
                print(&report, format.resolve());
                return Ok(ExitCode::from(1));
            }
            let recipe = match recipe {
                Some(RecipeArg::Sealed) => Recipe::Sealed,
                Some(RecipeArg::Reference) => Recipe::Reference,
                None => gsj_estate::default_recipe(&corpus).usage()?,
            };
            let made = build(&corpus, &base, recipe, dry_run)?;
            for repo in &made.repos {
                match format.resolve() {
                    Format::Json => output::json(repo),
                    Format::Human => output::line(&format!(
                        "{} {:<20} {:>2} branches  {}",
                        paint(
                            GREEN,
                            match (repo.changed, dry_run) {
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
    }
}

/// Reads a corpus and makes its repositories.
pub(crate) fn build(corpus: &Path, base: &Path, recipe: Recipe, dry_run: bool) -> Result<Scaffolded, CliError> {
    let read = Corpus::read(corpus).usage()?;
    scaffold(&read, &ScaffoldOptions { base: base.to_owned(), recipe, owner_override: None, dry_run }).usage()
}

fn look(corpus: &Path) -> Result<Report, CliError> {
    if !corpus.is_dir() {
        return Err(CliError::usage(format!("`{}` is not a folder", corpus.display())));
    }
    Ok(validate(corpus))
}

fn print(report: &Report, format: Format) {
    if format == Format::Json {
        for finding in &report.findings {
            output::json(finding);
        }
        return;
    }
    output::line(&paint(BOLD, "validate"));
    output::line(&paint(DIM, &format!("{:<20} {:<6} {:<16} {:<7} detail", "case", "split", "where", "result")));
    for finding in &report.findings {
        let result = if finding.ok { paint(GREEN, "ok     ") } else { paint(RED, "FAIL   ") };
        output::line(&format!(
            "{:<20} {:<6} {:<16} {result} {}",
            finding.scope, finding.split, finding.where_, finding.detail
        ));
    }
    let failed = report.findings.iter().filter(|finding| !finding.ok).count();
    let passed = report.findings.len() - failed;
    let word = if report.passed() { paint(GREEN, "PASS") } else { paint(RED, "FAIL") };
    output::line(&format!("{word}: {passed} passed, {failed} failed"));
}
