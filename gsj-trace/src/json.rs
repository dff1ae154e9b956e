//! JSON as session results really carry it: a lenient reader, a value type that does not box
//! numbers one by one, and writers.
//!
//! The value model is that of `checks.md` section 0: integers have no bound and differ from
//! floats, strings may hold lone surrogates, objects keep their member order. Nothing here
//! recurses natively, not even `Drop`, so no document can overflow the stack.

mod array;
mod compare;
mod convert;
mod decimal;
mod encoding;
mod float;
mod gap;
mod int;
mod number;
mod object;
mod owned;
mod python;
mod read;
mod run;
mod scalar;
mod scan;
mod text;
mod value;
mod value_ref;
mod write;

pub use array::{Array, Items};
pub use float::float_text;
pub use int::{Int, IntRef};
pub use object::{Members, Object};
#[cfg(feature = "tokenizer")]
pub(crate) use python::quote_python;
pub use read::{MAX_DEPTH, MAX_INTEGER_DIGITS, ReadError};
pub use text::{Str, StrRef};
pub use value::Value;
pub use value_ref::ValueRef;
pub(crate) use write::{Style, write};
