//! The tables, their version, and how the file is opened.

use std::{fs::File, os::unix::fs::OpenOptionsExt as _, path::Path, time::Duration};

use rusqlite::Connection;

use super::{StoreError, doing};

/// The newest schema that this program reads and writes (`PRAGMA user_version`).
const VERSION: i64 = 1;

/// How long a statement waits for a second process (say, a person's `sqlite3`) that holds the file.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE runs (
  task_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  status TEXT NOT NULL,
  request TEXT NOT NULL,
  warnings TEXT NOT NULL,
  harness TEXT NOT NULL,
  model TEXT,
  source TEXT NOT NULL,
  callback_url TEXT,
  cancelled INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  PRIMARY KEY (task_id, run)
) STRICT;
CREATE TABLE sessions (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL UNIQUE,
  task_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  error TEXT,
  timing TEXT,
  accepted INTEGER,
  findings INTEGER,
  completions INTEGER,
  traces INTEGER,
  result_path TEXT,
  result_offset INTEGER,
  result_length INTEGER,
  callback TEXT,
  FOREIGN KEY (task_id, run) REFERENCES runs (task_id, run)
) STRICT;
CREATE INDEX sessions_by_run ON sessions (task_id, run, position);
CREATE INDEX sessions_by_state ON sessions (state, position);
CREATE INDEX runs_by_time ON runs (created_at);
CREATE INDEX sessions_by_callback ON sessions (callback) WHERE callback = 'pending';
";

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let at = |source| StoreError::Open { path: path.to_owned(), source };
    // Made here, where the mode can be said: it holds prompts. What SQLite puts beside it gets the same mode.
    // Whatever fails here fails again below, with SQLite's words.
    let _made = File::options().append(true).create(true).mode(0o600).open(path);
    let mut connection = Connection::open(path).map_err(at)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    // WAL: a crash of the process loses nothing, readers from outside never block the writer.
    // FULL: a result that was called stored is still there after the machine lost its power.
    connection.pragma_update(None, "journal_mode", "WAL").map_err(at)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(at)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(at)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
    if found > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    if found == 0 {
        let change = connection.transaction().map_err(at)?;
        change.execute_batch(TABLES).map_err(at)?;
        change.pragma_update(None, "user_version", VERSION).map_err(at)?;
        change.commit().map_err(doing("make the tables"))?;
    }
    Ok(connection)
}
