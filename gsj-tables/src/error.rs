//! What can go wrong with a table.

use std::io;

/// Why a table could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be opened or read.
    #[error("read `{table}`")]
    Read {
        /// The file.
        table: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The file is none in the Parquet format.
    #[error("`{table}` is no Parquet file: {what}")]
    NotParquet {
        /// The file.
        table: String,
        /// What is there instead.
        what: String,
    },
    /// The file begins as Parquet, but says what cannot be.
    #[error("`{table}` is damaged: {what}; copy it anew, or make it anew with `gsj estate taskbank`")]
    Damaged {
        /// The file.
        table: String,
        /// What does not hold together.
        what: String,
    },
    /// The file uses a form of Parquet that is not read here.
    #[error("`{table}` {what}")]
    Unsupported {
        /// The file.
        table: String,
        /// Which form, and which one is read.
        what: String,
    },
    /// The columns are not those of a task bank (`corpus.md` section 10).
    #[error("`{table}` is no task bank: {}", differences.join("; "))]
    Schema {
        /// The file.
        table: String,
        /// How its columns differ, one sentence each.
        differences: Vec<String>,
    },
    /// A row is no task.
    #[error("`{table}` row {row}: {fault}")]
    Row {
        /// The file.
        table: String,
        /// The row, counted from 0 over the whole file.
        row: u64,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// A row does not come after the one before it.
    #[error(
        "{table}: task {key} does not come after {before}; tasks are ordered by case, timestep and prompt, each once"
    )]
    Order {
        /// The table.
        table: String,
        /// The later row's case, timestep and prompt.
        key: String,
        /// The earlier row's.
        before: String,
    },
    /// A value is longer than a table may hold.
    #[error("task {key}: {column} is {bytes} bytes long, longer than the {limit} that a table may hold")]
    TooLong {
        /// The row's case, timestep and prompt.
        key: String,
        /// The column.
        column: &'static str,
        /// The value's length.
        bytes: usize,
        /// The longest that is allowed.
        limit: usize,
    },
    /// A table cannot be written.
    #[error("write the table")]
    Write {
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// What is wrong with one row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{column} {what}")]
pub struct RowFault {
    /// The column.
    pub column: &'static str,
    /// What its value is, and what it should be.
    pub what: String,
}

/// A value as a message shows it: control characters escaped, 80 characters at most.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut out = String::new();
    for character in text.chars().take(LONGEST) {
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
    if text.chars().nth(LONGEST).is_some() {
        out.push_str("...");
    }
    out
}
