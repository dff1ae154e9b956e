//! `gsj submit`: tasks in, accepted results out.

mod bank;
mod results;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gsj_client::{Client, ClientError, TaskRequest};
use gsj_pins::Pins;
use gsj_server::config::Config;

use super::{config, runtime};
use bank::{FromBank, Run};
use results::{Export, Results};

use crate::error::{CliError, Context as _, Kind};
use crate::output::FormatArg;
use crate::terminal::{progress, warn};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj submit --config rollout.yaml --case harbor-lease --timestep 12 --prompt 'Summarise the case.' --episodes 4 --out results\n  gsj submit --config rollout.yaml --from-bank corpus/taskbank.parquet --all --split train --out results"
)]
#[command(group = clap::ArgGroup::new("task").required(true).args(["request", "case", "from_bank"]))]
#[command(group = clap::ArgGroup::new("instruction").args(["prompt", "prompt_file"]))]
pub(crate) struct Args {
    /// The configuration of the server
    #[arg(long)]
    config: PathBuf,
    /// The server's URL, when it is not where the configuration says
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// A task request as a JSON file, submitted as it is
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "timestep", "prompt", "prompt_file", "episodes"])]
    request: Option<PathBuf>,
    /// The case id
    #[arg(long, requires_all = ["timestep", "instruction"])]
    case: Option<String>,
    /// The last visible page
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    timestep: Option<u32>,
    /// What the agent is asked to do
    #[arg(long)]
    prompt: Option<String>,
    /// A file with what the agent is asked to do
    #[arg(long)]
    prompt_file: Option<PathBuf>,
    #[command(flatten)]
    from_bank: FromBank,
    /// How many episodes, of each task
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    episodes: u32,
    /// Id of the task; the same one again goes on waiting, and collects what has ended. Of a bank's tasks, what each id
    /// begins with [default: a new one]
    #[arg(long)]
    task_id: Option<String>,
    /// Agent, instead of the configuration's
    #[arg(long)]
    agent: Option<String>,
    /// Longest run of one episode, in seconds
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// How long to wait beyond the episodes' own time, in seconds
    #[arg(long, value_name = "S", default_value_t = 600.0, allow_negative_numbers = true)]
    grace: f64,
    /// Folder for accepted results
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One file with ids, mask and logprobs instead of the whole results
    #[arg(long, value_enum, requires = "out")]
    export: Option<Export>,
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let config = config::read(&args.config)?;
    let pins_path = config.checks.pins.clone().unwrap_or_default();
    let pins = Pins::read(&pins_path);
    pins.check_usable().usage()?;
    if let Some(path) = &args.from_bank.from_bank {
        return of_bank(&args, path, &config, &pins);
    }
    let (task_id, body, episodes, timeout) = request(&args, &config)?;
    let url = url(&args, &config);
    let policy = config.checks.policy();
    let deadline = deadline(timeout * f64::from(episodes), &args)?;
    let mut results = Results::open(args.format.resolve(), args.out.as_deref(), args.export)?;
    runtime::block_on(async move {
        let client = Client::new(&url).server()?;
        if args.task_id.is_some() && has_ended(&client, &task_id, episodes).await? {
            progress(&format!("task {task_id} on {url} has ended and is collected; another --task-id runs it anew"));
        } else {
            let answer = client.submit(&body).await.server().map_err(|error| {
                let unsaid = args.from_bank.split.is_none() && error.text().contains("metadata.split");
                if unsaid {
                    error.hint("--split train or --split eval states the split of the task's case")
                } else {
                    error
                }
            })?;
            for warning in &answer.warnings {
                warn(warning);
            }
            let noun = if episodes == 1 { "episode" } else { "episodes" };
            progress(&format!("task {task_id} on {url}: {episodes} {noun}"));
            progress(&format!("interrupted? the same again with --task-id {task_id} goes on waiting"));
        }
        watch(&client, &task_id, deadline).await?;
        let collected = client.collect(&task_id, &pins, &policy).await.server()?;
        results.take(&collected, None)?;
        results.finish()
    })
}

/// Submits rows of a task bank.
fn of_bank(args: &Args, path: &Path, config: &Config, pins: &Pins) -> Result<ExitCode, CliError> {
    let rows = args.from_bank.rows(path)?;
    let timeout = args.timeout.unwrap_or(config.limits.timeout_s);
    let deadline = deadline(timeout * f64::from(args.episodes) * f64::from(Run::share()), args)?;
    let mut results = Results::open(args.format.resolve(), args.out.as_deref(), args.export)?;
    let (url, policy) = (url(args, config), config.checks.policy());
    runtime::block_on(async {
        let run = Run {
            client: Client::new(&url).server()?,
            prefix: args.task_id.clone().unwrap_or_else(new_id),
            again: args.task_id.is_some(),
            agent: args.agent.clone().unwrap_or_else(|| config.harness.agent.clone()),
            episodes: args.episodes,
            timeout,
            deadline,
            pins,
            policy: &policy,
        };
        run.run(&rows, &mut results).await
    })?;
    results.finish()
}

