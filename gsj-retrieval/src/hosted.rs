//! Case repositories behind a URL: in a folder of this machine, or on a git host and copied into a cache.

use crate::progress::Progress;
use crate::{RepoSource, RetrievalError};
use gsj_cutoff::{Credential, MirrorRequest, mirror};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Repositories that are copied at the same time, at most.
const AT_ONCE: usize = 4;

/// How the repositories of an estate were made (corpus.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// `CASE.full.git` holds the document, `CASE.git` the timesteps.
    Sealed,
    /// `CASE.git` holds both.
    Reference,
}

/// The repositories of an estate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hosted {
    /// `file:///FOLDER`, `https://HOST` or `http://HOST`, without a slash at the end.
    pub base_url: String,
    /// The folder below it, where there is one.
    pub owner: Option<String>,
    /// The cases, which are the repositories' names.
    pub repos: Vec<String>,
    /// The branch with all pages.
    pub ref_main: String,
    /// How the branch of a timestep is called, with `{T}` for its number.
    pub ref_pattern: String,
    /// How they were made. Absent: in a folder, whatever is there; on a host, as the reference does.
    pub layout: Option<Layout>,
    /// How they are copied; needed for a host only.
    pub mirrors: Option<Mirrors>,
}

/// A cache of repositories of git hosts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Mirrors {
    /// The folder, one bare repository for each copied one.
    pub cache: PathBuf,
    /// What the host asks for, if it does.
    pub credential: Option<Credential>,
    /// The git program; a name alone is looked for in the system's default folders.
    pub git: PathBuf,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
}

impl Mirrors {
    /// A cache in a folder, for hosts that ask for nothing.
    #[must_use]
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), credential: None, git: PathBuf::from("git"), certificates: None }
    }

    /// Brings the copies of repositories up to date, a few at a time, and says where each is: `CACHE/NAME`, in the order
    /// asked for.
    ///
    /// # Errors
    /// Says what git said of the first that failed, without the credential; what was there before stays there.
    pub fn bring(&self, wanted: &[Wanted], progress: &Progress) -> Result<Vec<PathBuf>, RetrievalError> {
        fs::create_dir_all(&self.cache).map_err(|source| RetrievalError::Write { path: self.cache.clone(), source })?;
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(wanted.len()) {
                scope.spawn(|| {
                    while let Some(one) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = self.one(one, progress) {
                            // The others need not begin.
                            next.store(wanted.len(), Ordering::Relaxed);
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        }
                    }
                });
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(wanted.iter().map(|one| self.cache.join(&one.name)).collect()),
        }
    }

    fn one(&self, wanted: &Wanted, progress: &Progress) -> Result<(), RetrievalError> {
        if progress.is_stopped() {
            return Err(RetrievalError::Stopped);
        }
        let request = MirrorRequest {
            url: &wanted.url,
            credential: self.credential.as_ref(),
            program: &self.git,
            certificates: self.certificates.as_deref(),
            into: &self.cache.join(&wanted.name),
            stop: &|| progress.is_stopped(),
        };
        mirror(&request)
            .map_err(|error| RetrievalError::Fetch { case_id: wanted.case_id.clone(), source: Box::new(error) })
    }
}

/// A repository of a host that is to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The case, for messages.
    pub case_id: String,
    /// Where it is.
    pub url: String,
    /// How its copy is called in the cache.
    pub name: String,
}

impl Hosted {
    /// An estate as the reference makes one.
    #[must_use]
    pub fn new(base_url: impl Into<String>, repos: Vec<String>) -> Self {
        let of = RepoSource::new("", "");
        let (ref_main, ref_pattern) = (of.ref_main, of.ref_pattern);
        Self { base_url: base_url.into(), owner: None, repos, ref_main, ref_pattern, layout: None, mirrors: None }
    }

    /// Finds the repositories of a folder, or copies those of a host.
    ///
    /// # Errors
    /// Names the case whose repository cannot be copied, or the lack of a place for copies.
    pub fn sources(&self, progress: &Progress) -> Result<Vec<RepoSource>, RetrievalError> {
        let folder = match (self.folder(), &self.mirrors) {
            (Some(folder), _) => folder,
            (None, Some(mirrors)) => {
                let wanted: Vec<Wanted> = self.repos.iter().flat_map(|case| self.wanted(case)).collect();
                mirrors.bring(&wanted, progress)?;
                mirrors.cache.clone()
            }
            (None, None) => return Err(RetrievalError::NoCache { url: self.base_url.clone() }),
        };
        Ok(self.repos.iter().map(|case| self.source(case, &folder)).collect())
    }

    /// The folder of this machine, when the estate is in one.
    fn folder(&self) -> Option<PathBuf> {
        let root = Path::new(self.base_url.strip_prefix("file://")?);
        Some(self.owner.as_ref().map_or_else(|| root.to_owned(), |owner| root.join(owner)))
    }

    /// What is copied of a case.
    fn wanted(&self, case_id: &str) -> Vec<Wanted> {
        let owner = self.owner.as_ref().map(|owner| format!("{owner}/")).unwrap_or_default();
        let base = self.base_url.trim_end_matches('/');
        let one = |name: String| Wanted { case_id: case_id.to_owned(), url: format!("{base}/{owner}{name}"), name };
        let names = match self.layout {
            Some(Layout::Sealed) => vec![full(case_id), plain(case_id)],
            _ => vec![plain(case_id)],
        };
        names.into_iter().map(one).collect()
    }

    fn source(&self, case_id: &str, folder: &Path) -> RepoSource {
        let (plain, full) = (folder.join(plain(case_id)), folder.join(full(case_id)));
        let sealed = match self.layout {
            Some(layout) => layout == Layout::Sealed,
            // What an earlier configuration left in a cache says nothing.
            None => self.folder().is_some() && full.join("HEAD").is_file(),
        };
        let (document, timesteps) = if sealed { (full, Some(plain)) } else { (plain, None) };
        let mut source = RepoSource::new(case_id, document);
        source.timesteps_from = timesteps;
        source.ref_main.clone_from(&self.ref_main);
        source.ref_pattern.clone_from(&self.ref_pattern);
        source
    }
}

fn plain(case_id: &str) -> String {
    format!("{case_id}.git")
}

fn full(case_id: &str) -> String {
    format!("{case_id}.full.git")
}
