//! Reading loose objects with distrust: no link is followed, and no more is inflated than the header promises.

use crate::pack::{LARGEST_OBJECT, Reader};
use gix::ObjectId;
use gix::objs::Kind;
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The longest header that git writes: a kind, a space, a size and a zero byte.
const LONGEST_HEADER: usize = 32;

/// Where an object's loose file is, below an objects folder.
pub(crate) fn path(objects_dir: &Path, id: &gix::oid) -> PathBuf {
    let hex = id.to_hex().to_string();
    objects_dir.join(&hex[..2]).join(&hex[2..])
}

/// Whether an objects folder has a loose file for this id.
pub(crate) fn holds(objects_dir: &Path, id: &gix::oid) -> bool {
    fs::symlink_metadata(path(objects_dir, id)).is_ok_and(|found| found.is_file())
}

/// Reads the loose object into `out`; `None` when there is no such file. The digest is the caller's business.
pub(crate) fn read(
    objects_dir: &Path,
    id: ObjectId,
    reader: &mut Reader,
    out: &mut Vec<u8>,
) -> Result<Option<Kind>, String> {
    reader.begin(out);
    let path = path(objects_dir, &id);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(format!("unreadable: {error}")),
    };
    let found = file.metadata().map_err(|error| format!("unreadable: {error}"))?;
    if !found.is_file() {
        return Err("is no regular file".into());
    }
    // What cannot be compressed grows by a few bytes in every 16 KiB.
    let most = LARGEST_OBJECT + LARGEST_OBJECT / 1024 + 1024;
    reader.permit(found.len());
    let mut compressed = Vec::with_capacity(usize::try_from(found.len().min(most)).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut compressed).map_err(|error| format!("unreadable: {error}"))?;

    let mut head = [0_u8; LONGEST_HEADER];
    let filled = reader.inflater.start(&compressed, &mut head)?;
    let (kind, size, header) = parse_header(&head[..filled]).ok_or("has no valid header")?;
    if size > LARGEST_OBJECT {
        return Err(too_large(size));
    }
    reader.spend(size)?;
    reader.permit(size);
    let size = usize::try_from(size).map_err(|_| too_large(size))?;
    let consumed = reader.inflater.exactly(&compressed, header + size, out)?;
    if consumed != compressed.len() {
        return Err("is followed by bytes that belong to no object".into());
    }
    out.drain(..header);
    Ok(Some(kind))
}

pub(crate) fn too_large(size: u64) -> String {
    format!("holds {size} bytes, more than the {LARGEST_OBJECT} that are read")
}

/// Kind, size and the header's own length.
pub(crate) fn parse_header(head: &[u8]) -> Option<(Kind, u64, usize)> {
    let end = head.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&head[..end]).ok()?;
    let (kind, size) = text.split_once(' ')?;
    if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((Kind::from_bytes(kind.as_bytes()).ok()?, size.parse().ok()?, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_git_writes_them_and_no_other_way() {
        assert_eq!(parse_header(b"blob 12\0rest"), Some((Kind::Blob, 12, 8)));
        for head in
            [&b"blob -1\0"[..], b"blob +1\0", b"blob \0", b"blob 1", b"thing 1\0", b"blob 99999999999999999999\0"]
        {
            assert_eq!(parse_header(head), None);
        }
    }
}
