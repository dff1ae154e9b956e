//! `gsj submit`: tasks in, accepted results out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gsj_client::{Client, ClientError, Collected, Item, TaskRequest};
use gsj_pins::Pins;
use gsj_server::config::Config;
use gsj_trace::json::Value;

use super::{config, runtime};
use crate::error::{CliError, Context as _, Kind};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, RED, paint, progress, warn};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj submit --config rollout.yaml --case harbor-lease --timestep 12 --prompt 'Summarise the case.' --episodes 4 --out results"
)]
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
    #[arg(long, required_unless_present = "request")]
    case: Option<String>,
    /// The last visible page
    #[arg(long, required_unless_present = "request", value_parser = clap::value_parser!(u32).range(1..))]
    timestep: Option<u32>,
    /// What the agent is asked to do
    #[arg(long, conflicts_with = "prompt_file", required_unless_present_any = ["request", "prompt_file"])]
    prompt: Option<String>,
    /// A file with what the agent is asked to do
    #[arg(long)]
    prompt_file: Option<PathBuf>,
    /// How many episodes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    episodes: u32,
    /// Id of the task; the same one again goes on waiting, and collects what has ended [default: a new one]
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
    #[command(flatten)]
    format: FormatArg,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let config = config::read(&args.config)?;
    let pins_path = config.checks.pins.clone().unwrap_or_default();
    let pins = Pins::read(&pins_path);
    pins.check_usable().usage()?;
    let (task_id, body, episodes, timeout) = request(&args, &config)?;
    let url = args.server.clone().unwrap_or_else(|| format!("http://{}", config.server.listen));
    let policy = config.checks.policy();
    let deadline = Duration::try_from_secs_f64(timeout * f64::from(episodes) + args.grace.max(0.0))
        .map_err(|_| CliError::usage("--timeout and --grace must be sensible numbers of seconds"))?;
    let format = args.format.resolve();
    runtime::block_on(async move {
        let client = Client::new(&url).server()?;
        if args.task_id.is_some() && has_ended(&client, &task_id, episodes).await? {
            progress(&format!("task {task_id} on {url} has ended and is collected; another --task-id runs it anew"));
        } else {
            let answer = client.submit(&body).await.server()?;
            for warning in &answer.warnings {
                warn(warning);
            }
            let noun = if episodes == 1 { "episode" } else { "episodes" };
            progress(&format!("task {task_id} on {url}: {episodes} {noun}"));
            progress(&format!("interrupted? the same again with --task-id {task_id} goes on waiting"));
        }
        watch(&client, &task_id, deadline).await?;
        let collected = client.collect(&task_id, &pins, &policy).await.server()?;
        report(format, &collected, args.out.as_deref())
    })
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
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map(|d| d.as_millis()).unwrap_or_default();
    let task_id = args.task_id.clone().unwrap_or_else(|| format!("task-{started}"));
    let agent = args.agent.clone().unwrap_or_else(|| config.harness.agent.clone());
    let mut task = TaskRequest::new(&task_id, prompt, agent, case, timestep);
    task.num_samples = args.episodes;
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

fn report(format: Format, collected: &Collected, out: Option<&Path>) -> Result<ExitCode, CliError> {
    let mut by_length = 0;
    for item in &collected.accepted {
        let session = item.session_id.clone().unwrap_or_default();
        by_length += usize::from(ended_by_length(item));
        let path = out.map(|folder| store(folder, &session, &item.bytes)).transpose()?;
        line(format, &session, "accepted", &[], None, path.as_deref(), overhead(item));
    }
    for rejected in &collected.rejected {
        let session = rejected.item.session_id.clone().unwrap_or_default();
        line(format, &session, "rejected", &rejected.findings, None, None, overhead(&rejected.item));
    }
    for failed in &collected.failed {
        let session = failed.item.session_id.clone().unwrap_or_default();
        line(format, &session, &failed.status, &failed.findings, failed.error.as_deref(), None, overhead(&failed.item));
    }
    let all = collected.accepted.len() + collected.rejected.len() + collected.failed.len();
    progress(&format!(
        "{} of {} accepted, {} rejected, {} failed; {by_length} ended by length",
        collected.accepted.len(),
        all + usize::try_from(collected.missing).unwrap_or(0),
        collected.rejected.len(),
        collected.failed.len(),
    ));
    let complete = collected.rejected.is_empty() && collected.failed.is_empty() && collected.missing == 0;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn line(
    format: Format,
    session: &str,
    status: &str,
    findings: &[String],
    error: Option<&str>,
    path: Option<&Path>,
    overhead_ms: Option<f64>,
) {
    if format == Format::Json {
        output::json(&serde_json::json!({
            "session_id": session, "status": status, "findings": findings, "error": error, "path": path,
            "overhead_ms": overhead_ms,
        }));
        return;
    }
    let mark = if status == "accepted" { paint(GREEN, status) } else { paint(RED, status) };
    let around = overhead_ms.map(|ms| format!("  {ms:.0} ms around agent and engine")).unwrap_or_default();
    let place = path.map(|p| format!("  {}", p.display())).unwrap_or_default();
    output::line(&format!("{session}  {mark}{around}{place}"));
    if let Some(error) = error {
        output::line(&format!("    {error}"));
    }
    for finding in findings {
        output::line(&format!("    {finding}"));
    }
}

fn ended_by_length(item: &Item) -> bool {
    Value::parse(&item.bytes).is_ok_and(|value| {
        value
            .as_ref()
            .pointer("/trajectory/traces/0/finish_reason")
            .is_some_and(|reason| reason.as_str() == Some("length"))
    })
}

fn overhead(item: &Item) -> Option<f64> {
    let value = Value::parse(&item.bytes).ok()?;
    value.as_ref().pointer("/metadata/gsj_overhead_ms")?.as_f64()
}

/// Writes a result by a rename, so that no half of one is ever there.
fn store(folder: &Path, session: &str, bytes: &[u8]) -> Result<PathBuf, CliError> {
    let path = folder.join(format!("{session}.json"));
    let fault = |error: std::io::Error| CliError::usage(format!("write `{}`: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(fault)?;
    let beside = folder.join(format!(".{session}.tmp"));
    std::fs::write(&beside, bytes).map_err(fault)?;
    std::fs::rename(&beside, &path).map_err(fault)?;
    Ok(path)
}
