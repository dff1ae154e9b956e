//! The columns of one row group, read side by side.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::decode::{Column, Value};
use crate::error::{RowFault, TableError};
use crate::pages::{ColumnFault, Pages, damaged};
use crate::row::RawRow;
use crate::schema::COLUMNS;
use crate::source::Source;

/// The columns, at a row.
#[derive(Debug)]
pub(crate) struct Columns {
    text: Vec<(&'static str, Column<Bytes>)>,
    number: Column<i64>,
    /// Rows of this group that are not taken yet.
    left: u64,
    card: Option<Arc<str>>,
    image: Option<Arc<str>>,
}

impl Columns {
    /// Opens the columns of a row group that starts at row `start`, and goes on to row `row`.
    pub(crate) fn open(
        table: &str,
        source: &Arc<Source>,
        group: &RowGroupMetaData,
        start: u64,
        row: u64,
    ) -> Result<Self, TableError> {
        let skipped = row - start;
        let mut text = Vec::with_capacity(COLUMNS.len());
        let mut number = None;
        for (column, chunk) in COLUMNS.iter().zip(group.columns()) {
            let named = |fault| table_fault(table, column.name, fault);
            if column.number {
                number = Some(open(source, chunk, Physical::INT64, skipped).map_err(named)?);
            } else {
                text.push((column.name, open(source, chunk, Physical::BYTE_ARRAY, skipped).map_err(named)?));
            }
        }
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        match number {
            Some(number) if text.len() + 1 == COLUMNS.len() => {
                Ok(Self { text, number, left: rows.saturating_sub(skipped), card: None, image: None })
            }
            _ => {
                let what = format!("a row group has {} columns", group.num_columns());
                Err(TableError::Damaged { table: table.to_owned(), what })
            }
        }
    }

    /// Whether every row was taken.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next row; `row` is its number, for errors.
    pub(crate) fn next_row(&mut self, table: &str, row: u64) -> Result<RawRow, TableError> {
        self.left = self.left.saturating_sub(1);
        let timestep = self.number.next().map_err(|fault| table_fault(table, "timestep", fault))?;
        let mut found = RawRow { timestep, ..RawRow::default() };
        for (name, column) in &mut self.text {
            let Some(value) = column.next().map_err(|fault| table_fault(table, name, fault))? else { continue };
            let text = std::str::from_utf8(&value).map_err(|_| TableError::Row {
                table: table.to_owned(),
                row,
                fault: RowFault { column: name, what: "is no UTF-8".to_owned() },
            })?;
            match *name {
                "case_id" => found.case_id = Some(text.to_owned()),
                "prompt_id" => found.prompt_id = Some(text.to_owned()),
                "split" => found.split = Some(text.to_owned()),
                "prompt_source" => found.prompt_source = Some(text.to_owned()),
                "prompt_text" => found.prompt_text = Some(text.to_owned()),
                "skill_card_text" => found.skill_card_text = Some(shared(&mut self.card, text)),
                _ => found.sandbox_image = Some(shared(&mut self.image, text)),
            }
        }
        Ok(found)
    }
}

/// The text again when it is the one before, which cards and images mostly are.
fn shared(last: &mut Option<Arc<str>>, text: &str) -> Arc<str> {
    match last {
        Some(last) if **last == *text => last.clone(),
        _ => last.insert(text.into()).clone(),
    }
}

fn open<V: Value>(
    source: &Arc<Source>,
    chunk: &ColumnChunkMetaData,
    physical: Physical,
    skipped: u64,
) -> Result<Column<V>, ColumnFault> {
    if chunk.column_type() != physical {
        return damaged(format!("is stored as {}", chunk.column_type()));
    }
    // Some writers state a dictionary's place as 0 where there is none.
    let data = chunk.data_page_offset();
    let first = chunk.dictionary_page_offset().filter(|at| *at > 0).map_or(data, |dictionary| dictionary.min(data));
    let (Ok(at), Ok(length)) = (u64::try_from(first), u64::try_from(chunk.compressed_size())) else {
        return damaged("does not lie within the file");
    };
    let pages = Pages::new(source.clone(), at, at.saturating_add(length), chunk.compression())?;
    let mut column = Column::new(pages);
    column.skip(skipped)?;
    Ok(column)
}

fn table_fault(table: &str, column: &str, fault: ColumnFault) -> TableError {
    let table = table.to_owned();
    match fault {
        ColumnFault::Damaged(what) => TableError::Damaged { table, what: format!("column {column} {what}") },
        ColumnFault::Read(source) => TableError::Read { table, source },
        ColumnFault::Unread(what) => {
            let what = format!(
                "column {column} {what}, which is not read here; write it with snappy or no compression and plain or \
                 dictionary encoding, as pyarrow does by itself"
            );
            TableError::Unsupported { table, what }
        }
    }
}
