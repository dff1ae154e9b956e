//! The task bank's phase: a row for each case, timestep and prompt, and the lock's block that claims the file
//! (`corpus.md` section 10). Decision 0005 says why the order of the steps is this one.

use crate::corpus::{Case, Corpus, Prompt, PromptSource, Split};
use crate::error::EstateError;
use crate::files;
use crate::lock::{Lock, LockedBank, Turn};
use gsj_tables::{Ask, BankWriter, Counts, TableError, TaskRow};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bank's name in the corpus folder.
pub const BANK_FILE: &str = "taskbank.parquet";

/// A task bank that was made, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankMade {
    /// The file.
    pub path: PathBuf,
    /// How many tasks it has.
    pub counts: Counts,
    /// SHA-256 of the file in hex; `None` of a dry run.
    pub sha256: Option<String>,
    /// Whether the file or the lock had to be written.
    pub changed: bool,
}

/// The tasks of a corpus, in the order of a bank.
pub fn task_rows(corpus: &Corpus) -> impl Iterator<Item = TaskRow> {
    let image: Arc<str> = corpus.settings.sandbox_image.as_str().into();
    // Cards are UTF-8 in a corpus that passed; each is in memory once, however many tasks have it.
    let cards: BTreeMap<&str, Arc<str>> =
        corpus.skills.iter().map(|(name, card)| (name.as_str(), String::from_utf8_lossy(card).into())).collect();
    corpus.cases.values().flat_map(move |case| rows_of(case, &cards, &image))
}

fn rows_of(case: &Case, cards: &BTreeMap<&str, Arc<str>>, image: &Arc<str>) -> Vec<TaskRow> {
    let mut rows = Vec::new();
    for (number, timestep) in &case.timesteps {
        let mut prompts: Vec<&Prompt> = timestep.prompts.iter().collect();
        prompts.sort_by(|a, b| a.id.cmp(&b.id));
        rows.extend(prompts.into_iter().map(|prompt| TaskRow {
            case_id: case.id.clone(),
            timestep: *number,
            prompt_id: prompt.id.clone(),
            split: split(case.split),
            ask: match &prompt.source {
                PromptSource::Free { text } => Ask::Free { text: text.clone() },
                PromptSource::Skill { name } => Ask::Skill {
                    name: name.clone(),
                    // A corpus that passed has a card for every skill that a prompt names.
                    card: cards.get(name.as_str()).cloned().unwrap_or_default(),
                },
            },
            sandbox_image: image.clone(),
        }));
    }
    rows
}

/// Counts the tasks of a corpus and gives the SHA-256 of the bank that they make; writes nothing.
///
/// # Errors
/// A row cannot stand in a bank.
pub(crate) fn bank_digest(corpus: &Corpus) -> Result<(Counts, String), EstateError> {
    let fault = |source: TableError| EstateError::Bank { path: corpus.lock_dir.join(BANK_FILE), source };
    let mut writer = BankWriter::new(Hashing { to: io::sink(), hash: Sha256::new() }).map_err(fault)?;
    for row in task_rows(corpus) {
        writer.push(&row).map_err(fault)?;
    }
    let (counts, to) = writer.finish().map_err(fault)?;
    Ok((counts, hex::encode(to.hash.finalize())))
}

fn split(split: Split) -> gsj_tables::Split {
    match split {
        Split::Train => gsj_tables::Split::Train,
        Split::Eval => gsj_tables::Split::Eval,
    }
}

