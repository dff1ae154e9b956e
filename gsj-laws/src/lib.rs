//! Laws of reading, judging and building: what holds whatever the input says.
//!
//! Each law is a function over bytes that panics when it is broken, so that a fuzz target, a property test and a kept
//! input that once failed run the same code (`docs/fuzzing.md`). The bytes are the input of the thing itself (a JSON
//! document, a session result, a pins document, a session), or, where a law needs to know what is in it, the choices
//! that an input is made from.
//!
//! Not a place for what one example should give: that is a test beside the code.
//!
//! ```
//! gsj_laws::reader(br#"{"a": [1, 2.50, "\ud83d"]}"#);
//! gsj_laws::validators(br#"{"status": "COMPLETED"}"#);
//! ```

mod bodies;
mod documents;
mod pins;
mod reader;
mod reconstruct;
mod sessions;
mod validators;
mod vocabulary;

pub use pins::pins;
pub use reader::reader;
pub use reconstruct::reconstruct;
pub use validators::{is_clean, validators};

/// A law over an input; it panics when it is broken.
pub type Law = fn(&[u8]);

/// The laws by name, as fuzz targets and folders of kept inputs are named.
pub const LAWS: [(&str, Law); 4] =
    [("reader", reader), ("validators", validators), ("reconstruct", reconstruct), ("pins", pins)];
