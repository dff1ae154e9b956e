//! `corpus.lock.json`: what was built (`corpus.md` section 9).

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::files;
use crate::names;
use crate::recipe::Recipe;
use crate::scaffold::{RepoMade, ScaffoldOptions};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The lock's name in the corpus folder.
pub const LOCK_FILE: &str = "corpus.lock.json";

/// The block that the task bank's phase writes.
const TASKBANK: &str = "taskbank";
/// The longest lock that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// A lock: what was pushed and built, block by block.
///
/// Each phase writes its own block and keeps the others, known or not. What a block holds is read only when it is asked
/// for, so that a lock with one odd block is still good for the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    path: PathBuf,
    document: Map<String, Value>,
}

/// What the lock says of a case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LockedCase {
    /// Where the case's repository is cloned from.
    pub clone_url: String,
    /// The split that it stood in.
    pub split: String,
    /// Its branches and their commits.
    #[serde(default)]
    pub refs: BTreeMap<String, String>,
    /// The branches of the full document's repository, under the sealed recipe.
    #[serde(default)]
    pub full_refs: BTreeMap<String, String>,
    /// Its timesteps by number, as text.
    pub timesteps: BTreeMap<String, LockedTimestep>,
}

/// What the lock says of a timestep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LockedTimestep {
    /// How many pages it had.
    pub pages: u64,
    /// Its prompts, in the order of their file.
    pub prompt_ids: Vec<String>,
}

/// What the lock says of the task bank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedBank {
    /// How many of its tasks are for evaluation.
    pub eval: u64,
    /// The file, below the corpus folder.
    pub path: String,
    /// How many tasks it has.
    pub rows: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// How many of its tasks are for training.
    pub train: u64,
}

