//! Files, folders and standard input as a stream of documents.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::vec;

use crate::error::CliError;

/// Standard input.
const STDIN: &str = "-";

/// One document, and where it came from: `FILE`, or `FILE:LINE` of a file with a document a line.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: String,
    pub(crate) bytes: Vec<u8>,
    /// The file that holds it.
    pub(crate) file: PathBuf,
}

impl AsRef<[u8]> for Document {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The documents of some files, one at a time; a file with a document a line is never held whole.
#[derive(Debug)]
pub(crate) struct Inputs {
    files: vec::IntoIter<PathBuf>,
    /// Extensions of files with a document a line.
    by_line: &'static [&'static str],
    open: Option<Lines>,
    /// Sizes of all files together, as far as they have one.
    size: u64,
}

/// A file with a document a line, read so far.
struct Lines {
    reader: Box<dyn BufRead>,
    file: PathBuf,
    line: usize,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl Inputs {
    /// Finds the files: those that are named, of folders the ones that end with `.json` or one of `by_line`, sorted.
    pub(crate) fn open(paths: &[PathBuf], by_line: &'static [&'static str]) -> Result<Self, CliError> {
        let mut found = Self { files: Vec::new().into_iter(), by_line, open: None, size: 0 };
        let mut files = Vec::new();
        for path in paths {
            found.find(path, true, &mut files)?;
        }
        if files.is_empty() && !paths.is_empty() {
            let looked = paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
            let kinds = by_line.iter().map(|kind| format!(" or .{kind}")).collect::<String>();
            return Err(CliError::usage(format!("no .json{kinds} file in {looked}")));
        }
        found.files = files.into_iter();
        Ok(found)
    }

    /// Bytes of all files together; standard input counts nothing.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn find(&mut self, path: &Path, named: bool, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
        if path.as_os_str() == STDIN {
            found.push(path.to_owned());
            return Ok(());
        }
        let fault = |error: io::Error| unreadable(path, &error);
        let metadata = std::fs::metadata(path).map_err(fault)?;
        if metadata.is_dir() {
            let entries = std::fs::read_dir(path).map_err(fault)?;
            let mut entries: Vec<PathBuf> =
                entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>().map_err(fault)?;
            entries.sort();
            return entries.iter().try_for_each(|entry| self.find(entry, false, found));
        }
        if named || has_extension(path, &["json"]) || has_extension(path, self.by_line) {
            self.size += metadata.len();
            found.push(path.to_owned());
        }
        Ok(())
    }

    /// Opens the next file: one document, or the first of its lines.
    fn next_file(&mut self, file: PathBuf) -> Result<Option<Document>, CliError> {
        if has_extension(&file, self.by_line) {
            let reader = File::open(&file).map_err(|error| unreadable(&file, &error))?;
            self.open = Some(Lines { reader: Box::new(BufReader::with_capacity(1 << 16, reader)), file, line: 0 });
            return self.next_line();
        }
        let bytes = read(&file)?;
        if file.as_os_str() == STDIN && has_a_document_a_line(&bytes) {
            self.open = Some(Lines { reader: Box::new(io::Cursor::new(bytes)), file, line: 0 });
            return self.next_line();
        }
        Ok(Some(Document { source: file.display().to_string(), bytes, file }))
    }

    fn next_line(&mut self) -> Result<Option<Document>, CliError> {
        let Some(lines) = &mut self.open else { return Ok(None) };
        loop {
            let mut bytes = Vec::new();
            let read = lines.reader.read_until(b'\n', &mut bytes).map_err(|error| unreadable(&lines.file, &error))?;
            if read == 0 {
                self.open = None;
                return Ok(None);
            }
            lines.line += 1;
            // The document is what stands on the line, so that its digest is the same wherever the line stands.
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            if !bytes.trim_ascii().is_empty() {
                let source = format!("{}:{}", lines.file.display(), lines.line);
                return Ok(Some(Document { source, bytes, file: lines.file.clone() }));
            }
        }
    }
}

