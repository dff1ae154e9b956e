//! `gsj estate all`: the phases one after the other, until one fails.

use std::process::ExitCode;

use gsj_estate::{ScaffoldOptions, scaffold, taskbank};

use super::place::{self, CorpusArgs, HostArgs, RecipeArg, ServiceArgs};
use super::{ingest, report, scaffold as scaffolding, verify};
use crate::error::CliError;
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, paint, progress};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate all --corpus corpus --base-url file:///srv/repos --skip-ingest")]
pub(super) struct Args {
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    service: ServiceArgs,
    /// The commit recipe [default: the lock's; `reference` beside a lock without one; else `sealed`]
    #[arg(long, value_enum)]
    recipe: Option<RecipeArg>,
    /// Leave the repositories of cases that left the corpus
    #[arg(long)]
    keep_forgotten: bool,
    /// No retrieval service: neither tell it nor look at it
    #[arg(long)]
    skip_ingest: bool,
    /// Build and tell, touch nothing, and end before verify
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let format = args.format.resolve();
    let found = args.corpus.validate()?;
    report::print("validate", &found, format);
    if !found.passed() {
        return Ok(ExitCode::from(1));
    }
    let corpus = match args.corpus.read(format)? {
        Ok(corpus) => corpus,
        Err(code) => return Ok(code),
    };
    let mut options =
        ScaffoldOptions::new(args.host.resolve(&corpus, true)?, place::recipe(args.recipe, &args.corpus.corpus)?);
    options.owner_override.clone_from(&args.host.owner_override);
    options.partial = args.corpus.is_partial();
    options.keep_forgotten = args.keep_forgotten;
    options.dry_run = args.dry_run;
    let made = scaffold(&corpus, &options).map_err(|error| place::of(&error))?;
    scaffolding::print(&made, args.dry_run, format);
    ingest::tell(&corpus, &args.service, args.dry_run, args.skip_ingest, format)?;
    if options.partial {
        progress("taskbank: skipped, a bank of some cases must never be");
    } else {
        let bank = taskbank(&corpus, args.dry_run).map_err(|error| place::of(&error))?;
        let counts = serde_json::json!({"path": bank.path, "train": bank.counts.train, "eval": bank.counts.eval,
            "sha256": bank.sha256, "changed": bank.changed});
        match format {
            Format::Json => output::json(&counts),
            Format::Human => output::line(&format!(
                "{} {} tasks, {} to train and {} to evaluate",
                paint(
                    GREEN,
                    match (bank.changed, args.dry_run) {
                        (_, true) => "would make",
                        (true, false) => "made",
                        (false, false) => "unchanged",
                    }
                ),
                bank.counts.train + bank.counts.eval,
                bank.counts.train,
                bank.counts.eval
            )),
        }
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    verify::check(&corpus, &args.corpus, &args.host, &args.service, args.skip_ingest, format)
}
