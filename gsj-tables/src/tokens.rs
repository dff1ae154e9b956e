//! The tokens of accepted traces as a table: what a trainer learns from, and nothing else.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::error::TableError;
use crate::schema::FIXED;
use crate::writer::{properties, unwritten};

/// Values after which a row group is full.
const GROUP_VALUES: usize = 2 << 20;

/// The tokens of one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenRow {
    /// The session that the trace is of.
    pub session_id: String,
    /// The task that the session is of.
    pub task_id: String,
    /// Which trace of the session's trajectory, from 0.
    pub trace: i32,
    /// The ids of the prompt.
    pub prompt_ids: Vec<i32>,
    /// The ids that came after it.
    pub response_ids: Vec<i32>,
    /// For each of them: 1 when the model sampled it, 0 when it was given.
    pub loss_mask: Vec<i32>,
    /// For each of them: the logprob that the engine stated; 0 where the mask is 0.
    pub response_logprobs: Vec<f64>,
}

/// Writes such a table row by row: `session_id` and `task_id` string, `trace` int32, `prompt_ids` and `response_ids`
/// lists of int32, `loss_mask` a list of int8, `response_logprobs` a list of doubles; nothing may be null.
pub struct TokenWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<TokenRow>,
    values: usize,
}

impl<W: Write + Send> std::fmt::Debug for TokenWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenWriter").field("waiting", &self.rows.len()).finish_non_exhaustive()
    }
}

impl<W: Write + Send> TokenWriter<W> {
    /// Begins a table.
    ///
    /// # Errors
    /// Fails when writing fails.
    pub fn new(to: W) -> Result<Self, TableError> {
        let file = SerializedFileWriter::new(to, schema(), properties(None)).map_err(unwritten)?;
        Ok(Self { file, rows: Vec::new(), values: 0 })
    }

    /// Writes the next row.
    ///
    /// # Errors
    /// Fails when writing fails.
    pub fn push(&mut self, row: TokenRow) -> Result<(), TableError> {
        self.values += row.prompt_ids.len() + 3 * row.response_ids.len();
        self.rows.push(row);
        if self.values >= GROUP_VALUES { self.flush() } else { Ok(()) }
    }

    /// Writes the end of the file and gives back what was written to, flushed.
    ///
    /// # Errors
    /// Fails when writing fails.
    pub fn finish(mut self) -> Result<W, TableError> {
        self.flush()?;
        let mut to = self.file.into_inner().map_err(unwritten)?;
        to.flush().map_err(|source| TableError::Write { source })?;
        Ok(to)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        self.values = 0;
        let mut to = self.file.next_row_group().map_err(unwritten)?;
        write(&mut to, &rows).map_err(unwritten)?;
        to.close().map_err(unwritten)?;
        Ok(())
    }
}

fn schema() -> TypePtr {
    let plain = |name: &str, physical: Physical, kind: Option<LogicalType>| {
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        Arc::new(field.with_logical_type(kind).build().expect(FIXED))
    };
    // The three levels that the format wants of a list.
    let list = |name: &str, physical: Physical, kind: Option<LogicalType>| {
        let items = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![plain("element", physical, kind)]);
        let list = Type::group_type_builder(name)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(items.build().expect(FIXED))]);
        Arc::new(list.build().expect(FIXED))
    };
    let int8 = LogicalType::integer(8, true);
    let fields = vec![
        plain("session_id", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        plain("task_id", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        plain("trace", Physical::INT32, None),
        list("prompt_ids", Physical::INT32, None),
        list("response_ids", Physical::INT32, None),
        list("loss_mask", Physical::INT32, Some(int8)),
        list("response_logprobs", Physical::DOUBLE, None),
    ];
    Arc::new(Type::group_type_builder("schema").with_fields(fields).build().expect(FIXED))
}

fn write<W: Write + Send>(to: &mut SerializedRowGroupWriter<'_, W>, rows: &[TokenRow]) -> Result<(), ParquetError> {
    let text = |of: fn(&TokenRow) -> &str| rows.iter().map(|row| ByteArray::from(of(row))).collect::<Vec<_>>();
    column::<ByteArrayType, W>(to, &text(|row| &row.session_id), None)?;
    column::<ByteArrayType, W>(to, &text(|row| &row.task_id), None)?;
    column::<Int32Type, W>(to, &rows.iter().map(|row| row.trace).collect::<Vec<_>>(), None)?;
    lists::<Int32Type, W>(to, rows, |row| &row.prompt_ids)?;
    lists::<Int32Type, W>(to, rows, |row| &row.response_ids)?;
    lists::<Int32Type, W>(to, rows, |row| &row.loss_mask)?;
    lists::<DoubleType, W>(to, rows, |row| &row.response_logprobs)
}

/// A column of lists: a level for each value, 0 where a list begins, and one for each list that is empty.
fn lists<T: DataType, W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[TokenRow],
    of: fn(&TokenRow) -> &[T::T],
) -> Result<(), ParquetError> {
    let (mut values, mut present, mut begins) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let list = of(row);
        present.extend(std::iter::repeat_n(1, list.len()));
        begins.extend((0..list.len()).map(|at| i16::from(at > 0)));
        if list.is_empty() {
            present.push(0);
            begins.push(0);
        }
        values.extend_from_slice(list);
    }
    column::<T, W>(to, &values, Some((&present, &begins)))
}

fn column<T: DataType, W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) -> Result<(), ParquetError> {
    let Some(mut column) = to.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than the table".to_owned()));
    };
    let (present, begins) = levels.unzip();
    column.typed::<T>().write_batch(values, present, begins)?;
    column.close()
}
