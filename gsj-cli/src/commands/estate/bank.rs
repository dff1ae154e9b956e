//! `gsj estate bank`: what task banks hold, and how two of them differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_tables::{Bank, Change, RawRow, TaskRow, diff};

use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, paint, width};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj estate bank show corpus/taskbank.parquet")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Count what a bank holds.
    #[command(after_help = "Example:\n  gsj estate bank show corpus/taskbank.parquet")]
    Show {
        /// The bank
        #[arg(value_name = "PARQUET")]
        bank: PathBuf,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Show tasks, the first ones unless told otherwise.
    #[command(after_help = "Example:\n  gsj estate bank head corpus/taskbank.parquet --from 3 --count 2")]
    Head {
        /// The bank
        #[arg(value_name = "PARQUET")]
        bank: PathBuf,
        /// The first row, counted from 0
        #[arg(long, value_name = "ROW", default_value_t = 0)]
        from: u64,
        /// How many rows
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
        count: u64,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Say which tasks two banks do not share, or have otherwise. Exit 1 when there is one.
    #[command(after_help = "Example:\n  gsj estate bank diff old.parquet corpus/taskbank.parquet")]
    Diff {
        /// The bank as it was
        #[arg(value_name = "BEFORE")]
        before: PathBuf,
        /// The bank as it is
        #[arg(value_name = "AFTER")]
        after: PathBuf,
        #[command(flatten)]
        format: FormatArg,
    },
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    match &args.action {
        Action::Show { bank, format } => show(bank, format.resolve()),
        Action::Head { bank, from, count, format } => head(bank, *from..from.saturating_add(*count), format.resolve()),
        Action::Diff { before, after, format } => compare(before, after, format.resolve()),
    }
}

fn show(path: &Path, format: Format) -> Result<ExitCode, CliError> {
    let bank = Bank::open(path).usage()?;
    let facts = bank.facts();
    let (mut cases, mut timesteps) = (0_u64, 0_u64);
    let (mut splits, mut sources, mut images) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut last: Option<TaskRow> = None;
    let mut ordered = true;
    for row in bank.all() {
        let row = row.usage()?;
        let case = last.as_ref().is_none_or(|last| last.case_id != row.case_id);
        cases += u64::from(case);
        timesteps += u64::from(case || last.as_ref().is_none_or(|last| last.timestep != row.timestep));
        ordered &= last.as_ref().is_none_or(|last| last.key() < row.key());
        *splits.entry(row.split.as_str()).or_insert(0_u64) += 1;
        *sources.entry(row.ask.source()).or_insert(0_u64) += 1;
        if !images.contains(&*row.sandbox_image) {
            images.insert(row.sandbox_image.to_string());
        }
        last = Some(row);
    }
    if format == Format::Json {
        output::json(&serde_json::json!({
            "path": path, "rows": facts.rows, "train": splits.get("train").unwrap_or(&0),
            "eval": splits.get("eval").unwrap_or(&0), "cases": ordered.then_some(cases),
            "timesteps": ordered.then_some(timesteps), "sources": sources, "sandbox_images": images,
            "ordered": ordered, "bytes": facts.bytes, "row_groups": facts.row_groups,
            "created_by": facts.created_by, "compression": facts.compression,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let list = |counts: Vec<(&str, u64)>| {
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let field = |name: &str, value: &str| output::line(&format!("{} {value}", paint(DIM, &format!("{name:<10}"))));
    field("tasks", &format!("{}  ({})", facts.rows, list(splits.into_iter().collect())));
    // Of a bank in another order these would count what is side by side.
    if ordered {
        field("cases", &format!("{cases}, at {timesteps} timesteps"));
    } else {
        field("order", &paint(YELLOW, "not that of a task bank: by case, timestep and prompt, each once"));
    }
    field("prompts", &list(sources.iter().map(|(name, count)| (name.as_str(), *count)).collect()));
    field("images", &images.into_iter().collect::<Vec<_>>().join(", "));
    let groups = if facts.row_groups == 1 { "row group" } else { "row groups" };
    let by = facts.created_by.map(|by| format!(", by {}", shown(&by))).unwrap_or_default();
    let packed = facts.compression.join(" and ");
    field("file", &format!("{} bytes, {} {groups}, compression {packed}{by}", facts.bytes, facts.row_groups));
    Ok(ExitCode::SUCCESS)
}

fn head(path: &Path, rows: std::ops::Range<u64>, format: Format) -> Result<ExitCode, CliError> {
    let bank = Bank::open(path).usage()?;
    if rows.start > 0 && rows.start >= bank.len() {
        return Err(CliError::usage(format!("--from {}: `{}` has {} rows", rows.start, path.display(), bank.len()))
            .hint("rows are counted from 0"));
    }
    for (number, row) in rows.clone().zip(bank.rows(rows)) {
        let row = row.usage()?;
        match format {
            Format::Json => output::json(&columns(number, &row)),
            Format::Human => {
                let split = paint(DIM, row.split.as_str());
                output::line(&format!(
                    "{} {}  {split}",
                    paint(DIM, &format!("{number:>6}")),
                    paint(BOLD, &row.key().to_string())
                ));
                output::line(&format!("       {}", first_words(row.ask.instruction())));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A row with all its columns, and its number.
fn columns(number: u64, row: &TaskRow) -> serde_json::Value {
    let row = RawRow::from(row);
    serde_json::json!({
        "row": number, "case_id": row.case_id, "timestep": row.timestep, "prompt_id": row.prompt_id,
        "split": row.split, "prompt_source": row.prompt_source, "prompt_text": row.prompt_text,
        "skill_card_text": row.skill_card_text.as_deref(), "sandbox_image": row.sandbox_image.as_deref(),
    })
}

fn compare(before: &Path, after: &Path, format: Format) -> Result<ExitCode, CliError> {
    let (before, after) = (Bank::open(before).usage()?, Bank::open(after).usage()?);
    let (mut removed, mut added, mut changed) = (0_u64, 0_u64, 0_u64);
    for change in diff(&before, &after) {
        let (word, mark, key, columns) = match change.usage()? {
            Change::Removed(key) => {
                removed += 1;
                ("removed", paint(RED, "-"), key, Vec::new())
            }
            Change::Added(key) => {
                added += 1;
                ("added", paint(GREEN, "+"), key, Vec::new())
            }
            Change::Changed { key, columns } => {
                changed += 1;
                ("changed", paint(YELLOW, "~"), key, columns)
            }
        };
        match format {
            Format::Json => output::json(&serde_json::json!({
                "change": word, "case_id": key.case_id, "timestep": key.timestep, "prompt_id": key.prompt_id,
                "columns": columns,
            })),
            Format::Human => {
                let columns = columns.join(", ");
                let columns = if columns.is_empty() { columns } else { format!("  {}", paint(DIM, &columns)) };
                output::line(&format!("{mark} {key}{columns}"));
            }
        }
    }
    let same = removed + added + changed == 0;
    if format == Format::Human {
        output::line(&if same {
            format!("{} the same {} tasks", paint(GREEN, "equal:"), before.len())
        } else {
            format!("{removed} removed, {added} added, {changed} changed")
        });
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The first words of an instruction, on one line of the terminal.
fn first_words(text: &str) -> String {
    let mut line = String::new();
    let most = width().saturating_sub(8);
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > most {
            line.push_str(if line.is_empty() { "..." } else { " ..." });
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&shown(word));
    }
    line
}

/// Text of a file without what a terminal would obey.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