/// Makes the whole bank of a corpus, and has the lock claim it. Run again on an unchanged corpus it writes nothing.
///
/// Killed at any moment it leaves a lock that either claims the bank that is there, or none.
///
/// # Errors
/// Fails when there is no lock, when the lock lacks a case or has it in the other split, when a value is too long for a
/// table, or when writing fails. A dry run needs no lock and writes nothing.
pub fn taskbank(corpus: &Corpus, dry_run: bool) -> Result<BankMade, EstateError> {
    let path = corpus.lock_dir.join(BANK_FILE);
    if dry_run {
        let mut counts = Counts::default();
        task_rows(corpus).for_each(|row| counts.add(row.split));
        return Ok(BankMade { path, counts, sha256: None, changed: false });
    }
    let _turn = Turn::take(&corpus.lock_dir)?;
    let lock = locked(corpus)?;
    let beside = Beside::write(&path, task_rows(corpus))?;
    publish(beside, lock, &mut |_| Ok(()))
}

/// Makes a bank of one split's tasks in a file of its own, outside of the corpus folder. The lock does not know of it.
///
/// # Errors
/// As [`taskbank`]; also when the file would stand in the corpus folder or in the whole bank's place, where a partial bank
/// may never be.
pub fn split_bank(corpus: &Corpus, wanted: Split, path: &Path) -> Result<BankMade, EstateError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = |folder: &Path| fs::canonicalize(folder).map_err(|error| EstateError::file("find", folder, error));
    let whole = path.file_name() == Some(BANK_FILE.as_ref()) && real(folder)? == real(&corpus.lock_dir)?;
    if whole || real(folder)?.starts_with(real(&corpus.root)?) {
        return Err(EstateError::PartialBank { path: path.to_owned() });
    }
    let begins = |path: &Path| -> std::io::Result<bool> {
        let mut magic = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(files::open(path)?, 4), &mut magic)?;
        Ok(magic == b"PAR1")
    };
    if files::kind(path).is_some() && !begins(path).unwrap_or(false) {
        return Err(EstateError::NotABank { path: path.to_owned() });
    }
    let _turn = Turn::take(&corpus.lock_dir)?;
    locked(corpus)?;
    let beside = Beside::write(path, task_rows(corpus).filter(|row| row.split == split(wanted)))?;
    let changed = digest(path)?.as_deref() != Some(beside.sha256.as_str());
    let (counts, sha256) = (beside.counts, Some(beside.sha256.clone()));
    if changed {
        beside.take_its_place()?;
    }
    Ok(BankMade { path: path.to_owned(), counts, sha256, changed })
}

/// The lock, which must have every case of the corpus in its split.
fn locked(corpus: &Corpus) -> Result<Lock, EstateError> {
    let Some(lock) = Lock::read(&corpus.lock_dir)? else {
        return Err(EstateError::NoLock { root: corpus.lock_dir.clone() });
    };
    /// So many say enough.
    const MOST: usize = 10;
    let mut differences = Vec::new();
    for case in corpus.cases.values() {
        match lock.case(&case.id)? {
            None => differences.push(format!("{} is not in it", case.id)),
            Some(there) if there.split != case.split.as_str() => {
                differences.push(format!("{} is in split {:?} there, in {} here", case.id, there.split, case.split));
            }
            Some(_) => {}
        }
    }
    if differences.is_empty() {
        return Ok(lock);
    }
    if differences.len() > MOST {
        let more = differences.len() - MOST;
        differences.truncate(MOST);
        differences.push(format!("and {more} cases more"));
    }
    Err(EstateError::LockBehind { path: lock.path().to_owned(), differences })
}

/// A moment at which a run may be killed; tests stop there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The new bank lies beside the old one.
    Written,
    /// The lock claims no bank.
    Retracted,
    /// The new bank has taken its place.
    Replaced,
}

