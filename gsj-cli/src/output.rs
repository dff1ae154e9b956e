//! Results on stdout, in the form that was asked for.

use std::io::{IsTerminal as _, Write as _};

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
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{text}"));
}

/// Prints one line; a reader that went away is no fault of ours.
pub(crate) fn line(text: &str) {
    let mut out = anstream::stdout().lock();
    drop(writeln!(out, "{text}"));
}
