//! The indexes of a corpus on disk: built beside the old, switched by one rename.
//!
//! A store is a folder: `index.json`, the manifest, and a file per case, whose name holds what it was made from and never
//! changes once it is there. Reading starts at the manifest, which is renamed into place last, so a store is what it was
//! before or what it will be, whenever a build is stopped.

mod embedded;

use crate::RetrievalError;
use crate::bytes;
use crate::embed::{Embedder, Session};
use crate::index::CaseIndex;
use crate::progress::Progress;
use crate::source::{Head, Sources};
use crate::vectors::{Digest, Vectors};
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
    pub(crate) vectors: Option<Vectors>,
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
    /// The name of the file with its vectors, which holds a sum of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vectors: Option<String>,
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

pub(crate) fn fingerprint(code: &str, heads: &BTreeMap<String, Head>, embedding: Option<Digest>) -> String {
    let mut determines = serde_json::json!({"cases": heads, "code": code});
    if let Some(embedding) = embedding {
        determines["embedding"] = format!("{}{}", hex::encode(embedding), crate::index::FUSE_CODE).into();
    }
    hex::encode(Sha256::digest(determines.to_string()))
}

/// Opens the store in a folder for these sources, building what is missing or stale.
pub(crate) fn open(
    folder: &Path,
    sources: &Sources<'_>,
    rebuild: Rebuild,
    progress: &Progress,
    embedder: Option<&Embedder>,
) -> Result<(BTreeMap<String, Stored>, Opened), RetrievalError> {
    let heads = sources.heads()?;
    progress.begin(heads.len());
    let code = code_digest();
    let fingerprint = fingerprint(&code, &heads, embedder.map(Embedder::identity));
    let before = manifest(folder)?;
    let stale = match &before {
        None => None,
        Some(before) if before.fingerprint != fingerprint => {
            Some(format!("its fingerprint is {}, wanted is {fingerprint}", before.fingerprint))
        }
        // The fingerprint is a line of the manifest's own, so what else it says is compared too.
        Some(before)
            if before.cases.iter().map(|(id, entry)| (id, &entry.head)).ne(&heads)
                || before.cases.iter().any(|(id, entry)| entry.file != file_name(id, &entry.head, &code))
                || !embedded::are_named(before, embedder) =>
        {
            Some("its manifest says other than its fingerprint".to_owned())
        }
        Some(before) if rebuild != Rebuild::Always => match opened(folder, before) {
            Ok(cases) => {
                let reused = cases.len();
                progress.advance(reused);
                if rebuild != Rebuild::Never {
                    tidy_again(folder, before, embedder.is_some());
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
    let session = embedder.map(Session::new).transpose()?;
    let work = Work { folder, sources, code: &code, session: session.as_ref(), rebuild, progress };
    let (entries, built) = work.all(&heads, &reusable)?;
    let manifest = Manifest { fingerprint: fingerprint.clone(), cases: entries };
    let cases = opened(folder, &manifest)?;
    write(&folder.join(MANIFEST), format!("{:#}\n", serde_json::json!(manifest)).as_bytes())?;
    tidy(folder, &manifest, embedder.is_some());
    let reused = cases.len() - built;
    Ok((cases, Opened { fingerprint, built, reused, stale }))
}

/// The manifest, unless there is none or it is no manifest of ours, which is as good as none.
fn manifest(folder: &Path) -> Result<Option<Manifest>, RetrievalError> {
    let path = folder.join(MANIFEST);
    match bytes::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(None),
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
        let index = CaseIndex::open(&path)?;
        let vectors = match &entry.vectors {
            None => None,
            Some(file) if file.contains('/') => return Err(RetrievalError::NoIndex { path: folder.join(MANIFEST) }),
            Some(file) => Some(embedded::opened(&folder.join(file), index.page_count())?),
        };
        Ok(Stored { index, vectors, head: entry.head.clone() })
    };
    manifest.cases.iter().map(|(id, entry)| Ok((id.clone(), open(entry)?))).collect()
}

/// The SHA-256 of a file, read past the mapping so that its pages don't count as ours.
fn digest(path: &Path) -> Result<String, RetrievalError> {
    let failed = |source| RetrievalError::Read { path: path.to_owned(), source };
    let mut file = bytes::open(path).map_err(failed)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// What building goes by.
#[derive(Clone, Copy)]
struct Work<'a> {
    folder: &'a Path,
    sources: &'a Sources<'a>,
    code: &'a str,
    session: Option<&'a Session<'a>>,
    rebuild: Rebuild,
    progress: &'a Progress,
}

/// A case of which something is missing.
struct Wanted<'a> {
    id: &'a String,
    head: &'a Head,
    /// Its index, when that is there.
    index: Option<&'a Entry>,
}

impl Work<'_> {
    /// Brings the files of every case into the folder; tells what each is, and how many cases had something built.
    fn all(
        &self,
        heads: &BTreeMap<String, Head>,
        reusable: &BTreeMap<String, Entry>,
    ) -> Result<(BTreeMap<String, Entry>, usize), RetrievalError> {
        let mut entries = BTreeMap::new();
        let mut wanted = Vec::new();
        for (id, head) in heads {
            let file = file_name(id, head, self.code);
            let index = reusable.get(id).filter(|entry| entry.file == file);
            let index = index.filter(|entry| digest(&self.folder.join(&file)).is_ok_and(|found| found == entry.sha256));
            let vectors = self.session.map(|session| embedded::file_name(id, head, session.identity()));
            match index.filter(|entry| vectors.as_ref().is_none_or(|file| self.has_vectors(entry, file))) {
                Some(entry) => _ = entries.insert(id.clone(), Entry { head: head.clone(), vectors, ..entry.clone() }),
                None => wanted.push(Wanted { id, head, index }),
            }
        }
        let built = wanted.len();
        self.progress.advance(entries.len());
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Ok(entries));
        let builders = std::thread::available_parallelism().map_or(1, usize::from).min(BUILDERS).min(built);
        std::thread::scope(|scope| {
            for _ in 0..builders {
                scope.spawn(|| {
                    while let Some(wanted) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let entry = match self.progress.is_stopped() {
                            true => Err(RetrievalError::Stopped),
                            false => self.one(wanted),
                        };
                        // Nothing panics while the lock is held.
                        let Ok(mut done) = done.lock() else { return };
                        match (entry, done.as_mut()) {
                            (Ok(entry), Ok(entries)) => {
                                entries.insert(wanted.id.clone(), entry);
                                self.progress.advance(1);
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

    fn has_vectors(&self, entry: &Entry, file: &str) -> bool {
        let pages = || CaseIndex::open(&self.folder.join(&entry.file)).map(|index| index.page_count());
        entry.vectors.as_deref() == Some(file)
            && pages().and_then(|pages| embedded::opened(&self.folder.join(file), pages)).is_ok()
    }

    fn one(&self, wanted: &Wanted<'_>) -> Result<Entry, RetrievalError> {
        let Wanted { id, head, index } = *wanted;
        let pages = self.sources.pages(id, head)?;
        let mut entry = match index {
            Some(entry) => Entry { head: head.clone(), vectors: None, ..entry.clone() },
            None => {
                let file = file_name(id, head, self.code);
                let index = CaseIndex::build(&pages)?;
                write(&self.folder.join(&file), index.as_bytes())?;
                let sha256 = hex::encode(Sha256::digest(index.as_bytes()));
                Entry { file, sha256, vectors: None, head: head.clone() }
            }
        };
        if let Some(session) = self.session {
            let file = embedded::file_name(id, head, session.identity());
            let how = (session, self.rebuild == Rebuild::Always);
            embedded::build(self.folder, id, &pages, &file, how, self.progress)?;
            entry.vectors = Some(file);
        }
        Ok(entry)
    }
}

/// `CASE.KEY.gsjcase`; the key is over the code and what the pages were read from.
fn file_name(id: &str, head: &Head, code: &str) -> String {
    name_of(id, &format!("{code}\n{}", head.pages_from), SUFFIX)
}

fn name_of(id: &str, made_from: &str, suffix: &str) -> String {
    let key = hex::encode(Sha256::digest(made_from));
    format!("{id}.{}{suffix}", key.get(..24).unwrap_or(&key))
}

/// One builder at a time; the lock goes with the process.
fn lock(folder: &Path) -> Result<fs::File, RetrievalError> {
    let path = folder.join(LOCK);
    match bytes::plain(&path) {
        Err(source) if source.kind() == io::ErrorKind::InvalidInput => return Err(written(&path, source)),
        _ => {}
    }
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
fn tidy_again(folder: &Path, opened: &Manifest, vectors: bool) {
    if let Ok(_lock) = lock(folder)
        && manifest(folder).is_ok_and(|there| there.as_ref() == Some(opened))
    {
        tidy(folder, opened, vectors);
    }
}

/// Removes the files of earlier builds; vectors, which cost more, only where there are newer ones. What can't be removed
/// stays, and is tried again after the next build.
fn tidy(folder: &Path, manifest: &Manifest, vectors: bool) {
    let files = manifest.cases.values().flat_map(|entry| [Some(entry.file.as_str()), entry.vectors.as_deref()]);
    let kept: BTreeSet<&str> = files.flatten().chain([MANIFEST, LOCK]).collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| {
            name.ends_with(SUFFIX) || name.ends_with(".new") || (vectors && name.ends_with(embedded::SUFFIX))
        });
        if ours && !name.to_str().is_some_and(|name| kept.contains(name)) {
            drop(fs::remove_file(entry.path()));
        }
    }
}