/// Puts the bank into its place and has the lock claim it, so that no claim is ever false.
fn publish(
    beside: Beside,
    mut lock: Lock,
    reached: &mut dyn FnMut(Moment) -> Result<(), EstateError>,
) -> Result<BankMade, EstateError> {
    let path = beside.path.clone();
    let (counts, sha256) = (beside.counts, beside.sha256.clone());
    let claim = LockedBank {
        eval: counts.eval,
        path: BANK_FILE.to_owned(),
        rows: counts.rows,
        sha256: sha256.clone(),
        train: counts.train,
    };
    reached(Moment::Written)?;
    let mut changed = false;
    if digest(&path)?.as_deref() != Some(sha256.as_str()) {
        if lock.claims_taskbank() {
            lock.set_taskbank(None);
            lock.write()?;
        }
        reached(Moment::Retracted)?;
        beside.take_its_place()?;
        changed = true;
        reached(Moment::Replaced)?;
    }
    lock.set_taskbank(Some(&claim));
    changed |= lock.write()?;
    Ok(BankMade { path, counts, sha256: Some(sha256), changed })
}

/// A bank that lies, whole and on the disk, beside the place it is for; gone again unless it takes that place.
struct Beside {
    file: PathBuf,
    path: PathBuf,
    counts: Counts,
    sha256: String,
}

impl Beside {
    fn write(path: &Path, rows: impl Iterator<Item = TaskRow>) -> Result<Self, EstateError> {
        let mut this =
            Self { file: files::beside(path), path: path.to_owned(), counts: Counts::default(), sha256: String::new() };
        let file = files::create(&this.file).map_err(|error| EstateError::file("write", path, error))?;
        let fault = |source: TableError| EstateError::Bank { path: path.to_owned(), source };
        let mut writer = BankWriter::new(Hashing { to: BufWriter::new(file), hash: Sha256::new() }).map_err(fault)?;
        for row in rows {
            writer.push(&row).map_err(fault)?;
        }
        let (counts, to) = writer.finish().map_err(fault)?;
        this.counts = counts;
        this.sha256 = hex::encode(to.hash.finalize());
        // What `finish` gives back is flushed.
        to.to.get_ref().sync_all().map_err(|error| EstateError::file("write", path, error))?;
        Ok(this)
    }

    fn take_its_place(self) -> Result<(), EstateError> {
        let fault = |error| EstateError::file("write", &self.path, error);
        fs::rename(&self.file, &self.path).map_err(fault)?;
        let folder = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        files::sync_directory(folder).map_err(fault)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It has taken its place, or is not wanted; a left-over is overwritten by the next run.
        let _ = fs::remove_file(&self.file);
    }
}

