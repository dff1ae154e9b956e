//! `gsj pins hash`: the digest of a file by one of the four conventions.

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_pins::hash::{Convention, canonical};

use crate::error::{CliError, Kind};
use crate::{inputs, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  echo '{\"compaction\": {\"enabled\": false}}' | gsj pins hash canonical-json -")]
pub(crate) struct Args {
    /// What the file is: `text` (system prompt, skill card), `canonical-json` (roster, settings), `git-blob`
    /// (tokenizer.json) or `chat-template`
    #[arg(value_parser = Convention::ALL.map(Convention::name))]
    convention: String,
    /// The file, or `-`
    file: PathBuf,
    /// Print the canonical text instead of its digest
    #[arg(long)]
    text: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let convention: Convention = args.convention.parse().map_err(CliError::usage)?;
    if args.text && convention != Convention::CanonicalJson {
        return Err(CliError::usage(format!("--text: `{convention}` has no text of its own"))
            .hint("gsj pins hash canonical-json --text FILE"));
    }
    let bytes = inputs::read(&args.file)?;
    let result = if args.text { canonical(&bytes) } else { convention.digest(&bytes) };
    let result =
        result.map_err(|error| CliError::new(Kind::Failed, format!("hash `{}`: {error}", args.file.display())))?;
    output::exact(result.as_deref().unwrap_or("unhashable"));
    Ok(if result.is_some() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