impl Iterator for Inputs {
    type Item = Result<Document, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = match self.next_line() {
                Ok(None) => {
                    let file = self.files.next()?;
                    self.next_file(file)
                }
                other => other,
            };
            if let Some(item) = found.transpose() {
                return Some(item);
            }
        }
    }
}

/// Reads a whole file, or standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    if path.as_os_str() == STDIN {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|error| unreadable(path, &error))
}

/// Writes a file by a rename, so that no half of one is ever there.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let fault = |error: io::Error| CliError::usage(format!("write `{}`: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.unwrap_or(Path::new("")).join(format!(".{name}.{}.tmp", std::process::id()));
    std::fs::write(&beside, bytes).map_err(fault)?;
    std::fs::rename(&beside, path).map_err(|error| {
        drop(std::fs::remove_file(&beside));
        fault(error)
    })
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    let name = if path.as_os_str() == STDIN { "standard input".into() } else { path.display().to_string() };
    CliError::usage(format!("read `{name}`: {error}"))
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|known| extension == *known))
}

/// Whether standard input holds one document a line: it is no document as a whole, and its first line is an object.
fn has_a_document_a_line(bytes: &[u8]) -> bool {
    use gsj_trace::json::Value;
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (Some(first), Some(_)) = (lines.next(), lines.next()) else { return false };
    Value::parse(first).is_ok_and(|value| value.as_object().is_some()) && Value::parse(bytes).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(paths: &[PathBuf], by_line: &'static [&'static str]) -> Vec<(String, String)> {
        let found = Inputs::open(paths, by_line).unwrap_or_else(|_| panic!("files"));
        found
            .map(|document| {
                let document = document.unwrap_or_else(|_| panic!("readable"));
                (document.source, String::from_utf8_lossy(&document.bytes).into_owned())
            })
            .collect()
    }

    #[test]
    fn folders_files_and_lines_become_documents_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("b")).unwrap();
        for (name, text) in [("b/2.json", "{}"), ("b/notes.txt", "x"), ("a.jsonl", "\n1\r\n\n2"), ("c.json", "")] {
            std::fs::write(at(name), text).unwrap();
        }
        let name = |name: &str| at(name).display().to_string();
        let all = sources(&[folder.path().to_owned()], &["jsonl"]);
        assert_eq!(
            all,
            [
                (format!("{}:2", name("a.jsonl")), "1\r".to_owned()),
                (format!("{}:4", name("a.jsonl")), "2".to_owned()),
                (name("b/2.json"), "{}".to_owned()),
                (name("c.json"), String::new()),
            ]
        );
        assert_eq!(sources(&[at("b/notes.txt")], &["jsonl"]).len(), 1, "a named file is taken whatever it is called");
        assert!(Inputs::open(&[at("b/none")], &[]).is_err());
        std::fs::remove_file(at("b/2.json")).unwrap();
        assert!(Inputs::open(&[at("b")], &["jsonl"]).is_err(), "a folder without documents is a mistake");
    }

    #[test]
    fn standard_input_is_one_document_or_one_a_line() {
        assert!(has_a_document_a_line(b"{\"a\":1}\n\n{\"a\":2}\n"));
        assert!(has_a_document_a_line(b"{\"a\":1}\nno json"));
        assert!(!has_a_document_a_line(b"{\"a\":1}\n"));
        assert!(!has_a_document_a_line(b"{\n\"a\":1}\n"), "one document over several lines");
        assert!(!has_a_document_a_line(b"[1]\n[2]"), "no bodies");
    }

    #[test]
    fn a_written_file_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/pins.json");
        assert!(write_whole(&path, b"{}").is_ok());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
        assert!(write_whole(&folder.path().join("new"), b"{}").is_err(), "a folder stands there");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "nothing is left behind");
    }
}
