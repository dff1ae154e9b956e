//! The rows of a task bank as tasks, some of them under way at a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gsj_client::{Client, ClientError, Collected, TaskRequest};
use gsj_pins::Pins;
use gsj_tables::{Ask, Bank, Split, TaskKey, TaskRow};
use gsj_trace::canonical::text_sha256;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::results::Results;
use crate::commands::estate::SplitArg;
use crate::error::{CliError, Context as _};
use crate::terminal::{progress, warn};

/// Tasks that are with the server at a time: enough for any number of workers, few enough to be held in memory.
const IN_FLIGHT: usize = 64;
/// The longest id that the server takes.
const LONGEST_ID: usize = 256;

/// Which rows of which bank.
#[derive(Debug, clap::Args)]
pub(super) struct FromBank {
    /// Submit rows of this task bank, a task each
    #[arg(long, value_name = "PARQUET", conflicts_with_all = ["request", "case", "timestep", "prompt", "prompt_file"])]
    pub(super) from_bank: Option<PathBuf>,
    /// One row, counted from 0
    #[arg(long, value_name = "N", requires = "from_bank", conflicts_with_all = ["rows", "all"])]
    row: Option<u64>,
    /// Rows A to B, counted from 0, without B
    #[arg(long, value_name = "A..B", requires = "from_bank", conflicts_with = "all", value_parser = range)]
    rows: Option<Range<u64>>,
    /// Every row; of a bank with both splits those of --split
    #[arg(long, requires = "from_bank")]
    all: bool,
    /// With --all only rows of this split; with --case the split that the task states
    #[arg(long, value_enum, conflicts_with_all = ["request", "row", "rows"])]
    pub(super) split: Option<SplitArg>,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let found = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    found.filter(|range| !range.is_empty()).ok_or_else(|| "two numbers with `..` between, the first one smaller".into())
}

/// The rows that were chosen, all of them looked at before the first is submitted.
pub(super) struct Rows {
    bank: Bank,
    range: Range<u64>,
    split: Option<Split>,
    count: u64,
}

impl FromBank {
    /// Opens the bank and looks at each row that was chosen.
    pub(super) fn rows(&self, path: &Path) -> Result<Rows, CliError> {
        let bank = Bank::open(path).usage()?;
        let has = format!("`{}` has {} rows", path.display(), bank.len());
        let range = match (self.row, &self.rows) {
            (Some(row), _) => row..row.saturating_add(1),
            (None, Some(rows)) => rows.clone(),
            (None, None) if self.all => 0..bank.len(),
            (None, None) => {
                return Err(CliError::usage("--from-bank: which rows?").hint("--row N, --rows A..B, or --all"));
            }
        };
        if range.end > bank.len() {
            return Err(CliError::usage(format!("row {} is not there: {has}", range.end - 1))
                .hint("rows are counted from 0; `gsj estate bank head` shows them"));
        }
        let mut splits = BTreeMap::new();
        for row in bank.rows(range.clone()) {
            *splits.entry(row.usage()?.split).or_insert(0_u64) += 1;
        }
        let split = self.split.map(SplitArg::split);
        if self.all && split.is_none() && splits.len() > 1 {
            let both = splits.iter().map(|(split, count)| format!("{count} {split}")).collect::<Vec<_>>().join(" and ");
            return Err(CliError::usage(format!("`{}` holds both splits, {both} tasks", path.display()))
                .hint("--split train, or --split eval"));
        }
        let count = split.map_or_else(|| splits.values().sum(), |split| splits.get(&split).copied().unwrap_or(0));
        if count == 0 {
            let of = split.map(|split| format!("{split} ")).unwrap_or_default();
            return Err(CliError::usage(format!("`{}` has no {of}tasks", path.display())));
        }
        Ok(Rows { bank, range, split, count })
    }
}

/// What all tasks of a run have in common.
pub(super) struct Run<'a> {
    pub(super) client: Client,
    /// What the ids of the tasks begin with.
    pub(super) prefix: String,
    /// Whether tasks of such ids may have ended before.
    pub(super) again: bool,
    pub(super) agent: String,
    pub(super) episodes: u32,
    pub(super) timeout: f64,
    /// How long a task may take with the server, those before it included.
    pub(super) deadline: Duration,
    pub(super) pins: &'a Pins,
    pub(super) policy: &'a gsj_client::Policy,
}

/// How a task ended.
enum Ended {
    Collected(Box<Collected>),
    /// Without results: a word for it, and why.
    Without(&'static str, String),
}

impl Run<'_> {
    /// How many times a task's own time it may take until it has ended, since others are before it.
    pub(super) const fn share() -> u32 {
        IN_FLIGHT as u32
    }

