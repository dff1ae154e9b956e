//! `gsj estate taskbank`: from a corpus and its lock to the task bank.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_estate::{BankMade, Corpus, EstateError, Split};

use super::place::{self, LockArgs};
use super::report;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{DIM, GREEN, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate taskbank --corpus corpus --split eval --out eval.parquet")]
pub(super) struct Args {
    /// The corpus folder.
    #[arg(long)]
    corpus: PathBuf,
    #[command(flatten)]
    lock: LockArgs,
    /// Count the tasks and write nothing; needs no lock
    #[arg(long, conflicts_with = "split")]
    dry_run: bool,
    /// Only the tasks of this split, in a file of its own that the lock does not know
    #[arg(long, value_enum, requires = "out")]
    split: Option<SplitArg>,
    /// The file for the tasks of one split, outside of the corpus folder
    #[arg(long, value_name = "PARQUET", requires = "split")]
    out: Option<PathBuf>,
    /// Refused: a bank of some cases must never exist
    #[arg(long, hide = true, num_args = 0..)]
    only: Option<Vec<String>>,
    #[command(flatten)]
    format: FormatArg,
}

/// One of the two splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SplitArg {
    /// For training.
    Train,
    /// For evaluation.
    Eval,
}

impl SplitArg {
    /// As task banks have it.
    pub(crate) fn split(self) -> gsj_tables::Split {
        match self {
            Self::Train => gsj_tables::Split::Train,
            Self::Eval => gsj_tables::Split::Eval,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    if args.only.is_some() {
        return Err(CliError::usage("--only: a task bank of some cases must never exist")
            .hint("without --only for the whole bank, or --split train|eval --out FILE for one split"));
    }
    let corpus = match Corpus::read(&args.corpus) {
        Err(EstateError::Invalid { report: found, .. }) => {
            report::print("taskbank", &found, args.format.resolve());
            return Ok(ExitCode::from(1));
        }
        read => args.lock.place(read.usage()?)?,
    };
    place::tell_of_waiting(&corpus, args.dry_run);
    let made = match (args.split, &args.out) {
        (Some(split), Some(out)) => {
            let split = match split {
                SplitArg::Train => Split::Train,
                SplitArg::Eval => Split::Eval,
            };
            gsj_estate::split_bank(&corpus, split, out).usage()?
        }
        _ => gsj_estate::taskbank(&corpus, args.dry_run).usage()?,
    };
    print(&made, args.format.resolve());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print(made: &BankMade, format: Format) {
    let counts = made.counts;
    if format == Format::Json {
        output::json(&serde_json::json!({
            "path": made.path, "rows": counts.rows, "train": counts.train, "eval": counts.eval,
            "sha256": made.sha256, "changed": made.changed,
        }));
        return;
    }
    let word = match (made.changed, &made.sha256) {
        (_, None) => "would make",
        (false, Some(_)) => "unchanged",
        (true, Some(_)) => "made",
    };
    let tasks = if counts.rows == 1 { "task" } else { "tasks" };
    let path = paint(DIM, &made.path.display().to_string());
    output::line(&format!(
        "{} {} {tasks}, {} train and {} eval  {path}",
        paint(GREEN, word),
        counts.rows,
        counts.train,
        counts.eval
    ));
}
