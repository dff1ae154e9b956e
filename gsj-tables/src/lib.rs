#![doc = include_str!("../README.md")]

mod bank;
mod columns;
mod decode;
mod diff;
mod error;
mod pages;
mod row;
mod schema;
mod source;
mod thrift;
mod tokens;
mod writer;

pub use bank::{Bank, Facts, MOST_ROWS, RawRows};
pub use diff::{Change, diff};
pub use error::{RowFault, TableError};
pub use row::{Ask, RawRow, Split, TaskKey, TaskRow};
pub use tokens::{TokenRow, TokenWriter};
pub use writer::{BankWriter, Counts, LONGEST_VALUE};