    /// Submits the rows and takes what comes back, in the order in which it does.
    pub(super) async fn run(&self, rows: &Rows, results: &mut Results) -> Result<(), CliError> {
        self.client.health().await.server()?;
        let noun = if rows.count == 1 { "task" } else { "tasks" };
        progress(&format!("{} {noun} of `{}` on {}", rows.count, rows.bank.name(), self.client.base_url()));
        progress(&format!("interrupted? the same again with --task-id {} goes on", self.prefix));
        let mut chosen = rows
            .bank
            .rows(rows.range.clone())
            .filter(|row| row.as_ref().map_or(true, |row| rows.split.is_none_or(|split| row.split == split)));
        let mut under_way = JoinSet::new();
        let mut told = Told { of: rows.count, ended: 0, last: Instant::now() };
        loop {
            while under_way.len() < IN_FLIGHT
                && let Some(row) = chosen.next()
            {
                under_way.spawn(self.one(&row.usage()?));
            }
            let Some(ended) = under_way.join_next().await else { return Ok(()) };
            let (key, task_id, ended) =
                ended.map_err(|error| CliError::usage(format!("a task was not waited for: {error}")))?;
            match ended? {
                Ended::Collected(collected) => results.take(&collected, Some(&key))?,
                Ended::Without(status, why) => results.without(&key, &task_id, status, &why),
            }
            told.one_more();
        }
    }

    /// One row from submitting to its results.
    fn one(&self, row: &TaskRow) -> impl Future<Output = (TaskKey, String, Result<Ended, CliError>)> + Send + use<> {
        let key = row.key();
        let request = self.request(row);
        let task_id = request.task_id.clone();
        let client = self.client.clone();
        let (again, deadline) = (self.again, self.deadline);
        let (pins, policy) = (self.pins.clone(), self.policy.clone());
        async move {
            let ended = episode(&client, &request, again, deadline, &pins, &policy).await;
            (key, task_id, ended)
        }
    }

    fn request(&self, row: &TaskRow) -> TaskRequest {
        let id = task_id(&self.prefix, &row.key());
        let mut task = TaskRequest::new(id, row.ask.instruction(), self.agent.as_str(), &row.case_id, row.timestep);
        task.num_samples = self.episodes;
        task.timeout_seconds = self.timeout;
        let mut say = |name: &str, value: &str| drop(task.metadata.insert(name.to_owned(), value.into()));
        say("prompt_source", &row.ask.source());
        say("prompt_id", &row.prompt_id);
        say("split", row.split.as_str());
        if let Ask::Skill { card, .. } = &row.ask {
            // As the pins list a card.
            say("skill_card_hash", &text_sha256(card));
        }
        task
    }
}

/// The id of a row's task: it names the row, so that the same command on a bank made anew goes on with the same tasks.
fn task_id(prefix: &str, key: &TaskKey) -> String {
    let id = format!("{prefix}.{}.{}.{}", key.case_id, key.timestep, key.prompt_id);
    if id.len() <= LONGEST_ID { id } else { format!("{prefix}.{}", text_sha256(&id)) }
}

async fn episode(
    client: &Client,
    request: &TaskRequest,
    again: bool,
    deadline: Duration,
    pins: &Pins,
    policy: &gsj_client::Policy,
) -> Result<Ended, CliError> {
    let started = Instant::now();
    let id = &request.task_id;
    let there = if again { super::has_ended(client, id, request.num_samples).await? } else { false };
    if !there && let Some(refused) = submit(client, request, started + deadline).await? {
        return Ok(Ended::Without("refused", refused));
    }
    match client.wait(id, Duration::from_millis(500), deadline.saturating_sub(started.elapsed())).await {
        Ok(_) => {}
        Err(error @ ClientError::Deadline { .. }) => return Ok(Ended::Without("missing", error.to_string())),
        Err(error) => return Err(error).server(),
    }
    Ok(Ended::Collected(Box::new(client.collect(id, pins, policy).await.server()?)))
}

/// Submits a task, again where the server was away for a moment; gives why it refuses it, when it does.
async fn submit(client: &Client, request: &TaskRequest, end: Instant) -> Result<Option<String>, CliError> {
    let mut pause = Duration::from_millis(100);
    loop {
        match client.submit(request).await {
            Ok(answer) => {
                answer.warnings.iter().for_each(|warning| warn(warning));
                return Ok(None);
            }
            Err(error) if error.is_transient() && Instant::now() < end => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
            Err(error @ (ClientError::Invalid { .. } | ClientError::Status { status: 400..=499, .. })) => {
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(error).server(),
        }
    }
}

/// How far things are, told at most once in two seconds.
struct Told {
    of: u64,
    ended: u64,
    last: Instant,
}

impl Told {
    fn one_more(&mut self) {
        self.ended += 1;
        if self.last.elapsed() >= Duration::from_secs(2) && self.ended < self.of {
            self.last = Instant::now();
            progress(&format!("{} of {} tasks have ended", self.ended, self.of));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_their_row_and_stay_short_enough() {
        let key = TaskKey { case_id: "case_1".into(), timestep: 12, prompt_id: "skill:sum".into() };
        assert_eq!(task_id("nightly", &key), "nightly.case_1.12.skill:sum");
        let long = |end: char| TaskKey { prompt_id: format!("free:{}{end}", "x".repeat(300)), ..key.clone() };
        assert!(task_id("nightly", &long('a')).len() <= LONGEST_ID);
        assert_ne!(task_id("nightly", &long('a')), task_id("nightly", &long('b')));
    }

    #[test]
    fn ranges_are_two_numbers() {
        assert_eq!(range("3..7"), Ok(3..7));
        for odd in ["3", "..", "7..3", "3..3", "-1..2", "a..b", "1..=2"] {
            assert!(range(odd).is_err(), "{odd}");
        }
    }
}
