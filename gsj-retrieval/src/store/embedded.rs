//! The vectors beside a case's index: a file of their own, so that neither is made again for the other.

use super::{Manifest, name_of, write};
use crate::RetrievalError;
use crate::embed::{Embedder, Session};
use crate::progress::Progress;
use crate::source::Head;
use crate::vectors::{self, Digest, Known, Rows, Vectors};
use std::fs;
use std::path::Path;

pub(super) const SUFFIX: &str = ".gsjvec";
/// Pages of one case after which what was embedded so far is kept, should the build be killed.
const KEPT_EVERY: usize = 500;

/// `CASE.KEY.gsjvec`; the key is over what embedded and what the pages were read from.
pub(super) fn file_name(id: &str, head: &Head, identity: Digest) -> String {
    name_of(id, &format!("{}\n{}", hex::encode(identity), head.pages_from), SUFFIX)
}

/// Whether a manifest names the vectors that every case should have, or none where there should be none.
pub(super) fn are_named(manifest: &Manifest, embedder: Option<&Embedder>) -> bool {
    let wanted = |id: &str, head: &Head| embedder.map(|embedder| file_name(id, head, embedder.identity()));
    manifest.cases.iter().all(|(id, entry)| entry.vectors == wanted(id, &entry.head))
}

/// Maps the vectors of a case of so many pages, after its bytes were seen to be those that were written.
pub(super) fn opened(path: &Path, pages: usize) -> Result<Vectors, RetrievalError> {
    let found = if vectors::is_whole(path) { Some(Vectors::open(path)?) } else { None };
    found.filter(|found| found.page_count() == pages).ok_or_else(|| RetrievalError::NoIndex { path: path.to_owned() })
}

/// Makes the vectors of a case; pages that were embedded before, by the same, are not sent again.
pub(super) fn build(
    folder: &Path,
    id: &str,
    pages: &[String],
    file: &str,
    (session, anew): (&Session<'_>, bool),
    progress: &Progress,
) -> Result<(), RetrievalError> {
    let identity = session.identity();
    let known = if anew { Known::default() } else { known(folder, id, identity) };
    let mut rows = Rows::new();
    let stopped = folder.join(format!("{id}.stopped{SUFFIX}"));
    let keep = |rows: &Rows, path: &Path| match rows.bytes(identity) {
        Some(bytes) => write(path, &bytes),
        None => Err(RetrievalError::TooLarge),
    };
    let mut end = 0;
    while end < pages.len() {
        end = pages.len().min(end + KEPT_EVERY);
        let done = session.pages(pages.get(..end).unwrap_or(pages), &known, &mut rows, progress);
        if rows.page_count() < pages.len() && rows.page_count() > 0 {
            let kept = keep(&rows, &stopped);
            // What ended it matters more than that it can't be kept.
            done?;
            kept?;
        } else {
            done?;
        }
    }
    keep(&rows, &folder.join(file))
}

/// All vectors of a case that the folder has, of whatever build.
fn known(folder: &Path, id: &str, identity: Digest) -> Known {
    let mut known = Known::default();
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(SUFFIX) && name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.')))
        .collect();
    names.sort();
    for name in names {
        known.add(&folder.join(name), identity);
    }
    known
}
