//! Access to the shared vectors.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::PathBuf;

/// The lines of a vector file, or `None` (said loudly) when the shared folder is not there.
pub(crate) fn lines(name: &str) -> Option<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text.lines().map(str::to_owned).collect()),
        Err(error) => {
            eprintln!("SKIPPED: vectors {}: {error}", path.display());
            None
        }
    }
}
