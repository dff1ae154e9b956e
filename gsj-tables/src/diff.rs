//! How two banks differ, row by row, in the memory of two rows.

use crate::bank::Bank;
use crate::error::TableError;
use crate::row::{Ask, TaskKey, TaskRow};
use std::cmp::Ordering;

/// One task that is not the same in both banks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the first bank has it.
    Removed(TaskKey),
    /// Only the second bank has it.
    Added(TaskKey),
    /// Both have it, with other values.
    Changed {
        /// The task.
        key: TaskKey,
        /// The columns that differ, in their order.
        columns: Vec<&'static str>,
    },
}

/// Compares two banks; both must be in a bank's order. Ends after the first error.
pub fn diff<'b>(before: &'b Bank, after: &'b Bank) -> impl Iterator<Item = Result<Change, TableError>> + 'b {
    let mut sides = (Side::new(before), Side::new(after));
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let found = next(&mut sides).transpose();
        failed = found.as_ref().is_some_and(Result::is_err);
        found
    })
}

fn next((before, after): &mut (Side<'_>, Side<'_>)) -> Result<Option<Change>, TableError> {
    loop {
        before.fill()?;
        after.fill()?;
        let order = match (&before.row, &after.row) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        match order {
            Ordering::Less => return Ok(before.row.take().map(|(key, _)| Change::Removed(key))),
            Ordering::Greater => return Ok(after.row.take().map(|(key, _)| Change::Added(key))),
            Ordering::Equal => {
                if let (Some((key, left)), Some((_, right))) = (before.row.take(), after.row.take()) {
                    let columns = columns(&left, &right);
                    if !columns.is_empty() {
                        return Ok(Some(Change::Changed { key, columns }));
                    }
                }
            }
        }
    }
}

fn columns(left: &TaskRow, right: &TaskRow) -> Vec<&'static str> {
    let text = |row: &TaskRow| match &row.ask {
        Ask::Free { text } => Some(text.clone()),
        Ask::Skill { .. } => None,
    };
    let card = |row: &TaskRow| match &row.ask {
        Ask::Free { .. } => None,
        Ask::Skill { card, .. } => Some(card.clone()),
    };
    // The prompt's id decides its source, so that rows of one key have the same.
    let differs = [
        ("split", left.split != right.split),
        ("prompt_text", text(left) != text(right)),
        ("skill_card_text", card(left) != card(right)),
        ("sandbox_image", left.sandbox_image != right.sandbox_image),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(column, _)| column).collect()
}

/// One bank, at a row.
struct Side<'b> {
    name: &'b str,
    rows: Box<dyn Iterator<Item = Result<TaskRow, TableError>> + 'b>,
    row: Option<(TaskKey, TaskRow)>,
    last: Option<TaskKey>,
}

impl<'b> Side<'b> {
    fn new(bank: &'b Bank) -> Self {
        Self { name: bank.name(), rows: Box::new(bank.all()), row: None, last: None }
    }

    fn fill(&mut self) -> Result<(), TableError> {
        if self.row.is_some() {
            return Ok(());
        }
        let Some(row) = self.rows.next().transpose()? else { return Ok(()) };
        let key = row.key();
        if let Some(before) = self.last.replace(key.clone()).filter(|before| *before >= key) {
            let table = format!("`{}`", self.name);
            return Err(TableError::Order { table, key: key.to_string(), before: before.to_string() });
        }
        self.row = Some((key, row));
        Ok(())
    }
}
