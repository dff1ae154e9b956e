//! Reading a task bank: row groups as they are asked for, whatever the file claims of itself.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use crate::columns::Columns;
use crate::error::TableError;
use crate::row::{RawRow, TaskRow};
use crate::schema;
use crate::source::Source;

/// The most rows that are read from one bank.
pub const MOST_ROWS: u64 = 50_000_000;
/// The longest description at a file's end.
const LONGEST_FOOTER: usize = 64 << 20;
/// Magic, length and magic.
const SHORTEST: u64 = 12;

/// A task bank that is open for reading: its description is read and its columns are those of a bank.
///
/// Of the rows only those are in memory that are being looked at. A file may be hostile: reading it ends in an error,
/// within memory of some pages (of at most 64 MiB each, which no writer makes by itself).
#[derive(Debug)]
pub struct Bank {
    name: String,
    source: Arc<Source>,
    metadata: ParquetMetaData,
    /// The first row of each row group, and after the last one the number of all rows.
    starts: Vec<u64>,
}

/// What a file says of itself beside its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Bytes of the file.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Row groups.
    pub row_groups: usize,
    /// Who wrote it, when the file says so.
    pub created_by: Option<String>,
    /// How its columns are compressed.
    pub compression: Vec<String>,
}

impl Bank {
    /// Opens a file.
    ///
    /// # Errors
    /// Fails when the file cannot be read, is no Parquet file or a damaged one, or is no task bank.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let name = path.display().to_string();
        let fault = |source| TableError::Read { table: name.clone(), source };
        // Looked at before it is opened: a pipe would be waited for.
        let found = std::fs::metadata(path).map_err(fault)?;
        if !found.is_file() {
            return Err(TableError::NotParquet { table: name, what: "it is no regular file".to_owned() });
        }
        let file = File::open(path).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        Self::of(name, Source::File(file, metadata.len()))
    }

    /// Opens a bank in memory; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Bank::open`].
    pub fn from_bytes(name: impl Into<String>, bytes: Bytes) -> Result<Self, TableError> {
        Self::of(name.into(), Source::Memory(bytes))
    }

    fn of(name: String, source: Source) -> Result<Self, TableError> {
        let metadata = footer(&name, &source)?;
        let differences = schema::differences(metadata.file_metadata().schema_descr());
        if !differences.is_empty() {
            return Err(TableError::Schema { table: name, differences });
        }
        let damaged = |what: String| TableError::Damaged { table: name.clone(), what };
        let mut starts = vec![0_u64];
        let mut total = 0_u64;
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).ok().and_then(|rows| total.checked_add(rows));
            total = rows.ok_or_else(|| damaged(format!("a row group says it has {} rows", group.num_rows())))?;
            starts.push(total);
        }
        let stated = metadata.file_metadata().num_rows();
        if u64::try_from(stated) != Ok(total) {
            return Err(damaged(format!("it says it has {stated} rows, its row groups have {total}")));
        }
        if total > MOST_ROWS {
            let what = format!("has {total} rows, more than the {MOST_ROWS} that are read; split it");
            return Err(TableError::Unsupported { table: name, what });
        }
        Ok(Self { name, source: Arc::new(source), metadata, starts })
    }

    /// What errors call this bank: its path, or the name that was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the file says of itself.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let columns = self.metadata.row_groups().iter().flat_map(|group| group.columns());
        let compression: BTreeSet<String> = columns
            .map(|column| match column.compression() {
                Compression::UNCOMPRESSED => "none".to_owned(),
                other => other.to_string().to_lowercase(),
            })
            .collect();
        Facts {
            bytes: self.source.length(),
            rows: self.len(),
            row_groups: self.metadata.num_row_groups(),
            created_by: self.metadata.file_metadata().created_by().map(str::to_owned),
            compression: compression.into_iter().collect(),
        }
    }

    /// The rows of a range as they stand there, odd ones included; what is beyond the last row is left out.
    #[must_use]
    pub fn raw_rows(&self, range: Range<u64>) -> RawRows<'_> {
        let end = range.end.min(self.len());
        RawRows { bank: self, next: range.start, end, columns: None, failed: false }
    }

    /// The tasks of a range, from 0; what is beyond the last row is left out. The first row that is no task ends it.
    pub fn rows(&self, range: Range<u64>) -> impl Iterator<Item = Result<TaskRow, TableError>> {
        let first = range.start;
        let mut failed = false;
        self.raw_rows(range).zip(first..).map_while(move |(raw, row)| {
            if std::mem::replace(&mut failed, false) {
                return None;
            }
            let task = raw.and_then(|raw| {
                TaskRow::try_from(raw).map_err(|fault| TableError::Row { table: self.name.clone(), row, fault })
            });
            failed = task.is_err();
            Some(task)
        })
    }

    /// All tasks.
    pub fn all(&self) -> impl Iterator<Item = Result<TaskRow, TableError>> {
        self.rows(0..self.len())
    }

    /// The columns of the row group that holds a row, at that row.
    fn columns(&self, row: u64) -> Result<Columns, TableError> {
        // The last group that starts at or before the row: groups without rows start where the next one does.
        let group = self.starts.partition_point(|start| *start <= row).saturating_sub(1);
        let metadata = self.metadata.row_group(group);
        Columns::open(&self.name, &self.source, metadata, self.starts[group], row)
    }
}