impl Lock {
    /// Reads the lock of a corpus; `None` when there is none.
    ///
    /// # Errors
    /// Fails when the file cannot be read, is too long, is no JSON object, or says anything twice.
    pub fn read(corpus: &Path) -> Result<Option<Self>, EstateError> {
        let path = corpus.join(LOCK_FILE);
        if files::kind(&path).is_none() {
            return Ok(None);
        }
        let fault = |what: String| EstateError::Lock { path: path.clone(), what };
        let content = files::read_at_most(&path, LONGEST)?.ok_or_else(|| fault("is too long".into()))?;
        match serde_json::from_slice(&content).map(|Once(value)| value) {
            Ok(Value::Object(document)) => Ok(Some(Self { path, document })),
            Ok(_) => Err(fault("is no JSON object".into())),
            Err(error) => Err(fault(format!("is no JSON: {error}"))),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The recipe: `reference` when none is named.
    ///
    /// # Errors
    /// Fails when the recipe that it names is not known.
    pub fn recipe(&self) -> Result<Recipe, EstateError> {
        match self.document.get("corpus").and_then(|corpus| corpus.get("recipe")) {
            None => Ok(Recipe::Reference),
            Some(recipe) if recipe == Recipe::Sealed.as_str() => Ok(Recipe::Sealed),
            Some(recipe) if recipe == Recipe::Reference.as_str() => Ok(Recipe::Reference),
            Some(recipe) => Err(self.fault(format!("names the recipe {recipe}, which is not known"))),
        }
    }

    /// The block `corpus`, as it stands there.
    #[must_use]
    pub fn corpus(&self) -> Option<&Value> {
        self.document.get("corpus")
    }

    /// The block `cases`, as it stands there.
    pub(crate) fn cases(&self) -> Option<&Map<String, Value>> {
        self.document.get("cases").and_then(Value::as_object)
    }

    /// The ids of its cases; none when the block is missing or no object.
    pub fn case_ids(&self) -> impl Iterator<Item = &str> {
        self.cases().into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// What it says of a case; `None` when it does not list it.
    ///
    /// # Errors
    /// Fails when the case's entry has another form than a lock's.
    pub fn case(&self, id: &str) -> Result<Option<LockedCase>, EstateError> {
        let Some(entry) = self.document.get("cases").and_then(|cases| cases.get(id)) else { return Ok(None) };
        let read = LockedCase::deserialize(entry);
        read.map(Some).map_err(|error| self.fault(format!("has an odd entry for case {id}: {error}")))
    }

    /// What it says of the task bank; `None` when it does not claim that there is one.
    ///
    /// # Errors
    /// Fails when the block has another form than a lock's.
    pub fn taskbank(&self) -> Result<Option<LockedBank>, EstateError> {
        let Some(block) = self.document.get(TASKBANK) else { return Ok(None) };
        LockedBank::deserialize(block)
            .map(Some)
            .map_err(|error| self.fault(format!("has an odd block taskbank: {error}")))
    }

    /// Sets the task bank's block, or takes it away.
    #[cfg(feature = "taskbank")]
    pub(crate) fn set_taskbank(&mut self, bank: Option<&LockedBank>) {
        match bank {
            Some(bank) => drop(self.document.insert(TASKBANK.into(), json!(bank))),
            None => drop(self.document.remove(TASKBANK)),
        }
    }

    /// Whether there is a block for the task bank, odd or not.
    #[cfg(feature = "taskbank")]
    pub(crate) fn claims_taskbank(&self) -> bool {
        self.document.contains_key(TASKBANK)
    }

    /// The text as it stands, or is to stand, in the file.
    #[must_use]
    pub fn text(&self) -> String {
        render(&sorted(Value::Object(self.document.clone())))
    }

    /// Writes the file, unless it is there byte for byte; tells whether it wrote.
    pub(crate) fn write(&self) -> Result<bool, EstateError> {
        let text = self.text();
        if std::fs::read(&self.path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(false);
        }
        files::write_atomically(&self.path, text.as_bytes())?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        files::sync_directory(folder).map_err(|error| EstateError::file("write", &self.path, error))?;
        Ok(true)
    }

    fn fault(&self, what: String) -> EstateError {
        EstateError::Lock { path: self.path.clone(), what }
    }
}

/// The right to change a corpus's lock and bank, for as long as this lives: two runs would each write what the other
/// had not read.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "the lock of the kernel lives as long as the file is open")] File);

impl Turn {
    /// Waits for it, in a folder that is made when it is not there. Nothing is left behind in it, and a killed process
    /// gives it back.
    pub(crate) fn take(folder: &Path) -> Result<Self, EstateError> {
        let fault = |error| EstateError::file("lock the folder", folder, error);
        std::fs::create_dir_all(folder).map_err(|error| EstateError::file("make the folder", folder, error))?;
        let folder = File::open(folder).map_err(fault)?;
        loop {
            match flock(&folder, FlockOperation::LockExclusive) {
                // Some network file systems have no locks; then there is none to be had.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS) => return Ok(Self(folder)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(fault(error.into())),
            }
        }
    }
}

impl Turn {
    /// Takes it in a second folder, unless that is the first one, where this run would wait for itself.
    pub(crate) fn take_beside(folder: &Path, held: &Path) -> Result<Option<Self>, EstateError> {
        let same =
            |a: &Path, b: &Path| std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b));
        if same(folder, held) { Ok(None) } else { Self::take(folder).map(Some) }
    }
}

/// Whether another run works on the lock in a folder now, and one that starts would wait for it.
#[must_use]
pub fn is_in_use(lock_dir: &Path) -> bool {
    let Ok(folder) = File::open(lock_dir) else { return false };
    // What is taken here is given back when the file is closed.
    matches!(flock(&folder, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK))
}

/// The recipe of a corpus for which none is named: its lock's; `reference` beside a lock that names none; else
/// `sealed`.
///
/// # Errors
/// Fails when there is a lock and it cannot be read.
pub fn default_recipe(corpus: &Path) -> Result<Recipe, EstateError> {
    Lock::read(corpus)?.map_or(Ok(Recipe::Sealed), |lock| lock.recipe())
}

/// Refuses to build a part of an estate by another recipe or for another owner than the rest of it.
pub(crate) fn check_partial(corpus: &Corpus, before: &Lock, owner: &str, recipe: Recipe) -> Result<(), EstateError> {
    if before.case_ids().all(|id| corpus.cases.contains_key(id)) {
        return Ok(());
    }
    let there = before.corpus().and_then(|head| head.get("owner")?.as_str());
    if let Some(there) = there.filter(|there| *there != owner) {
        let what = format!("is for the owner {there}, and a part of an estate cannot be built for {owner}");
        return Err(before.fault(what));
    }
    let there = before.recipe()?.as_str();
    if there != recipe.as_str() {
        let what = format!("is by the recipe {there}, and a part of an estate cannot be built by {}", recipe.as_str());
        return Err(before.fault(what));
    }
    let head = head(corpus, owner, recipe);
    for key in ["base_url", "name", "sandbox_image"] {
        let [there, here] = [before.corpus().and_then(|head| head.get(key)), head.get(key)];
        if there.is_some() && there != here {
            return Err(EstateError::PartialChange { path: before.path.clone(), key });
        }
    }
    Ok(())
}

/// Writes the lock for what was built, and gives its text. Blocks that other phases write are kept, and when only a part
/// was built, the cases that are not in it. The caller has the corpus's [`Turn`].
pub(crate) fn write(
    corpus: &Corpus,
    owner: &str,
    options: &ScaffoldOptions,
    repos: &[RepoMade],
) -> Result<String, EstateError> {
    let path = corpus.lock_dir.join(LOCK_FILE);
    let mut lock = Lock::read(&corpus.lock_dir)?.unwrap_or(Lock { path, document: Map::new() });
    let kept = lock.document.remove("cases").filter(|_| options.partial);
    let mut cases = match kept {
        Some(Value::Object(cases)) => cases,
        _ => Map::new(),
    };
    for case in corpus.cases.values() {
        let made = repos.iter().filter(|made| made.case_id == case.id).map(|made| (made.full, &made.refs));
        cases.insert(case.id.clone(), entry(corpus, case, owner, made));
    }
    lock.document.insert("corpus".into(), head(corpus, owner, options.recipe));
    lock.document.insert("cases".into(), cases.into());
    if !options.dry_run {
        lock.write()?;
    }
    Ok(lock.text())
}

/// The block `corpus`.
pub(crate) fn head(corpus: &Corpus, owner: &str, recipe: Recipe) -> Value {
    let settings = &corpus.settings;
    let mut head = json!({
        "base_url": settings.base_url,
        "name": settings.name,
        "owner": owner,
        "sandbox_image": settings.sandbox_image,
    });
    if recipe == Recipe::Sealed
        && let Some(head) = head.as_object_mut()
    {
        head.insert("recipe".into(), recipe.as_str().into());
    }
    head
}

/// The entry of a case: with each repository's branches and whether it is the full one.
pub(crate) fn entry<'a>(
    corpus: &Corpus,
    case: &Case,
    owner: &str,
    repositories: impl Iterator<Item = (bool, &'a BTreeMap<String, String>)>,
) -> Value {
    let clone_url = format!("{}/{owner}/{}.git", corpus.settings.base_url, case.id);
    let timesteps: Map<String, Value> = case
        .timesteps
        .iter()
        .map(|(number, timestep)| {
            let ids: Vec<&str> = timestep.prompts.iter().map(|prompt| prompt.id.as_str()).collect();
            (number.to_string(), json!({"pages": number, "prompt_ids": ids}))
        })
        .collect();
    let mut entry = json!({"clone_url": clone_url, "split": case.split.as_str(), "timesteps": timesteps});
    if let Some(entry) = entry.as_object_mut() {
        for (full, refs) in repositories {
            entry.insert(if full { "full_refs" } else { "refs" }.into(), json!(refs));
        }
    }
    entry
}

/// Any JSON in which no object has a name twice: what stands twice is read one way here and another way elsewhere.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut read = Vec::new();
                while let Some(Once(value)) = items.next_element()? {
                    read.push(value);
                }
                Ok(Value::Array(read))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
                let mut read = Map::new();
                while let Some(name) = members.next_key::<String>()? {
                    let Once(value) = members.next_value()?;
                    if read.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("it says `{}` twice", names::shown(&name))));
                    }
                    read.insert(name, value);
                }
                Ok(Value::Object(read))
            }
        }
        deserializer.deserialize_any(Visit).map(Once)
    }
}

