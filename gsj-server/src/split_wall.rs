//! The wall between the splits: no task without its case's split, none for evaluation unless the server is there for it.
//!
//! A case's split is what the estate's lock says (corpus.md section 9). The lock is read again when the file changes, so a
//! case that moves between the splits is judged by where it stands now.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};

use crate::{
    config::EstateConfig,
    error::ServerError,
    request::{Detail, Step, TaskRequest},
};

/// The longest lock that is read, in bytes: that of a million timesteps fits.
const LONGEST: u64 = 256 << 20;
/// The split of the cases that no trainer may learn from.
const EVAL: &str = "eval";

/// A case's id to its split.
type Splits = BTreeMap<String, String>;

/// Refuses tasks that don't say which split they are for.
#[derive(Debug)]
pub(crate) struct SplitWall {
    lock: PathBuf,
    evaluation: bool,
    read: Mutex<Option<(Stamp, Arc<Splits>)>>,
}

/// What tells one content of a file from another; a lock is written beside itself and renamed, so its inode changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp(u64, u64, i64, i64);

#[derive(Deserialize)]
struct Lock {
    #[serde(deserialize_with = "each_once")]
    cases: Splits,
}

#[derive(Deserialize)]
struct Case {
    split: String,
}

/// The splits of cases that are listed once each: of two splits of a case, neither can be trusted.
fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Splits, D::Error> {
    struct Visit;
    impl<'de> Visitor<'de> for Visit {
        type Value = Splits;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping by case id")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Splits, A::Error> {
            let mut splits = Splits::new();
            while let Some((id, Case { split })) = members.next_entry::<String, Case>()? {
                if splits.contains_key(&id) {
                    return Err(A::Error::custom(format_args!("it lists the case {id:?} twice")));
                }
                splits.insert(id, split);
            }
            Ok(splits)
        }
    }
    deserializer.deserialize_map(Visit)
}

impl SplitWall {
    /// The wall of the configuration, if there is to be one; the lock must be readable at the start.
    pub(crate) fn open(config: &EstateConfig) -> Result<Option<Self>, ServerError> {
        if !config.split_wall {
            return Ok(None);
        }
        let lock = config.lock.clone().ok_or(ServerError::Unset { key: "estate.lock" })?;
        let wall = Self { lock, evaluation: config.evaluation, read: Mutex::new(None) };
        match wall.splits() {
            Ok(_splits) => Ok(Some(wall)),
            Err(source) => Err(ServerError::Lock { path: wall.lock, source }),
        }
    }

    /// Says why a task may not run here, or nothing.
    pub(crate) fn refusal(&self, request: &TaskRequest) -> Option<Detail> {
        let case = &request.settings.case_id;
        let stated = request.metadata.get("split").and_then(|split| split.as_str());
        let msg = match (self.splits(), stated) {
            (Err(error), _) => {
                tracing::error!(lock = %self.lock.display(), %error, "the splits are unknown, so no task is taken");
                "the estate's lock cannot be read, so no case's split is known; the server's log says why".to_owned()
            }
            (Ok(splits), stated) => match (splits.get(case), stated) {
                (None, _) => format!("case `{case}` is not in the estate's lock"),
                (Some(split), _) if split == EVAL && !self.evaluation => {
                    format!(
                        "case `{case}` is for evaluation, and this server was not started for it: gsj serve --evaluation"
                    )
                }
                (Some(_), None) => "must be stated: this server keeps the splits apart (estate.split_wall)".to_owned(),
                (Some(split), Some(stated)) if split == stated => return None,
                (Some(split), Some(_)) => format!("case `{case}` stands in the split `{split}`"),
            },
        };
        let loc = ["body", "metadata", "split"].map(|name| Step::Name(name.to_owned())).to_vec();
        Some(Detail { loc, msg: format!("Value error, {msg}"), kind: "value_error" })
    }

