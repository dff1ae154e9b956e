//! The log of a session: one JSON line for each model call, as evidence.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gsj_trace::json::{Value, ValueRef};

/// An append-only file, readable by its owner alone.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    path: Arc<Path>,
    written: Arc<Mutex<Written>>,
}

#[derive(Debug)]
struct Written {
    file: File,
    length: u64,
}

impl Log {
    /// Makes the file; one that is there already is another session's evidence and is not touched.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { path: path.into(), written: Arc::new(Mutex::new(Written { file, length: 0 })) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line (its line feed included) and hands it to the system.
    ///
    /// Gives the line back. It is written even when the caller stops waiting. After an error the file ends where
    /// it ended before.
    pub(crate) async fn append(&self, line: String) -> io::Result<String> {
        let written = Arc::clone(&self.written);
        let write = move || {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            let Written { file, length } = &mut *written;
            if let Err(error) = file.write_all(line.as_bytes()) {
                // Best effort: the first error is the one to report.
                let _cut = file.set_len(*length);
                return Err(error);
            }
            *length += line.len() as u64;
            Ok(line)
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }

    /// The records of completed calls in order of arrival, without the raw answers.
    pub(crate) async fn completions(&self) -> io::Result<Vec<Value<'static>>> {
        let path: PathBuf = self.path.to_path_buf();
        tokio::task::spawn_blocking(move || read(&path)).await.map_err(io::Error::other)?
    }
}

fn read(path: &Path) -> io::Result<Vec<Value<'static>>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut records = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let mut record = Value::parse(&line).map_err(io::Error::other)?;
        if record.get("outcome").and_then(ValueRef::as_str) == Some("completed") {
            if let Some(members) = record.as_object_mut() {
                members.remove("raw");
            }
            records.push(record.into_owned());
        }
    }
    records.sort_by_key(|record| record.get("sequence").and_then(ValueRef::as_i64));
    Ok(records)
}