/// Hashes what passes through.
struct Hashing<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// SHA-256 of a file in hex; `None` when no regular file is there.
pub(crate) fn digest(path: &Path) -> Result<Option<String>, EstateError> {
    if files::kind(path) != Some(files::Kind::File) {
        return Ok(None);
    }
    let fault = |error| EstateError::file("read", path, error);
    let mut file = File::open(path).map_err(fault)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(fault)? {
            0 => return Ok(Some(hex::encode(hash.finalize()))),
            read => hash.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;
    use crate::scaffold::{ScaffoldOptions, scaffold};
    use tempfile::TempDir;

    /// A corpus of two cases with its lock, and the text of one prompt to tell its states apart.
    fn corpus(root: &Path, text: &str) -> Corpus {
        let write = |path: &str, content: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write(
            "corpus.yaml",
            "name: two\nowner: somebody\nforgejo: {base_url: http://git.invalid}\ngit: {name: a, email: b, \
             date: '2026-01-01T00:00:00Z'}\nsandbox_image: i\n",
        );
        write("AGENTS.md", "x");
        fs::create_dir_all(root.join("skills")).unwrap();
        for (split, case) in [("train", "one-case"), ("eval", "two-case")] {
            write(&format!("{split}/cases/{case}/timestep-1/pages/page_0001.md"), "page\n");
            let prompts = format!("prompts: [{{id: 'free:a', source: free, text: '{text}'}}]\n");
            write(&format!("{split}/cases/{case}/timestep-1/prompts.yaml"), &prompts);
        }
        Corpus::read(root).unwrap()
    }

    fn locked_corpus(text: &str) -> (TempDir, Corpus) {
        let home = TempDir::new().unwrap();
        let read = corpus(&home.path().join("corpus"), text);
        let base = home.path().join("repos");
        scaffold(&read, &ScaffoldOptions::folder(&base, Recipe::Sealed)).unwrap();
        (home, read)
    }

    /// What a run leaves: bank and lock.
    fn state(corpus: &Corpus) -> (Option<String>, String) {
        (digest(&corpus.root.join(BANK_FILE)).unwrap(), Lock::read(&corpus.root).unwrap().unwrap().text())
    }

    /// Whether the lock's claim, if there is one, is true of the bank.
    fn is_true(corpus: &Corpus) -> bool {
        let claim = Lock::read(&corpus.root).unwrap().unwrap().taskbank().unwrap();
        claim.is_none_or(|claim| digest(&corpus.root.join(BANK_FILE)).unwrap() == Some(claim.sha256))
    }

    #[test]
    fn stopped_at_any_moment_no_claim_is_false_and_the_next_run_ends_alike() {
        let (_undisturbed, wanted) = locked_corpus("after");
        taskbank(&wanted, false).unwrap();
        let wanted = state(&wanted);
        for there_is_one in [false, true] {
            for stop in [Moment::Written, Moment::Retracted, Moment::Replaced] {
                let (home, before) = locked_corpus("before");
                if there_is_one {
                    taskbank(&before, false).unwrap();
                }
                let after = corpus(&home.path().join("corpus"), "after");
                let beside = Beside::write(&after.root.join(BANK_FILE), task_rows(&after)).unwrap();
                let stopped = publish(beside, locked(&after).unwrap(), &mut |moment| {
                    assert!(is_true(&after), "a false claim at {moment:?}");
                    if moment == stop { Err(EstateError::NoLock { root: PathBuf::new() }) } else { Ok(()) }
                });
                assert!(stopped.is_err());
                assert!(is_true(&after), "a false claim after a stop at {stop:?}");
                // A process that is killed does not tidy up.
                fs::write(files::beside(&after.root.join(BANK_FILE)), "half").unwrap();
                fs::write(files::beside(&after.root.join(crate::lock::LOCK_FILE)), "{").unwrap();
                taskbank(&corpus(&after.root, "after"), false).unwrap();
                assert_eq!(state(&after), wanted, "stopped at {stop:?}, with a bank before: {there_is_one}");
            }
        }
    }

    #[test]
    fn an_unchanged_corpus_writes_nothing() {
        use std::os::unix::fs::MetadataExt as _;
        let (_home, corpus) = locked_corpus("x");
        assert!(taskbank(&corpus, false).unwrap().changed);
        let files = || {
            [BANK_FILE, crate::lock::LOCK_FILE].map(|name| {
                let found = fs::metadata(corpus.root.join(name)).unwrap();
                (found.ino(), found.mtime_nsec())
            })
        };
        let before = files();
        let again = taskbank(&corpus, false).unwrap();
        assert!(!again.changed);
        assert_eq!(files(), before);
        assert_eq!((again.counts.rows, again.counts.train, again.counts.eval), (2, 1, 1));
    }

    #[test]
    fn a_lock_that_lies_is_set_right_without_touching_the_bank() {
        let (_home, corpus) = locked_corpus("x");
        taskbank(&corpus, false).unwrap();
        let good = state(&corpus);
        let path = corpus.root.join(crate::lock::LOCK_FILE);
        for block in ["5", "{\"rows\": 99}", "null"] {
            let mut lock: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            lock["taskbank"] = serde_json::from_str(block).unwrap();
            fs::write(&path, lock.to_string()).unwrap();
            assert!(taskbank(&corpus, false).unwrap().changed);
            assert_eq!(state(&corpus), good);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (home, corpus) = locked_corpus("x");
        let outside = home.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        for name in [BANK_FILE, crate::lock::LOCK_FILE] {
            std::os::unix::fs::symlink(&outside, files::beside(&corpus.root.join(name))).unwrap();
        }
        taskbank(&corpus, false).unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"mine");
    }
}
