//! What a folder holds, as text: one line a file, sorted, so that two folders can be compared.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// How closely a folder is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Names, modes, sizes and the targets of links: enough to notice a broken copy.
    Quick,
    /// The bytes of each file too: enough to notice a change that somebody meant to hide.
    Full,
}

/// One file, link or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    path: String,
    /// `d`, `x` (executable), `f`, `l` (link), `?`.
    kind: char,
    size: u64,
    /// SHA-256 of a file's bytes (empty when not read), or a link's target.
    content: String,
}

impl Entry {
    pub(super) fn is(&self, path: &str) -> bool {
        self.path == path
    }
}

/// Everything below `root` in the order of the paths' bytes, links not followed.
pub(super) fn walk(root: &Path, depth: Depth) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|_| io::Error::other("a file name is not UTF-8"))?;
            if name.contains(['\n', '\t']) {
                return Err(io::Error::other(format!("file name {name:?} holds a line break or a tab")));
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let meta = entry.metadata()?;
            let (kind, size, content) = if meta.is_dir() {
                open.push(path.clone());
                ('d', 0, String::new())
            } else if meta.is_symlink() {
                ('l', 0, fs::read_link(entry.path())?.display().to_string())
            } else if meta.is_file() {
                let kind = if meta.permissions().mode() & 0o111 == 0 { 'f' } else { 'x' };
                let content = if depth == Depth::Full { file_sha256(&entry.path())? } else { String::new() };
                (kind, meta.len(), content)
            } else {
                ('?', 0, String::new())
            };
            found.push(Entry { path, kind, size, content });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(digest.finalize())),
            count => digest.update(&buffer[..count]),
        }
    }
}

pub(super) fn to_text(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{}\t{}\t{}\t{}\n", entry.kind, entry.size, entry.content, entry.path)).collect()
}

pub(super) fn from_text(text: &str) -> Option<Vec<Entry>> {
    text.lines()
        .map(|line| {
            let mut parts = line.splitn(4, '\t');
            Some(Entry {
                kind: parts.next()?.chars().next()?,
                size: parts.next()?.parse().ok()?,
                content: parts.next()?.to_owned(),
                path: parts.next()?.to_owned(),
            })
        })
        .collect()
}

/// The first difference between what was recorded and what is there.
pub(super) fn difference(recorded: &[Entry], found: &[Entry]) -> Option<String> {
    let (mut recorded, mut found) = (recorded.iter().peekable(), found.iter().peekable());
    loop {
        match (recorded.peek(), found.peek()) {
            (None, None) => return None,
            (Some(was), Some(is)) if was.path == is.path => {
                let read = was.kind == 'l' || !is.content.is_empty();
                if was.kind != is.kind || was.size != is.size || (read && was.content != is.content) {
                    return Some(format!("`{}` was changed", was.path));
                }
                recorded.next();
                found.next();
            }
            (Some(was), Some(is)) if was.path < is.path => return Some(format!("`{}` is missing", was.path)),
            (Some(was), None) => return Some(format!("`{}` is missing", was.path)),
            (_, Some(is)) => return Some(format!("`{}` was added", is.path)),
        }
    }
}

/// Lets everybody read everything and nobody but the owner write: the sandbox runs as another user.
pub(super) fn open_to_readers(root: &Path) -> io::Result<()> {
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_symlink() {
            continue;
        }
        let mode = meta.permissions().mode();
        let wanted = if meta.is_dir() || mode & 0o111 != 0 { 0o755 } else { 0o644 };
        if mode & 0o7777 != wanted {
            fs::set_permissions(&path, Permissions::from_mode(wanted))?;
        }
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_an_added_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path();
        fs::create_dir(root.join("a")).expect("made");
        fs::write(root.join("a/one"), "1").expect("written");
        fs::write(root.join("two"), "2").expect("written");
        let before = from_text(&to_text(&walk(root, Depth::Full).expect("walked"))).expect("reads back");
        assert_eq!(difference(&before, &walk(root, Depth::Quick).expect("walked")), None);

        fs::write(root.join("a/one"), "x").expect("written");
        assert_eq!(difference(&before, &walk(root, Depth::Quick).expect("walked")), None, "a quick look doesn't read");
        assert_eq!(
            difference(&before, &walk(root, Depth::Full).expect("walked")).as_deref(),
            Some("`a/one` was changed")
        );
        fs::write(root.join("a/one"), "1").expect("written");
        fs::write(root.join("a/zero"), "").expect("written");
        assert_eq!(
            difference(&before, &walk(root, Depth::Quick).expect("walked")).as_deref(),
            Some("`a/zero` was added")
        );
        fs::remove_file(root.join("a/zero")).expect("removed");
        fs::remove_file(root.join("two")).expect("removed");
        assert_eq!(
            difference(&before, &walk(root, Depth::Quick).expect("walked")).as_deref(),
            Some("`two` is missing")
        );
    }
}
