//! `gsj demo`: an estate of its own, one real episode, and what came of it.

mod engine;
mod estate;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use gsj_checks::Policy;
use gsj_client::{Client, Collected};
use gsj_pins::Pins;
use gsj_server::Server;

use super::engine::Dialect;
use super::{agent, runtime, serve};
use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::output::FormatArg;
use crate::terminal::progress;

/// Longest wait for the one episode; a small model on a busy laptop needs minutes for its first prompt.
const DEADLINE: Duration = Duration::from_secs(1200);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj demo\n  gsj demo --engine-url http://127.0.0.1:8000 --engine-model Qwen/Qwen3-0.6B --engine vllm"
)]
pub(crate) struct Args {
    /// An engine of yours, without /v1 [default: the scripted engine]
    #[arg(long, requires = "engine_model")]
    engine_url: Option<String>,
    /// The name that your engine serves the model by
    #[arg(long, requires = "engine_url")]
    engine_model: Option<String>,
    /// The dialect of the engine
    #[arg(long, value_enum, default_value_t = Dialect::Vllm)]
    engine: Dialect,
    /// Name of the variable that holds your engine's key
    #[arg(long, requires = "engine_url")]
    engine_api_key_env: Option<String>,
    /// Whether the gateway asks the engine for streamed answers
    #[arg(long, value_enum, default_value_t = Switch::On)]
    engine_stream: Switch,
    /// Keep everything of the demo in this folder [default: demo in the state folder]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The state folder where the agent is installed [default: $XDG_STATE_HOME/gsj, or /var/lib/gsj for root]
    #[arg(long)]
    state: Option<PathBuf>,
    /// What isolates the agent
    #[arg(long, value_enum, default_value_t = Sandbox::Bwrap)]
    sandbox: Sandbox,
    #[command(flatten)]
    format: FormatArg,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// What isolates the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sandbox {
    /// bubblewrap.
    Bwrap,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let Sandbox::Bwrap = args.sandbox;
    let state = args.state.clone().unwrap_or_else(environment::state_dir);
    let home = absolute(&args.keep.clone().unwrap_or_else(|| state.join("demo")))?;
    ready_agent(&state)?;
    let format = args.format.resolve();
    runtime::block_on(async move {
        let estate = estate::Estate::lay(&home, &state)?;
        progress(&format!("corpus and repositories in {}", home.display()));
        let engine = match (&args.engine_url, &args.engine_model) {
            (Some(url), Some(model)) => engine::Engine::given(url, model, &args).await?,
            _ => engine::Engine::scripted(args.engine).await?,
        };
        progress(&engine.about());
        // The approved sets are written before anything runs; nothing of them comes from the trace under test.
        estate.write_pins(&engine)?;
        let config = estate.write_config(&engine, args.engine_stream == Switch::On)?;
        let context = serve::context(&config, Some(estate.secret()))?;
        let running = Server::start(config, context).await.usage()?;
        let url = format!("http://{}", running.api_addr);
        progress(&format!("server on {url}"));
        let outcome = episode(&url, &estate).await;
        running.stop().await;
        engine.stop().await;
        show::report(format, &estate, &outcome?)
    })
}

/// Submits the one task, says each change of its state, and collects.
async fn episode(url: &str, estate: &estate::Estate) -> Result<Collected, CliError> {
    let client = Client::new(url).server()?;
    let task = estate.task();
    client.submit(&task.body).await.server()?;
    progress(&format!("{} at timestep {}: {}", task.case_id, task.timestep, task.about));
    let mut last = String::new();
    let until = tokio::time::Instant::now() + DEADLINE;
    loop {
        let sessions = client.sessions(&task.task_id).await.server()?;
        let now: Vec<String> = sessions.iter().map(|s| format!("{} {}", s.session_id, s.status)).collect();
        let now = now.join(", ");
        if now != last {
            progress(&now);
            last = now;
        }
        let status = client.status(&task.task_id).await.server()?;
        if status.status.is_terminal() {
            break;
        }
        if tokio::time::Instant::now() > until {
            return Err(CliError::new(Kind::Failed, "the episode did not end in time"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let pins = Pins::read(&estate.pins_path());
    client.collect(&task.task_id, &pins, &Policy::default()).await.server()
}

/// The agent must be there before an estate is stood up.
fn ready_agent(state: &Path) -> Result<(), CliError> {
    let agents = agent::agents(None)?;
    let pi = agents.find("pi").usage()?;
    gsj_server::agent::open(pi, state, gsj_server::agent::Depth::Quick)
        .usage()
        .map(drop)
        .map_err(|error| error.hint(format!("gsj agent install pi --state {}", state.display())))
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|error| CliError::usage(format!("`{}`: {error}", path.display())))
}
