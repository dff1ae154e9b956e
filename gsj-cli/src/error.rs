//! What a person reads when a command can't do its work, and the exit code that goes with it.

use std::error::Error;

/// The kind of an error decides the exit code (spec `cli.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The work ran, but something in it failed: 1.
    Failed,
    /// Usage or configuration: 2.
    Usage,
    /// A server could not be reached or answered with an error: 3.
    Server,
}

/// An error as it is printed: a sentence, its causes, and what to do.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Takes a library's error with the chain of its sources.
    pub(crate) fn from_error(kind: Kind, error: &dyn Error) -> Self {
        let mut this = Self::new(kind, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some libraries repeat their source's text in their own.
            if !this.message.contains(&text) && !this.causes.contains(&text) {
                this.causes.push(text);
            }
            source = cause.source();
        }
        this
    }

    /// Says which thing the error is about, where the library cannot know its name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.message = format!("`{name}`: {}", self.message);
        self
    }

    /// The sentence and its causes on one line, for where an error is a part of an answer.
    pub(crate) fn text(&self) -> String {
        std::iter::once(&self.message).chain(&self.causes).map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn code(&self) -> u8 {
        match self.kind {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Server => 3,
        }
    }

    pub(crate) fn print(&self) {
        use crate::terminal::{BOLD, RED, paint};
        anstream::eprintln!("{} {}", paint(RED, "error:"), self.message);
        for cause in &self.causes {
            anstream::eprintln!("  caused by: {cause}");
        }
        for hint in &self.hints {
            anstream::eprintln!("  {} {hint}", paint(BOLD, "hint:"));
        }
    }
}

/// Wraps a library's error with the kind it has at this place.
pub(crate) trait Context<T> {
    fn usage(self) -> Result<T, CliError>;
    fn failed(self) -> Result<T, CliError>;
    fn server(self) -> Result<T, CliError>;
}

impl<T, E: Error> Context<T> for Result<T, E> {
    fn usage(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::from_error(Kind::Usage, &error))
    }

    fn failed(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::from_error(Kind::Failed, &error))
    }

    fn server(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::from_error(Kind::Server, &error))
    }
}
