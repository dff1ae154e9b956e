//! `gsj serve`: the rollout server in one process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gsj_estate::home::Home;
use gsj_server::config::Config;
use gsj_server::{Clock, Context, Running, Server};

use super::{agent, config, runtime};
use crate::error::{CliError, Context as _, Kind};
use crate::terminal::{progress, warn};
use crate::{environment, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj serve --config rollout.yaml")]
pub(crate) struct Args {
    /// The configuration
    #[arg(long)]
    config: PathBuf,
    /// Address and port of the API, instead of the configuration's
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Take tasks of eval cases, which `estate.split_wall` keeps out otherwise
    #[arg(long)]
    evaluation: bool,
    /// The folder of the estate that this is the server of
    #[arg(long, value_name = "DIR", hide = true)]
    estate: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let mut config = config::read(&args.config)?;
    if let Some(listen) = args.listen {
        if listen.parse::<std::net::SocketAddr>().is_err() {
            return Err(CliError::usage(format!("--listen {listen}: must be an address and port, as 127.0.0.1:8080")));
        }
        config.server.listen = listen;
    }
    config.estate.evaluation |= args.evaluation;
    warn_of_backend(&config);
    let (_guard, secret) = match args.estate {
        Some(home) => {
            let (guard, secret) = super::estate::become_server(&Home::new(home), &config)?;
            (Some(guard), Some((config.estate.token_secret_env.clone(), secret)))
        }
        None => (None, None),
    };
    let context = context(&config, secret)?;
    runtime::block_on(async move {
        let mut signals = runtime::Signals::new()?;
        let running = Server::start(config, context).await.usage()?;
        output::line(&format!("listening on http://{}", running.api_addr));
        signals.next().await;
        stop(running, &mut signals).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Lets running sessions end; a second signal stops them.
async fn stop(running: Running, signals: &mut runtime::Signals) {
    progress("draining: running sessions may end, none is started; once more to stop at once");
    tokio::select! {
        () = running.drain() => {}
        // Dropping the drain ends everything at once, as a crash would; the next start says what became of it.
        () = signals.next() => progress("stopping at once"),
    }
}

/// Says in red what the `none` backend means.
pub(crate) fn warn_of_backend(config: &Config) {
    use gsj_server::config::SandboxBackendName;
    if config.sandbox.backend == SandboxBackendName::None {
        use crate::terminal::{RED, paint};
        warn(&paint(
            RED,
            "sandbox.backend is `none`: agents run without isolation, for trusted development only; no pins approve such a trace",
        ));
    }
}

/// What the server is given of this process. `secret` overrides a variable, for the demo's own secret.
pub(crate) fn context(config: &Config, secret: Option<(String, String)>) -> Result<Context, CliError> {
    let init = std::env::current_exe()
        .map_err(|error| CliError::new(Kind::Failed, format!("find the path of this program: {error}")))?;
    let agents = agent::agents(config.harness.agents_dir.as_deref().map(Path::new))?;
    Ok(Context {
        init,
        init_args: vec![environment::SANDBOX_INIT.to_owned()],
        clock: Clock::new(std::time::SystemTime::now),
        environment: Arc::new(move |name| match &secret {
            Some((own, value)) if own == name => Some(value.clone()),
            _ => environment::value(name),
        }),
        agents,
    })
}
