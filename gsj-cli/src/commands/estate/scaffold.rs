//! `gsj estate scaffold`: from a corpus to repositories and the lock.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use gsj_estate::{Corpus, Recipe, ScaffoldOptions, Scaffolded, scaffold};

use super::place::{BuildArgs, CorpusArgs, HostArgs, LockArgs};
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{DIM, GREEN, paint, warn};

/// How many repositories that stay are named for each reason.
const NAMED: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate scaffold --corpus corpus --base-url file:///srv/repos")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    build: BuildArgs,
    /// Build everything and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    let corpus = match args.corpus.read(&args.lock, format)? {
        Ok(corpus) => corpus,
        Err(code) => return Ok(code),
    };
    let made = args.build.scaffold(&corpus, &args.corpus, &args.host, args.dry_run)?;
    print(&made, args.dry_run, format);
    Ok(ExitCode::SUCCESS)
}

/// Prints a line for each repository, and what became of those that the corpus gives no longer.
pub(super) fn print(made: &Scaffolded, dry_run: bool, format: Format) {
    for repo in &made.repos {
        match format {
            Format::Json => output::json(repo),
            Format::Human => {
                let word = match (repo.changed, dry_run) {
                    (false, _) => "unchanged",
                    (true, true) => "would make",
                    (true, false) => "made",
                };
                output::line(&format!(
                    "{} {:<20} {}  {}",
                    paint(GREEN, &format!("{word:<10}")),
                    repo.case_id,
                    counted(repo.refs.len(), "branch  ", "branches"),
                    paint(DIM, &repo.url)
                ));
            }
        }
    }
    for one in &made.forgotten {
        match (format, &one.why) {
            (Format::Json, _) => output::json(&serde_json::json!({"forgotten": one})),
            (_, None) if dry_run => output::line(&format!("would take away {}", one.url)),
            (_, None) => output::line(&format!("took away {}", one.url)),
            (_, Some(_)) => {}
        }
    }
    let mut kept: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &made.forgotten {
        if let Some(why) = &one.why {
            kept.entry(why).or_default().push(&one.url);
        }
    }
    for (why, urls) in kept {
        let named = urls.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let (count, more) = match urls.len() {
            1 => ("a repository that the corpus gives no longer stays".to_owned(), String::new()),
            many if many <= NAMED => {
                (format!("{many} repositories that the corpus gives no longer stay"), String::new())
            }
            many => (
                format!("{many} repositories that the corpus gives no longer stay"),
                format!(" and {} more; --format json has them all", many - NAMED),
            ),
        };
        warn(&format!("{count}: {why}: {named}{more}"));
    }
}

/// A number and its noun, in columns.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count:>2} {}", if count == 1 { one } else { many })
}

/// Reads a corpus and makes its repositories.
pub(crate) fn build(corpus: &Path, base: &Path, recipe: Recipe, dry_run: bool) -> Result<Scaffolded, CliError> {
    let read = Corpus::read(corpus).usage()?;
    let mut options = ScaffoldOptions::folder(base, recipe);
    options.dry_run = dry_run;
    scaffold(&read, &options).usage()
}
