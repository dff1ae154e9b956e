//! Questions to whoever sits at the terminal.

use std::io::{BufRead as _, IsTerminal as _};

use crate::error::{CliError, Kind};
use crate::terminal::progress;

/// Who answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    yes: bool,
}

impl Asker {
    /// With `yes`, every question is answered with yes.
    pub(crate) fn new(yes: bool) -> Self {
        Self { yes }
    }

    /// Asks; no ends the command, and so does the want of a terminal to ask at.
    pub(crate) fn confirm(self, question: &str) -> Result<(), CliError> {
        if self.yes {
            // Whoever reads the log later should know what was agreed to.
            progress(&format!("{question} yes (-y)"));
            return Ok(());
        }
        let answer = self.read(&format!("{question} [y/N] "))?;
        if matches!(answer.to_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(CliError::new(
            Kind::Failed,
            "stopped as you said; what was done so far stays, and the same command goes on from there",
        ))
    }

    /// Has a word typed out, for what cannot be undone.
    pub(crate) fn confirm_by(self, question: &str, word: &str) -> Result<(), CliError> {
        if self.yes {
            return Ok(());
        }
        let answer = self.read(&format!("{question} Type `{word}` to go on: "))?;
        if answer == word {
            return Ok(());
        }
        Err(CliError::new(Kind::Failed, format!("stopped, and nothing was done: `{word}` was not typed")))
    }

    fn read(self, text: &str) -> Result<String, CliError> {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Err(CliError::usage(format!("{} There is no terminal to ask at", text.trim_end()))
                .hint("-y answers every question with yes"));
        }
        anstream::eprint!("{text}");
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|error| CliError::new(Kind::Failed, format!("read the answer: {error}")))?;
        Ok(line.trim().to_owned())
    }
}
