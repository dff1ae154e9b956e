//! Results on stdout, in the form that was asked for.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use crate::error::{CliError, Kind};

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// One JSON document, or one a line for streams of items.
    Json,
}

/// The `--format` option that every command with a result has.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FormatArg {
    /// How to print the result [default: human on a terminal, else json]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl FormatArg {
    pub(crate) fn resolve(&self) -> Format {
        self.format.unwrap_or_else(|| if std::io::stdout().is_terminal() { Format::Human } else { Format::Json })
    }
}

/// Prints a JSON document on one line.
pub(crate) fn json(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(value) {
        exact(&text);
    }
}

/// Prints a JSON document for people to read.
pub(crate) fn json_pretty(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        exact(&text);
    }
}

/// Prints one line byte for byte: [`line()`] drops what looks like an escape sequence where colours can't be shown.
pub(crate) fn exact(text: &str) {
    if !is_lost() {
        keep(writeln!(std::io::stdout().lock(), "{text}"));
    }
}

/// Prints one line.
pub(crate) fn line(text: &str) {
    if !is_lost() {
        keep(writeln!(anstream::stdout().lock(), "{text}"));
    }
}

/// The first failure to write. What comes after it is not written: a result with a hole is worse than one cut off.
static LOST: OnceLock<io::Error> = OnceLock::new();

fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        // A later failure says no more than the first.
        drop(LOST.set(error));
    }
}

/// Whether a result could not be written. Who goes on for ever ends then; others come to their end as they would.
pub(crate) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// The failure to write a result, told once and at the end: nothing that was not shown is a success.
///
/// A reader that went away knows so, and gets no words.
pub(crate) fn finish() -> Result<(), Option<CliError>> {
    keep(std::io::stdout().flush());
    match LOST.get() {
        None => Ok(()),
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(None),
        Some(error) => {
            Err(Some(CliError::new(Kind::Failed, format!("the result cannot be written to standard output: {error}"))))
        }
    }
}