fn url(args: &Args, config: &Config) -> String {
    args.server.clone().unwrap_or_else(|| format!("http://{}", config.server.listen))
}

fn deadline(seconds: f64, args: &Args) -> Result<Duration, CliError> {
    Duration::try_from_secs_f64(seconds + args.grace.max(0.0))
        .map_err(|_| CliError::usage("--timeout and --grace must be sensible numbers of seconds"))
}

/// An id that no task has had.
fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|d| d.as_millis()).unwrap_or_default();
    format!("task-{now}")
}

/// The request, its id, its episodes and the time that each may take.
fn request(args: &Args, config: &Config) -> Result<(String, serde_json::Value, u32, f64), CliError> {
    let fault =
        |path: &Path, error: &dyn std::fmt::Display| CliError::usage(format!("read `{}`: {error}", path.display()));
    if let Some(path) = &args.request {
        let bytes = std::fs::read(path).map_err(|error| fault(path, &error))?;
        let mut body: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| fault(path, &error))?;
        if let (Some(id), Some(members)) = (&args.task_id, body.as_object_mut()) {
            members.insert("task_id".into(), id.clone().into());
        }
        let id = body.get("task_id").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let episodes = body.get("num_samples").and_then(serde_json::Value::as_u64).unwrap_or(1);
        let timeout =
            body.get("timeout_seconds").and_then(serde_json::Value::as_f64).unwrap_or(config.limits.timeout_s);
        return Ok((id, body, u32::try_from(episodes).unwrap_or(u32::MAX), timeout));
    }
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(prompt), _) => prompt.clone(),
        (None, Some(path)) => std::fs::read_to_string(path).map_err(|error| fault(path, &error))?,
        (None, None) => return Err(CliError::usage("--prompt or --prompt-file is missing")),
    };
    let (Some(case), Some(timestep)) = (&args.case, args.timestep) else {
        return Err(CliError::usage("--case and --timestep are missing"));
    };
    let task_id = args.task_id.clone().unwrap_or_else(new_id);
    let agent = args.agent.clone().unwrap_or_else(|| config.harness.agent.clone());
    let mut task = TaskRequest::new(&task_id, prompt, agent, case, timestep);
    task.num_samples = args.episodes;
    if let Some(split) = args.from_bank.split {
        task.metadata.insert("split".to_owned(), split.split().as_str().into());
    }
    let timeout = args.timeout.unwrap_or(config.limits.timeout_s);
    task.timeout_seconds = timeout;
    let body = serde_json::to_value(&task).map_err(|error| CliError::new(Kind::Failed, error.to_string()))?;
    Ok((task_id, body, args.episodes, timeout))
}

/// Whether a task of that id ended while nobody waited: submitting it would throw its results away and run it anew.
async fn has_ended(client: &Client, task_id: &str, episodes: u32) -> Result<bool, CliError> {
    let there = match client.status(task_id).await {
        Ok(there) => there,
        Err(ClientError::TaskNotFound { .. }) => return Ok(false),
        Err(error) => return Err(error).server(),
    };
    if there.status.is_terminal() && there.total_sessions != u64::from(episodes) {
        let has = there.total_sessions;
        return Err(CliError::usage(format!(
            "task `{task_id}` has ended with {has} episodes, {episodes} are asked for"
        ))
        .hint("another --task-id for another task, or the same --episodes to collect this one"));
    }
    Ok(there.status.is_terminal())
}

/// Waits for the task, saying each change, and reconnects where the server goes away for a while.
async fn watch(client: &Client, task_id: &str, deadline: Duration) -> Result<(), CliError> {
    let mut counter = tokio::time::interval(Duration::from_millis(500));
    let waiting = client.wait(task_id, Duration::from_millis(250), deadline);
    tokio::pin!(waiting);
    let mut last = String::new();
    loop {
        tokio::select! {
            ended = &mut waiting => return ended.server().map(drop),
            _ = counter.tick() => {
                // The wait above decides; this only shows how far things are.
                let now = match client.sessions(task_id).await {
                    Ok(sessions) => {
                        let mut counts = std::collections::BTreeMap::<String, usize>::new();
                        for session in sessions {
                            *counts.entry(session.status).or_default() += 1;
                        }
                        counts.iter().map(|(state, n)| format!("{n} {state}")).collect::<Vec<_>>().join(", ")
                    }
                    Err(error) if error.is_transient() => "the server does not answer; it is asked again".to_owned(),
                    Err(_) => continue,
                };
                if now != last {
                    progress(&now);
                    last = now;
                }
            }
        }
    }
}
