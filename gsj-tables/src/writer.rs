//! Writing a task bank: the same rows give the same bytes, in memory of one row group.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use crate::error::TableError;
use crate::row::{RawRow, Split, TaskKey, TaskRow};
use crate::schema::{self, COLUMNS};

/// The longest value of a column, in bytes: readers hold a page in memory, and a value is never split.
pub const LONGEST_VALUE: usize = 16 << 20;

/// Who writes. Changes when, and only when, the same rows come to give other bytes.
const CREATED_BY: &str = "gsj-tables version 1";
/// Rows of a full row group.
const GROUP_ROWS: usize = 1 << 16;
/// Bytes of different values after which a row group is full.
const GROUP_BYTES: usize = 8 << 20;

/// The bank's schema as the arrow libraries write it beside their own files (an IPC message, base64), so that each of
/// them takes text for `string` whatever it would choose by itself. The test with pyarrow reads it back.
const ARROW_SCHEMA: &str = include_str!("arrow-schema.txt");

/// What every setting of the format is, none left to what a library takes for granted.
pub(crate) fn properties(arrow_schema: Option<&str>) -> Arc<WriterProperties> {
    let schema = arrow_schema.map(|text| vec![KeyValue::new("ARROW:schema".to_owned(), text.trim_end().to_owned())]);
    Arc::new(
        WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(true)
            // Hardly a logprob comes twice.
            .set_column_dictionary_enabled(
                ColumnPath::from(["response_logprobs", "list", "element"].map(str::to_owned).to_vec()),
                false,
            )
            // A full row group's values all fit, so that no column falls back to another encoding in its middle.
            .set_dictionary_page_size_limit(GROUP_BYTES + LONGEST_VALUE + GROUP_ROWS * 4)
            .set_data_page_size_limit(1 << 20)
            .set_data_page_row_count_limit(20_000)
            .set_write_batch_size(1024)
            .set_max_row_group_row_count(None)
            .set_max_row_group_bytes(None)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_statistics_truncate_length(Some(64))
            .set_write_page_header_statistics(false)
            .set_offset_index_disabled(true)
            .set_bloom_filter_enabled(false)
            .set_key_value_metadata(schema)
            .build(),
    )
}

/// How many tasks a bank holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub rows: u64,
    /// Those of the split `train`.
    pub train: u64,
    /// Those of the split `eval`.
    pub eval: u64,
}

impl Counts {
    /// Counts one task more.
    pub fn add(&mut self, split: Split) {
        self.rows += 1;
        match split {
            Split::Train => self.train += 1,
            Split::Eval => self.eval += 1,
        }
    }
}

/// Writes a bank row by row. What it has written is a bank once [`BankWriter::finish`] says so.
pub struct BankWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    group: Group,
    last: Option<TaskKey>,
    counts: Counts,
    groups: usize,
}

impl<W: Write + Send> std::fmt::Debug for BankWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BankWriter").field("counts", &self.counts).field("last", &self.last).finish_non_exhaustive()
    }
}

impl<W: Write + Send> BankWriter<W> {
    /// Begins a bank; a buffered writer serves best.
    ///
    /// # Errors
    /// Fails when writing fails.
    pub fn new(to: W) -> Result<Self, TableError> {
        let file = SerializedFileWriter::new(to, schema::bank(), properties(Some(ARROW_SCHEMA))).map_err(unwritten)?;
        Ok(Self { file, group: Group::default(), last: None, counts: Counts::default(), groups: 0 })
    }

    /// Writes the next row, which must come after the one before it.
    ///
    /// # Errors
    /// Fails when the row is out of order or there already, when a value is too long, or when writing fails.
    pub fn push(&mut self, row: &TaskRow) -> Result<(), TableError> {
        let key = row.key();
        if let Some(before) = self.last.as_ref().filter(|before| **before >= key) {
            let (key, before) = (key.to_string(), before.to_string());
            return Err(TableError::Order { table: "the bank".to_owned(), key, before });
        }
        self.group.push(&key, RawRow::from(row))?;
        self.counts.add(row.split);
        self.last = Some(key);
        if self.group.rows >= GROUP_ROWS || self.group.bytes >= GROUP_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the end of the file and gives back what was written to, flushed.
    ///
    /// # Errors
    /// Fails when writing fails.
    pub fn finish(mut self) -> Result<(Counts, W), TableError> {
        // A bank without rows has one row group without rows, as other writers have it.
        if self.group.rows > 0 || self.groups == 0 {
            self.flush()?;
        }
        let mut to = self.file.into_inner().map_err(unwritten)?;
        to.flush().map_err(|source| TableError::Write { source })?;
        Ok((self.counts, to))
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let group = std::mem::take(&mut self.group);
        let mut to = self.file.next_row_group().map_err(unwritten)?;
        group.write(&mut to).map_err(unwritten)?;
        to.close().map_err(unwritten)?;
        self.groups += 1;
        Ok(())
    }
}

/// One column of the rows that wait: a level for each, a value for each that is not null.
#[derive(Default)]
struct Text {
    levels: Vec<i16>,
    values: Vec<ByteArray>,
    /// The different values, each once in memory however many rows have it.
    known: BTreeSet<Bytes>,
}

/// The rows that wait to be a row group.
#[derive(Default)]
struct Group {
    timesteps: Vec<i64>,
    /// The columns of text, in the order of the schema.
    text: [Text; COLUMNS.len() - 1],
    rows: usize,
    bytes: usize,
}

impl Group {
    fn push(&mut self, key: &TaskKey, row: RawRow) -> Result<(), TableError> {
        let values = [
            row.case_id.as_deref(),
            row.prompt_id.as_deref(),
            row.split.as_deref(),
            row.prompt_source.as_deref(),
            row.prompt_text.as_deref(),
            row.skill_card_text.as_deref(),
            row.sandbox_image.as_deref(),
        ];
        // All are looked at before any is taken, so that a refused row leaves nothing behind.
        for (column, value) in COLUMNS.iter().filter(|column| !column.number).zip(values) {
            if let Some(bytes) = value.map(str::len).filter(|bytes| *bytes > LONGEST_VALUE) {
                return Err(TableError::TooLong {
                    key: key.to_string(),
                    column: column.name,
                    bytes,
                    limit: LONGEST_VALUE,
                });
            }
        }
        for (column, value) in self.text.iter_mut().zip(values) {
            column.levels.push(i16::from(value.is_some()));
            let Some(value) = value else { continue };
            let known = match column.known.get(value.as_bytes()) {
                Some(known) => known.clone(),
                None => {
                    let value = Bytes::copy_from_slice(value.as_bytes());
                    self.bytes += value.len();
                    column.known.insert(value.clone());
                    value
                }
            };
            column.values.push(known.into());
        }
        self.timesteps.push(i64::from(key.timestep));
        self.rows += 1;
        Ok(())
    }

    fn write<W: Write + Send>(self, to: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let mut text = self.text.into_iter();
        for column in &COLUMNS {
            if column.number {
                write::<Int64Type, W>(to, &self.timesteps, &vec![1; self.timesteps.len()])?;
            } else if let Some(next) = text.next() {
                write::<ByteArrayType, W>(to, &next.values, &next.levels)?;
            }
        }
        Ok(())
    }
}

fn write<T: DataType, W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: &[i16],
) -> Result<(), ParquetError> {
    let Some(mut column) = to.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than the table".to_owned()));
    };
    column.typed::<T>().write_batch(values, Some(levels), None)?;
    column.close()
}

pub(crate) fn unwritten(error: ParquetError) -> TableError {
    let source = match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other.to_string()),
    };
    TableError::Write { source }
}