/// Sorts the members of every object by code point.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<String, Value> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(ordered.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// Two spaces a level, everything beyond ASCII escaped, a line feed at the end.
fn render(value: &Value) -> String {
    let mut text = String::new();
    // Beyond ASCII stand only characters within strings.
    for character in format!("{value:#}").chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into a string does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_read_as_it_stands_unless_it_says_something_twice() {
        let text = r#"{"b": [null, true, -1, 1.5, 18446744073709551615, "é\n", {}], "a": {"a": {"a": []}}}"#;
        let Once(read) = serde_json::from_str(text).expect("once");
        assert_eq!(read, serde_json::from_str::<Value>(text).expect("JSON"));
        for twice in [r#"{"a": 1, "a": 1}"#, r#"{"b": [{"a": {}, "c": 1, "a": {}}]}"#, r#"{"a": 1, "\u0061": 2}"#] {
            let error = serde_json::from_str::<Once>(twice).err().expect("twice").to_string();
            assert!(error.contains("it says `a` twice"), "{error}");
        }
    }

    #[test]
    fn the_text_is_sorted_indented_and_ascii() {
        let text = render(&sorted(json!({"b": ["é", "😀"], "a": {"12": 1, "5": []}, "_c": {}})));
        assert_eq!(
            text,
            "{\n  \"_c\": {},\n  \"a\": {\n    \"12\": 1,\n    \"5\": []\n  },\n  \"b\": [\n    \"\\u00e9\",\n    \
             \"\\ud83d\\ude00\"\n  ]\n}\n"
        );
    }
}
