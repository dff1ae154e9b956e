//! What was done to an estate, as its marker states it.

use super::{Home, HomeError, MARKER};
use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names the form of the marker.
const FORMAT: &str = "gsj-estate/1";
/// The longest marker that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// What was asked for and what was done; everything that has to be known to tell what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: String,
    /// The corpus folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<PathBuf>,
    /// The folder of lock and task bank, where it is not the corpus folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_dir: Option<PathBuf>,
    /// The engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineRecord>,
    /// The agent's name, where it is another one than the configuration's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A folder with further agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_dir: Option<PathBuf>,
    /// The state folder that agents are installed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// The engine's tokenizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// The address and port of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// SHA-256 of the files as they were last written, by name: another digest is somebody's edit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, String>,
    /// The bring-up episode that the pins rest on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bring_up: Option<BringUpRecord>,
    /// SHA-256 of the lock that the running server has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            format: FORMAT.to_owned(),
            corpus: None,
            lock_dir: None,
            engine: None,
            agent: None,
            agents_dir: None,
            state: None,
            tokenizer: None,
            listen: None,
            written: BTreeMap::new(),
            bring_up: None,
            served: None,
        }
    }
}

/// Where the model answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRecord {
    /// Its dialect.
    pub kind: String,
    /// Its base URL.
    pub url: String,
    /// The model's name.
    pub model: String,
    /// The name of the variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

/// The episode that showed what the agent sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BringUpRecord {
    /// Its folder below that of bring-up episodes.
    pub session: String,
    /// What it depends on: name and digest. When one of them moves, another episode is due.
    pub basis: BTreeMap<String, String>,
}

/// The names of what differs between two bases, in order.
#[must_use]
pub fn what_changed(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(now.keys()).filter(|n| before.get(*n) != now.get(*n)).collect();
    names.sort();
    names.dedup();
    names.into_iter().cloned().collect()
}

impl Record {
    /// Reads the marker of an estate.
    ///
    /// # Errors
    /// It is not there, or was written by another version.
    pub fn read(home: &Home) -> Result<Self, HomeError> {
        let path = home.marker();
        let fault = |reason: String| HomeError::Record { path: path.clone(), reason };
        let bytes = files::bounded(&path, LONGEST).map_err(HomeError::io("read", &path))?;
        let bytes = bytes.ok_or_else(|| fault("is too long for the marker of an estate".to_owned()))?;
        let read: Self = serde_json::from_slice(&bytes).map_err(|error| {
            fault(format!("is no marker that this gsj knows ({error}); move it away to start anew"))
        })?;
        if read.format == FORMAT {
            Ok(read)
        } else {
            Err(fault(format!("has the format {}, this gsj knows {FORMAT}", read.format)))
        }
    }

    /// Writes the marker when it would change, whole or not at all; gives whether it did.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, home: &Home) -> Result<bool, HomeError> {
        let path = home.marker();
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| HomeError::Record { path: path.clone(), reason: format!("cannot be made: {error}") })?;
        text.push(b'\n');
        if std::fs::read(&path).is_ok_and(|there| there == text) {
            return Ok(false);
        }
        files::write_atomically(&home.root().join(MARKER), &text).map_err(|error| match error {
            crate::EstateError::File { source, .. } => HomeError::Io { doing: "write", path: path.clone(), source },
            other => HomeError::Record { path: path.clone(), reason: other.to_string() },
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_another_form_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let mut record = Record { corpus: Some("/corpus".into()), ..Record::default() };
        record.written.insert("rollout.yaml".into(), "ab".into());
        assert!(record.write(&home).unwrap());
        assert!(!record.write(&home).unwrap(), "nothing to change");
        assert_eq!(Record::read(&home).unwrap(), record);
        for odd in [r#"{"format":"gsj-estate/2"}"#, "[]", r#"{"format":"gsj-estate/1","color":1}"#] {
            std::fs::write(home.marker(), odd).unwrap();
            assert!(matches!(Record::read(&home), Err(HomeError::Record { .. })), "{odd}");
        }
    }

    #[test]
    fn a_basis_tells_what_moved() {
        let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let (before, now) =
            (of(&[("agent", "1"), ("engine", "e"), ("old", "x")]), of(&[("agent", "2"), ("engine", "e")]));
        assert_eq!(what_changed(&before, &now), ["agent", "old"]);
        assert!(what_changed(&now, &now).is_empty());
    }
}
