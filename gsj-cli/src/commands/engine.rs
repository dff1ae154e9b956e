//! `gsj engine`: the scripted engine, for demos and tests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_gateway::EngineKind;
use gsj_gateway::scripted::{ScriptedEngine, ScriptedOptions};

use super::runtime;
use crate::error::{CliError, Context as _, Kind};
use crate::{environment, output};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj engine --script fixtures/scripts/demo.json --tokenizer fixtures/tokenizer/tokenizer.json \\\n      --template fixtures/template/chat_template.jinja --port 8021"
)]
pub(crate) struct Args {
    /// What the engine says, by turn (JSON)
    #[arg(long)]
    script: PathBuf,
    /// The tokenizer.json
    #[arg(long)]
    tokenizer: PathBuf,
    /// The chat template
    #[arg(long)]
    template: PathBuf,
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 8021)]
    port: u16,
    /// Whose dialect it speaks
    #[arg(long, value_enum, default_value_t = Dialect::Vllm)]
    dialect: Dialect,
    /// The served model's name
    #[arg(long, default_value = "gsj-scripted")]
    model: String,
    /// Name of the variable that holds the key that callers must show
    #[arg(long)]
    api_key_env: Option<String>,
    /// Pause before each answer, in milliseconds
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
}

/// Whose dialect an engine speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
}

impl From<Dialect> for EngineKind {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Vllm => Self::Vllm,
            Dialect::Sglang => Self::Sglang,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| CliError::usage(format!("read `{}`: {error}", path.display())))
    };
    let template = String::from_utf8(read(&args.template)?)
        .map_err(|_| CliError::usage(format!("`{}` is not UTF-8", args.template.display())))?;
    let (script, tokenizer) = (read(&args.script)?, read(&args.tokenizer)?);
    let mut options = ScriptedOptions::new(script, tokenizer, template, args.dialect.into(), args.model);
    options.latency = std::time::Duration::from_millis(args.latency_ms);
    if let Some(name) = &args.api_key_env {
        let key = environment::value(name).ok_or_else(|| {
            CliError::usage(format!("the environment variable {name} is not set")).hint(format!("export {name}=.."))
        })?;
        options.api_key = Some(gsj_gateway::ApiKey::new(&key).usage()?);
    }
    let engine = ScriptedEngine::new(options).usage().map_err(|error| {
        let (script, tokenizer) = (args.script.display(), args.tokenizer.display());
        error.hint(format!(
            "the files are --script {script} --tokenizer {tokenizer} --template {}",
            args.template.display()
        ))
    })?;
    runtime::block_on(async move {
        let (listener, address) = runtime::listen(SocketAddr::from(([127, 0, 0, 1], args.port))).await?;
        output::line(&format!("listening on http://{address}"));
        let stop = tokio_util::sync::CancellationToken::new();
        let mut signals = runtime::Signals::new()?;
        let serving = engine.serve(listener, stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            ended = &mut serving => return ended.map_err(|error| CliError::new(Kind::Failed, format!("serve: {error}"))),
            () = signals.next() => stop.cancel(),
        }
        serving.await.map_err(|error| CliError::new(Kind::Failed, format!("serve: {error}")))
    })?;
    Ok(ExitCode::SUCCESS)
}