/// The rows of a bank, one at a time. Ends after the first error.
#[derive(Debug)]
pub struct RawRows<'b> {
    bank: &'b Bank,
    next: u64,
    end: u64,
    columns: Option<Columns>,
    failed: bool,
}

impl RawRows<'_> {
    fn read(&mut self) -> Result<RawRow, TableError> {
        if self.columns.as_ref().is_none_or(Columns::is_done) {
            self.columns = Some(self.bank.columns(self.next)?);
        }
        let Some(columns) = &mut self.columns else {
            return Err(TableError::Damaged { table: self.bank.name.clone(), what: "a row group has no rows".into() });
        };
        columns.next_row(&self.bank.name, self.next)
    }
}

impl Iterator for RawRows<'_> {
    type Item = Result<RawRow, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.next >= self.end {
            return None;
        }
        let row = self.read();
        self.failed = row.is_err();
        self.next += 1;
        Some(row)
    }
}

/// The description at the end of a file.
fn footer(name: &str, source: &Source) -> Result<ParquetMetaData, TableError> {
    let none = |what: &str| TableError::NotParquet { table: name.to_owned(), what: what.to_owned() };
    let damaged = |what: String| TableError::Damaged { table: name.to_owned(), what };
    let read =
        |at, length| source.read(at, length).map_err(|source| TableError::Read { table: name.to_owned(), source });
    let length = source.length();
    if length < SHORTEST {
        return Err(none("it is too short"));
    }
    if read(0, 4)?[..] != *b"PAR1" {
        return Err(none("it does not begin with PAR1"));
    }
    let mut tail = [0; 8];
    tail.copy_from_slice(&read(length - 8, 8)?);
    if tail[4..] == *b"PARE" {
        let what = "is encrypted, which is not read here; write it without encryption".to_owned();
        return Err(TableError::Unsupported { table: name.to_owned(), what });
    }
    if tail[4..] != *b"PAR1" {
        return Err(damaged("it does not end with PAR1, so its end is missing".to_owned()));
    }
    let stated = FooterTail::try_new(&tail).map_err(|error| damaged(error.to_string()))?.metadata_length();
    if stated as u64 > length - SHORTEST || stated > LONGEST_FOOTER {
        return Err(damaged(format!("its description is said to be {stated} bytes long")));
    }
    let bytes = read(length - 8 - stated as u64, stated)?;
    ParquetMetaDataReader::decode_metadata(&bytes).map_err(|error| damaged(format!("its description: {error}")))
}
