//! `gsj config`: what a configuration file means.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_server::config::{Config, ReadContext, Warning, schema};

use crate::environment;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::warn;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gsj config check rollout.yaml")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check a file and show it with every default filled in.
    #[command(after_help = "Example:\n  gsj config check rollout.yaml")]
    Check {
        /// The configuration.
        file: PathBuf,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Print the JSON Schema of a configuration.
    #[command(after_help = "Example:\n  gsj config schema > rollout.schema.json")]
    Schema,
    /// Print the reference page in Markdown.
    #[command(hide = true)]
    Reference,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    match &args.action {
        Action::Schema => output::json_pretty(&schema()),
        Action::Reference => output::line(gsj_server::config::reference_markdown().trim_end()),
        Action::Check { file, format } => {
            let config = read(file)?;
            match format.resolve() {
                Format::Json => output::json(&config),
                Format::Human => {
                    let text = serde_saphyr::to_string(&config).map_err(|e| CliError::usage(e.to_string()))?;
                    output::line(text.trim_end());
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a configuration and prints what in it means nothing.
pub(crate) fn read(file: &std::path::Path) -> Result<Config, CliError> {
    let context = ReadContext {
        path: file.to_owned(),
        default_state_dir: environment::state_dir(),
        pins_path: environment::pins_path(),
    };
    let (config, warnings) = Config::read(&context).usage()?;
    for Warning { path, message } in &warnings {
        warn(&format!("{}: `{path}` {message}", file.display()));
    }
    Ok(config)
}