    fn splits(&self) -> io::Result<Arc<Splits>> {
        let stamp = Stamp::of(&fs::metadata(&self.lock)?);
        // A poisoned lock still holds a whole value: it is replaced in one step.
        if let Some((seen, splits)) = &*self.read.lock().unwrap_or_else(PoisonError::into_inner)
            && *seen == stamp
        {
            return Ok(Arc::clone(splits));
        }
        let file = fs::File::open(&self.lock)?;
        let metadata = file.metadata()?;
        if metadata.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {LONGEST} bytes")));
        }
        let lock: Lock = serde_json::from_reader(io::BufReader::new(io::Read::take(file, LONGEST)))?;
        let splits = Arc::new(lock.cases);
        let seen = (Stamp::of(&metadata), Arc::clone(&splits));
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(splits)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self(metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;
    use crate::{config::Config, request::Rules};

    fn lock(folder: &std::path::Path, alpha: &str) {
        let text = json!({"cases": {"alpha": {"split": alpha}, "omega": {"split": "eval"}}}).to_string();
        fs::write(folder.join("beside"), text).expect("written");
        fs::rename(folder.join("beside"), folder.join("lock.json")).expect("renamed");
    }

    fn config(folder: &std::path::Path, evaluation: bool) -> EstateConfig {
        let lock = Some(folder.join("lock.json"));
        EstateConfig { split_wall: true, evaluation, lock, ..EstateConfig::default() }
    }

    fn task(case: &str, split: Option<&str>) -> TaskRequest {
        let mut body = json!({
            "task_id": "t", "instruction": "Read.",
            "agent": {"harness": "pi", "settings": {"case_id": case, "timestep": 1}}, "metadata": {},
        });
        if let Some(split) = split {
            body["metadata"]["split"] = json!(split);
        }
        let rules = Rules { config: &Config::default(), agent: &|name: &str| Ok(name.to_owned()) };
        rules.read(&body).expect("a good body")
    }

    /// What the wall answers, as `CASE SPLIT: message`.
    fn answers(wall: &SplitWall) -> String {
        let mut told = String::new();
        for case in ["alpha", "omega", "other"] {
            for split in [None, Some("train"), Some("eval"), Some("")] {
                let answer = wall.refusal(&task(case, split)).map_or_else(|| "passes".to_owned(), |detail| detail.msg);
                writeln!(told, "{case} {}: {answer}", split.unwrap_or("-")).expect("a text takes all");
            }
        }
        told
    }

    #[test]
    fn only_a_task_that_states_its_cases_split_passes_and_no_eval_case() {
        let folder = tempfile::tempdir().expect("a folder");
        lock(folder.path(), "train");
        let wall = SplitWall::open(&config(folder.path(), false)).expect("a lock").expect("a wall");
        let told = answers(&wall);
        let passing: Vec<_> = told.lines().filter(|line| line.ends_with(": passes")).collect();
        assert_eq!(passing, ["alpha train: passes"], "{told}");
        assert!(told.contains("alpha -: Value error, must be stated"), "{told}");
        assert!(told.contains("alpha eval: Value error, case `alpha` stands in the split `train`"), "{told}");
        assert!(told.contains("omega eval: Value error, case `omega` is for evaluation"), "{told}");
        assert!(told.contains("other train: Value error, case `other` is not in the estate's lock"), "{told}");
    }

    #[test]
    fn a_server_for_evaluation_takes_eval_cases_that_say_so() {
        let folder = tempfile::tempdir().expect("a folder");
        lock(folder.path(), "train");
        let wall = SplitWall::open(&config(folder.path(), true)).expect("a lock").expect("a wall");
        let told = answers(&wall);
        let passing: Vec<_> = told.lines().filter(|line| line.ends_with(": passes")).collect();
        assert_eq!(passing, ["alpha train: passes", "omega eval: passes"], "{told}");
    }

    #[test]
    fn a_case_is_judged_by_where_it_stands_now_and_by_nothing_when_the_lock_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        lock(folder.path(), "train");
        let wall = SplitWall::open(&config(folder.path(), false)).expect("a lock").expect("a wall");
        assert_eq!(wall.refusal(&task("alpha", Some("train"))), None);
        lock(folder.path(), "eval");
        assert!(wall.refusal(&task("alpha", Some("train"))).is_some(), "the case has moved");
        lock(folder.path(), "train");
        assert_eq!(wall.refusal(&task("alpha", Some("train"))), None);
        let twice = r#"{"cases": {"alpha": {"split": "eval"}, "alpha": {"split": "train"}}}"#;
        for broken in ["{", "[]", r#"{"cases": {"alpha": {}}}"#, twice] {
            fs::write(folder.path().join("lock.json"), broken).expect("written");
            let refused = wall.refusal(&task("alpha", Some("train"))).expect("nothing passes");
            assert!(refused.msg.contains("cannot be read"), "{broken}: {refused:?}");
        }
        fs::remove_file(folder.path().join("lock.json")).expect("removed");
        assert!(wall.refusal(&task("alpha", Some("train"))).is_some());
    }

    #[test]
    fn without_a_readable_lock_there_is_no_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = SplitWall::open(&config(folder.path(), false)).expect_err("no lock").to_string();
        assert!(error.contains("estate.lock") && error.contains("gsj estate scaffold"), "{error}");
        assert!(SplitWall::open(&EstateConfig::default()).expect("no wall").is_none());
    }
}
