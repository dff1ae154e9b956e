//! Files that are whole or not there.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// What marks a file that is not whole yet.
const UNFINISHED: &str = ".unfinished";

/// Writes a file so that it is seen whole or not at all, also after a crash or a power cut.
pub(crate) fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"));
    };
    // A leading dot keeps it out of `*.json` of whoever collects from the folder.
    let unfinished = folder.join(format!(".{}{UNFINISHED}", name.to_string_lossy()));
    let written = write(&unfinished, parts).and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = written {
        // The first error is the one that counts.
        let _gone = fs::remove_file(&unfinished);
        return Err(error);
    }
    // The new name itself must survive a power cut.
    File::open(folder)?.sync_all()
}

fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// Removes what a crash left half-written in a folder; returns how many files that were.
pub(crate) fn remove_unfinished(folder: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(UNFINISHED) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_leftovers_go() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("ses_1.mode.json");
        write_whole(&path, &[b"{", b"}"]).expect("writes");
        assert_eq!(fs::read(&path).expect("there"), b"{}");
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1, "nothing else is left");
        fs::write(dir.path().join(".ses_2.mode.json.unfinished"), "{").expect("a leftover");
        assert_eq!(remove_unfinished(dir.path()).expect("cleans"), 1);
        assert!(path.exists(), "what is whole stays");
    }
}
