//! Validating again what changed.

use super::case::{self, Context};
use super::level::CasePlace;
use super::pages::Room;
use crate::corpus::Split;
use crate::error::EstateError;
use crate::report::{Finding, Report, below};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How deep below the root the files of a corpus stand: `train/cases/CASE/timestep-T/pages/page_0001.md`.
const DEEPEST: usize = 6;

/// A corpus that is validated again and again: [`Watch::poll`] tells what changed since the last time, and
/// [`Watch::validate`] reads only the cases in which something did.
///
/// Changes are seen by looking at every file's size and times, which needs nothing of the file system: no watches
/// that run out, and it works on network and shared folders. Nothing is read for it, and no link followed.
///
/// ```no_run
/// use gsj_estate::Watch;
///
/// # fn main() -> Result<(), gsj_estate::EstateError> {
/// let mut watch = Watch::new("corpus", None);
/// loop {
///     let changed = watch.poll()?;
///     if !changed.is_empty() {
///         println!("{} files changed: {}", changed.len(), watch.validate()?.passed());
///     }
///     std::thread::sleep(std::time::Duration::from_millis(500));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    only: Option<Vec<String>>,
    stamps: BTreeMap<PathBuf, Stamp>,
    /// What the cases gave when they were read last, by directory.
    cases: BTreeMap<PathBuf, Vec<Finding>>,
    /// The skills that they were read with.
    skills: BTreeSet<String>,
}

/// What tells one state of a file from another. The time of the last change of its entry is among it, which, unlike
/// that of its content, nobody can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    inode: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Watch {
    /// Watches a corpus folder, or some of its cases.
    pub fn new(root: impl Into<PathBuf>, only: Option<Vec<String>>) -> Self {
        let (stamps, cases, skills) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { root: root.into(), only, stamps, cases, skills }
    }

    /// Looks at the folder, and gives what is new, gone or different since the last look: paths below the root, in
    /// order. At the first look everything is new.
    ///
    /// # Errors
    /// Fails when the folder is not there.
    pub fn poll(&mut self) -> Result<Vec<String>, EstateError> {
        if !self.root.is_dir() {
            return Err(EstateError::NoCorpus { root: self.root.clone() });
        }
        let mut stamps = BTreeMap::new();
        look(&self.root, 1, &mut stamps);
        let mut changed: BTreeSet<&Path> = BTreeSet::new();
        changed.extend(
            stamps.iter().filter(|(path, stamp)| self.stamps.get(*path) != Some(stamp)).map(|(path, _)| &**path),
        );
        changed.extend(self.stamps.keys().filter(|path| !stamps.contains_key(*path)).map(|path| &**path));
        for path in &changed {
            if let Some(case) = case_of(&self.root, path) {
                self.cases.remove(&case);
            }
        }
        let changed = changed.into_iter().map(|path| below(&self.root, path)).collect();
        self.stamps = stamps;
        Ok(changed)
    }

    /// Validates the corpus as [`validate`](crate::validate()) does; cases in which the last [`Watch::poll`] and those
    /// before it saw no change are not read again.
    ///
    /// # Errors
    /// Fails when the folder is not there, or has no fault and not the cases asked for.
    pub fn validate(&mut self) -> Result<Report, EstateError> {
        let (known, skills) = (&mut self.cases, &mut self.skills);
        let mut cases = BTreeMap::new();
        let mut room = Room::new();
        let (report, _) = super::walk(&self.root, self.only.as_deref(), |place: &CasePlace, level| {
            if !level.skills.keys().eq(skills.iter()) {
                *skills = level.skills.keys().cloned().collect();
                known.clear();
            }
            // A fault of the directory as a whole comes from elsewhere, and is cheap to tell anew.
            let findings = match known.remove(&place.path) {
                Some(findings) if place.fault.is_none() => findings,
                _ => case::check(place, Context { skills: &level.skills, room: &mut room, wanted: false }).findings,
            };
            if place.fault.is_none() {
                cases.insert(place.path.clone(), findings.clone());
            }
            findings
        })?;
        // While the corpus level is broken no case is looked at, and what is known of them stays.
        self.cases.extend(cases);
        Ok(report)
    }
}

/// Collects the stamps below a directory; what cannot be listed or looked at is not there.
fn look(directory: &Path, depth: usize, stamps: &mut BTreeMap<PathBuf, Stamp>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let at_root = depth == 1;
        // Neither hidden entries of the root nor what the pipeline writes is a part of the corpus.
        if at_root
            && (name.as_encoded_bytes().starts_with(b".") || name == "corpus.lock.json" || name == "taskbank.parquet")
        {
            continue;
        }
        let Ok(found) = entry.metadata() else { continue };
        let path = entry.path();
        let is_directory = found.is_dir();
        let stamp = Stamp {
            mode: found.mode(),
            inode: found.ino(),
            // Sizes and times of a directory tell only what its entries tell.
            size: if is_directory { 0 } else { found.size() },
            written: if is_directory { (0, 0) } else { (found.mtime(), found.mtime_nsec()) },
            changed: if is_directory { (0, 0) } else { (found.ctime(), found.ctime_nsec()) },
        };
        if is_directory && depth < DEEPEST {
            look(&path, depth + 1, stamps);
        }
        stamps.insert(path, stamp);
    }
}

/// The case directory that a path is or stands in.
fn case_of(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut parts = path.strip_prefix(root).ok()?.iter();
    let (split, cases, case) = (parts.next()?, parts.next()?, parts.next()?);
    let is_split = [Split::Train, Split::Eval].iter().any(|known| split == known.as_str());
    (is_split && cases == "cases").then(|| root.join(split).join(cases).join(case))
}
