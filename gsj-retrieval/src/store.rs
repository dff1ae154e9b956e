//! The indexes of a corpus on disk: built beside the old, switched by one rename.
//!
//! A store is a folder: `index.json`, the manifest, and a file per case, whose name holds what it was made from and never
//! changes once it is there. Reading starts at the manifest, which is renamed into place last, so a store is what it was
//! before or what it will be, whenever a build is stopped.

use crate::RetrievalError;
use crate::index::CaseIndex;
use crate::progress::Progress;
use crate::source::{Head, Sources};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const MANIFEST: &str = "index.json";
const LOCK: &str = "lock";
const SUFFIX: &str = ".gsjcase";
/// Cases that are built at the same time, at most; each holds its pages and its index in memory.
const BUILDERS: usize = 4;

/// When an index that is there is used again (retrieval.md section 7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebuild {
    /// When its fingerprint is the one that the sources give now; else what changed is built anew.
    #[default]
    IfStale,
    /// Never: every case is built anew.
    Always,
    /// Always: one that is missing or stale is an error.
    Never,
}

/// What opening a store did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// The digest of all that determines an answer: code, parameters, and what each case was read from.
    pub fingerprint: String,
    /// Cases whose index was built.
    pub built: usize,
    /// Cases whose index was there.
    pub reused: usize,
    /// Why the index that was there was not used as it was, if there was one.
    pub stale: Option<String>,
}

/// One case, ready to be searched.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) index: CaseIndex,
    pub(crate) head: Head,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    fingerprint: String,
    cases: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The file's name.
    file: String,
    /// The SHA-256 of its bytes.
    sha256: String,
    #[serde(flatten)]
    head: Head,
}

/// What the code contributes to a fingerprint: it changes whenever an answer could.
pub(crate) fn code_digest() -> String {
    let mut hash = Sha256::new();
    for text in crate::index::CODE.iter().chain([&crate::text::CODE]) {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    hex::encode(hash.finalize())
}

pub(crate) fn fingerprint(code: &str, heads: &BTreeMap<String, Head>) -> String {
    let mut hash = Sha256::new();
    hash.update(serde_json::json!({"cases": heads, "code": code}).to_string());
    hex::encode(hash.finalize())
}

/// Opens the store in a folder for these sources, building what is missing or stale.
pub(crate) fn open(
    folder: &Path,
    sources: &Sources<'_>,
    rebuild: Rebuild,
    progress: &Progress,
) -> Result<(BTreeMap<String, Stored>, Opened), RetrievalError> {
    let heads = sources.heads()?;
    progress.begin(heads.len());
    let code = code_digest();
    let fingerprint = fingerprint(&code, &heads);
    let before = manifest(folder)?;
    let stale = match &before {
        None => None,
        Some(before) if before.fingerprint != fingerprint => {
            Some(format!("its fingerprint is {}, wanted is {fingerprint}", before.fingerprint))
        }
        // The fingerprint is a line of the manifest's own, so what else it says is compared too.
        Some(before) if before.cases.iter().map(|(id, entry)| (id, &entry.head)).ne(&heads) => {
            Some("its manifest says other than its fingerprint".to_owned())
        }
        Some(before) if rebuild != Rebuild::Always => match opened(folder, before) {
            Ok(cases) => {
                let reused = cases.len();
                progress.advance(reused);
                if rebuild != Rebuild::Never {
                    tidy_again(folder, before);
                }
                return Ok((cases, Opened { fingerprint, built: 0, reused, stale: None }));
            }
            Err(error) => Some(error.to_string()),
        },
        Some(_) => Some("a rebuild was asked for".to_owned()),
    };
    if rebuild == Rebuild::Never {
        let problem = stale.unwrap_or_else(|| "it isn't there".to_owned());
        return Err(RetrievalError::NotRebuilt { path: folder.to_owned(), problem });
    }
    fs::create_dir_all(folder).map_err(|source| written(folder, source))?;
    let _lock = lock(folder)?;
    let reusable = before.filter(|_| rebuild != Rebuild::Always).map(|before| before.cases).unwrap_or_default();
    let (entries, built) = build(folder, sources, &heads, &code, &reusable, progress)?;
    let manifest = Manifest { fingerprint: fingerprint.clone(), cases: entries };
    let cases = opened(folder, &manifest)?;
    write(&folder.join(MANIFEST), format!("{:#}\n", serde_json::json!(manifest)).as_bytes())?;
    tidy(folder, &manifest);
    let reused = cases.len() - built;
    Ok((cases, Opened { fingerprint, built, reused, stale }))
}

/// The manifest, unless there is none or it is no manifest of ours, which is as good as none.
fn manifest(folder: &Path) -> Result<Option<Manifest>, RetrievalError> {
    let path = folder.join(MANIFEST);
    match fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RetrievalError::Read { path, source }),
    }
}

