//! Case repositories behind a URL: in a folder of this machine, or on a git host and copied into a cache.

use crate::progress::Progress;
use crate::{RepoSource, RetrievalError};
use gsj_cutoff::{Credential, MirrorRequest, mirror};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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

    /// Brings the copy of a repository up to date, and says where it is: `CACHE/NAME`.
    ///
    /// # Errors
    /// Says what git said, without the credential; what was there before stays there.
    pub fn bring(&self, case_id: &str, url: &str, name: &str, progress: &Progress) -> Result<PathBuf, RetrievalError> {
        fs::create_dir_all(&self.cache).map_err(|source| RetrievalError::Write { path: self.cache.clone(), source })?;
        let into = self.cache.join(name);
        let request = MirrorRequest {
            url,
            credential: self.credential.as_ref(),
            program: &self.git,
            certificates: self.certificates.as_deref(),
            into: &into,
            stop: &|| progress.is_stopped(),
        };
        mirror(&request)
            .map_err(|error| RetrievalError::Fetch { case_id: case_id.to_owned(), source: Box::new(error) })?;
        Ok(into)
    }
}

impl Hosted {
    /// An estate as the reference makes one.
    #[must_use]
    pub fn new(base_url: impl Into<String>, repos: Vec<String>) -> Self {
        let of = RepoSource::new("", "");
        let (ref_main, ref_pattern) = (of.ref_main, of.ref_pattern);
        Self { base_url: base_url.into(), owner: None, repos, ref_main, ref_pattern, layout: None, mirrors: None }
    }

    /// Finds the repositories of a folder, or copies those of a host, a few at a time.
    ///
    /// # Errors
    /// Names the case whose repository is not there or cannot be copied.
    pub fn sources(&self, progress: &Progress) -> Result<Vec<RepoSource>, RetrievalError> {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Ok(Vec::with_capacity(self.repos.len()))));
        let workers = if self.folder().is_some() { 1 } else { AT_ONCE.min(self.repos.len()) };
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(name) = self.repos.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let source = if progress.is_stopped() {
                            Err(RetrievalError::Stopped)
                        } else {
                            self.source(name, progress)
                        };
                        // Nothing panics while the lock is held.
                        let Ok(mut found) = found.lock() else { return };
                        match (source, found.as_mut()) {
                            (Ok(source), Ok(sources)) => sources.push(source),
                            (Err(error), Ok(_)) => *found = Err(error),
                            (_, Err(_)) => return,
                        }
                    }
                });
            }
        });
        let mut sources = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        sources.sort_by(|a, b| a.case_id.cmp(&b.case_id));
        Ok(sources)
    }

    /// The folder of this machine, when the estate is in one.
    fn folder(&self) -> Option<PathBuf> {
        let root = Path::new(self.base_url.strip_prefix("file://")?);
        Some(self.owner.as_ref().map_or_else(|| root.to_owned(), |owner| root.join(owner)))
    }

    fn source(&self, case_id: &str, progress: &Progress) -> Result<RepoSource, RetrievalError> {
        let (plain, full) = (format!("{case_id}.git"), format!("{case_id}.full.git"));
        let (document, timesteps) = match self.folder() {
            Some(folder) => {
                let (plain, full) = (folder.join(plain), folder.join(full));
                let sealed = match self.layout {
                    Some(layout) => layout == Layout::Sealed,
                    None => full.join("HEAD").is_file(),
                };
                if sealed { (full, Some(plain)) } else { (plain, None) }
            }
            None => {
                let Some(mirrors) = &self.mirrors else {
                    return Err(RetrievalError::NoCache { url: self.base_url.clone() });
                };
                let owner = self.owner.as_ref().map(|owner| format!("{owner}/")).unwrap_or_default();
                let bring = |name: &str| {
                    let url = format!("{}/{owner}{name}", self.base_url.trim_end_matches('/'));
                    mirrors.bring(case_id, &url, name, progress)
                };
                match self.layout {
                    Some(Layout::Sealed) => (bring(&full)?, Some(bring(&plain)?)),
                    _ => (bring(&plain)?, None),
                }
            }
        };
        let mut source = RepoSource::new(case_id, document);
        source.timesteps_from = timesteps;
        source.ref_main.clone_from(&self.ref_main);
        source.ref_pattern.clone_from(&self.ref_pattern);
        Ok(source)
    }
}
