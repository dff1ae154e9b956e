#![doc = include_str!("../README.md")]

mod bank;
mod columns;
mod decode;
mod error;
mod pages;
mod row;
mod schema;
mod source;
mod thrift;
mod writer;

pub use bank::{Bank, Facts, MOST_ROWS, RawRows};
pub use error::{RowFault, TableError};
pub use row::{Ask, RawRow, Split, TaskKey, TaskRow};
pub use writer::{BankWriter, Counts, LONGEST_VALUE};
