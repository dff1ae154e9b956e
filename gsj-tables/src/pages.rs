//! The pages of one column of one row group, each bounded before anything is allocated for it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;

use crate::source::Source;
use crate::thrift::{self, Fault, PageHead, page_head};

/// The most bytes that a page may unpack to; writers keep to about one megabyte, but a value is never split.
pub(crate) const LONGEST_PAGE: i64 = 64 << 20;
/// The longest head of a page, statistics included.
const LONGEST_HEAD: u64 = 1 << 20;
/// What is read at first to find a head in.
const WINDOW: u64 = 4 << 10;

/// Why a column cannot be read; said of the column by name, as `column split …`.
#[derive(Debug)]
pub(crate) enum ColumnFault {
    /// What it says of itself does not hold together.
    Damaged(String),
    /// It has a form that is not read here.
    Unread(String),
    /// Reading the file failed.
    Read(io::Error),
}

pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, ColumnFault> {
    Err(ColumnFault::Damaged(what.into()))
}

/// A page's head, and where its body begins.
type Place = (PageHead, u64);

/// The pages of a column, from the first to the last.
#[derive(Debug)]
pub(crate) struct Pages {
    source: Arc<Source>,
    /// Where the next head begins.
    at: u64,
    /// Where the column ends.
    end: u64,
    packed: bool,
}

impl Pages {
    /// The pages between two places of a source, packed by one of the two ways that are read.
    pub(crate) fn new(source: Arc<Source>, at: u64, end: u64, compression: Compression) -> Result<Self, ColumnFault> {
        let packed = match compression {
            Compression::UNCOMPRESSED => false,
            Compression::SNAPPY => true,
            other => return Err(ColumnFault::Unread(format!("is compressed by {}", other.to_string().to_lowercase()))),
        };
        if at > end || end > source.length() {
            return damaged("does not lie within the file");
        }
        Ok(Self { source, at, end, packed })
    }

    /// The next page's head; its body stays where it is until it is asked for.
    pub(crate) fn next_head(&mut self) -> Result<Option<Place>, ColumnFault> {
        while self.at < self.end {
            let (head, length) = self.head()?;
            let body = self.at + length as u64;
            check(&head, self.end - body)?;
            self.at = body + head.compressed.unsigned_abs();
            if head.kind != thrift::INDEX {
                return Ok(Some((head, body)));
            }
        }
        Ok(None)
    }

    fn read(&self, at: u64, length: usize) -> Result<Bytes, ColumnFault> {
        self.source.read(at, length).map_err(ColumnFault::Read)
    }

    fn head(&self) -> Result<(PageHead, usize), ColumnFault> {
        let left = self.end - self.at;
        for window in [WINDOW, LONGEST_HEAD] {
            let length = window.min(left);
            let bytes = self.read(self.at, usize::try_from(length).unwrap_or(usize::MAX))?;
            match page_head(&bytes) {
                Ok(found) => return Ok(found),
                Err(Fault::Short) if length < left && window < LONGEST_HEAD => {}
                Err(_) => break,
            }
        }
        damaged(format!("has no page at byte {}, where one should be", self.at))
    }

    /// The body of a page, unpacked.
    pub(crate) fn body(&self, (head, body): &Place) -> Result<Bytes, ColumnFault> {
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let stored = self.read(*body, size(head.compressed))?;
        if !self.packed || !head.is_compressed {
            if head.compressed != head.uncompressed {
                return damaged(format!("has a page at byte {body} of another length than it says"));
            }
            return Ok(stored);
        }
        // Levels of the second form stand, unpacked, before what is packed; `check` has seen that they fit.
        let levels = if head.kind == thrift::DATA_V2 { size(head.definition_bytes + head.repetition_bytes) } else { 0 };
        let (levels, packed) = stored.split_at_checked(levels).unwrap_or((&stored, &[]));
        let wanted = size(head.uncompressed).saturating_sub(levels.len());
        if packed.is_empty() && wanted == 0 {
            return Ok(stored);
        }
        if snap::raw::decompress_len(packed).ok() != Some(wanted) {
            return damaged(format!("has a page at byte {body} that unpacks to another length than it says"));
        }
        let mut whole = vec![0; size(head.uncompressed)];
        whole[..levels.len()].copy_from_slice(levels);
        match snap::raw::Decoder::new().decompress(packed, &mut whole[levels.len()..]) {
            Ok(_) => Ok(whole.into()),
            Err(error) => damaged(format!("has a page at byte {body} that cannot be unpacked: {error}")),
        }
    }
}

/// What must hold of a head before its page is touched; `left` bytes of the column come after the head.
fn check(head: &PageHead, left: u64) -> Result<(), ColumnFault> {
    let known = [thrift::DATA, thrift::INDEX, thrift::DICTIONARY, thrift::DATA_V2].contains(&head.kind);
    let fits = u64::try_from(head.compressed).is_ok_and(|length| length <= left) && head.uncompressed >= 0;
    let most = i64::from(i32::MAX);
    let counts = [head.values, head.nulls, head.definition_bytes, head.repetition_bytes];
    let counts = head.kind == thrift::INDEX || counts.iter().all(|count| (0..=most).contains(count));
    if !known || !fits || !counts {
        return damaged("has a page that says of itself what cannot be");
    }
    if head.uncompressed > LONGEST_PAGE || head.compressed > LONGEST_PAGE {
        return Err(ColumnFault::Unread(format!(
            "has a page of {} bytes, longer than the {LONGEST_PAGE} that are read",
            head.uncompressed.max(head.compressed)
        )));
    }
    if head.definition_bytes + head.repetition_bytes > head.uncompressed.min(head.compressed) {
        return damaged("has a page with levels longer than itself");
    }
    Ok(())
}