/// Maps every case of a manifest, after its bytes were seen to be those that were written.
fn opened(folder: &Path, manifest: &Manifest) -> Result<BTreeMap<String, Stored>, RetrievalError> {
    let open = |entry: &Entry| {
        // A name with a separator would lead out of the store.
        if entry.file.contains('/') || !entry.file.ends_with(SUFFIX) {
            return Err(RetrievalError::NoIndex { path: folder.join(MANIFEST) });
        }
        let path = folder.join(&entry.file);
        if digest(&path)? != entry.sha256 {
            return Err(RetrievalError::NoIndex { path });
        }
        Ok(Stored { index: CaseIndex::open(&path)?, head: entry.head.clone() })
    };
    manifest.cases.iter().map(|(id, entry)| Ok((id.clone(), open(entry)?))).collect()
}

/// The SHA-256 of a file, read past the mapping so that its pages don't count as ours.
fn digest(path: &Path) -> Result<String, RetrievalError> {
    let failed = |source| RetrievalError::Read { path: path.to_owned(), source };
    let mut file = fs::File::open(path).map_err(failed)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// Brings a file for every case into the folder; tells what each is, and how many were built.
fn build(
    folder: &Path,
    sources: &Sources<'_>,
    heads: &BTreeMap<String, Head>,
    code: &str,
    reusable: &BTreeMap<String, Entry>,
    progress: &Progress,
) -> Result<(BTreeMap<String, Entry>, usize), RetrievalError> {
    let mut entries = BTreeMap::new();
    let mut wanted = Vec::new();
    for (id, head) in heads {
        let file = file_name(id, head, code);
        let there = reusable.get(id).filter(|entry| entry.file == file);
        match there.filter(|entry| digest(&folder.join(&file)).is_ok_and(|found| found == entry.sha256)) {
            Some(entry) => _ = entries.insert(id.clone(), Entry { head: head.clone(), ..entry.clone() }),
            None => wanted.push((id, head, file)),
        }
    }
    let built = wanted.len();
    progress.advance(entries.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(entries));
    let builders = std::thread::available_parallelism().map_or(1, usize::from).min(BUILDERS).min(built);
    std::thread::scope(|scope| {
        for _ in 0..builders {
            scope.spawn(|| {
                while let Some((id, head, file)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let entry = match progress.is_stopped() {
                        true => Err(RetrievalError::Stopped),
                        false => one(folder, sources, id, head, file),
                    };
                    // Nothing panics while the lock is held.
                    let Ok(mut done) = done.lock() else { return };
                    match (entry, done.as_mut()) {
                        (Ok(entry), Ok(entries)) => {
                            entries.insert((*id).clone(), entry);
                            progress.advance(1);
                        }
                        (Err(error), Ok(_)) => *done = Err(error),
                        (_, Err(_)) => return,
                    }
                }
            });
        }
    });
    Ok((done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?, built))
}

fn one(folder: &Path, sources: &Sources<'_>, id: &str, head: &Head, file: &str) -> Result<Entry, RetrievalError> {
    let index = CaseIndex::build(&sources.pages(id, head)?)?;
    write(&folder.join(file), index.as_bytes())?;
    let sha256 = hex::encode(Sha256::digest(index.as_bytes()));
    Ok(Entry { file: file.to_owned(), sha256, head: head.clone() })
}

/// `CASE.KEY.gsjcase`; the key is over the code and what the pages were read from.
fn file_name(id: &str, head: &Head, code: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{code}\n{}", head.pages_from));
    format!("{id}.{}{SUFFIX}", &hex::encode(hash.finalize())[..24])
}

/// One builder at a time; the lock goes with the process.
fn lock(folder: &Path) -> Result<fs::File, RetrievalError> {
    let path = folder.join(LOCK);
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| written(&path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(RetrievalError::Busy { path: folder.to_owned() }),
        Err(fs::TryLockError::Error(source)) => Err(written(&path, source)),
    }
}

/// Writes a file beside its place and renames it there.
fn write(path: &Path, content: &[u8]) -> Result<(), RetrievalError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let put = || {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(folder) => fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    put().map_err(|source| written(path, source))
}

fn written(path: &Path, source: io::Error) -> RetrievalError {
    RetrievalError::Write { path: path.to_owned(), source }
}

/// Removes what a build left that was stopped behind its switch, unless somebody builds just now.
fn tidy_again(folder: &Path, opened: &Manifest) {
    if let Ok(_lock) = lock(folder)
        && manifest(folder).is_ok_and(|there| there.as_ref() == Some(opened))
    {
        tidy(folder, opened);
    }
}

/// Removes the files of earlier builds. What can't be removed stays, and is tried again after the next build.
fn tidy(folder: &Path, manifest: &Manifest) {
    let kept: BTreeSet<&str> =
        manifest.cases.values().map(|entry| entry.file.as_str()).chain([MANIFEST, LOCK]).collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.ends_with(SUFFIX) || name.ends_with(".new"));
        if ours && !name.to_str().is_some_and(|name| kept.contains(name)) {
            drop(fs::remove_file(entry.path()));
        }
    }
}
