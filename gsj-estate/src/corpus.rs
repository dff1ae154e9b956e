//! A corpus that passed validation.

use crate::error::EstateError;
use crate::files;
use crate::identity::Identity;
use crate::validate;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A valid corpus: what stands in its files, pages aside, which are read when they are asked for.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// The corpus folder.
    pub root: PathBuf,
    /// Where the lock and the task bank are: the corpus folder, unless [`Self::with_lock_dir`] names another.
    pub lock_dir: PathBuf,
    /// What `corpus.yaml` says.
    pub settings: Settings,
    /// The bytes of `AGENTS.md`.
    pub agents_md: Vec<u8>,
    /// The bytes of each skill's card by skill name.
    pub skills: BTreeMap<String, Vec<u8>>,
    /// The cases of both splits by id.
    pub cases: BTreeMap<String, Case>,
}

/// What `corpus.yaml` says (`corpus.md` section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The corpus's name.
    pub name: String,
    /// The account that holds the repositories.
    pub owner: String,
    /// Where the repositories are served, without a slash at the end.
    pub base_url: String,
    /// Where the retrieval service is, without a slash at the end; `None` when there is none.
    pub mcp_url: Option<String>,
    /// Who commits, and when.
    pub identity: Identity,
    /// The image that is copied into every task.
    pub sandbox_image: String,
}

/// One of the two splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Split {
    /// For training.
    Train,
    /// For evaluation.
    Eval,
}

impl Split {
    /// The split's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "eval",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One growing document.
#[derive(Debug, Clone)]
pub struct Case {
    /// The case's id.
    pub id: String,
    /// The split that it stands in.
    pub split: Split,
    /// The title of `case.yaml`.
    pub title: Option<String>,
    /// The notes of `case.yaml`.
    pub notes: Option<String>,
    /// The pages of the full document, from page 1 on; the timestep T has the first T of them, byte for byte.
    pub pages: Vec<Page>,
    /// The timesteps by number, which is the number of their pages; at least one.
    pub timesteps: BTreeMap<u32, Timestep>,
}

impl Case {
    /// The number of pages of the full document.
    #[must_use]
    pub fn page_count(&self) -> u32 {
        self.timesteps.last_key_value().map_or(0, |(timestep, _)| *timestep)
    }

    /// The pages up to a timestep.
    #[must_use]
    pub fn pages_at(&self, timestep: u32) -> &[Page] {
        let count = usize::try_from(timestep).unwrap_or(usize::MAX).min(self.pages.len());
        &self.pages[..count]
    }
}

/// A case as it stood when one page was the last; its pages are [`Case::pages_at`].
#[derive(Debug, Clone)]
pub struct Timestep {
    /// The tasks asked at this timestep, in the file's order.
    pub prompts: Vec<Prompt>,
}

/// One page file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The page's number, from 1.
    pub number: u32,
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of its bytes as they were validated.
    pub sha256: [u8; 32],
}

impl Page {
    /// Reads the page's bytes, which are UTF-8.
    ///
    /// # Errors
    /// Fails when the file cannot be read or is no longer what was validated.
    pub fn read(&self) -> Result<Vec<u8>, EstateError> {
        let content = files::read(&self.path)?;
        if <[u8; 32]>::from(Sha256::digest(&content)) != self.sha256 {
            return Err(EstateError::Changed { path: self.path.clone() });
        }
        Ok(content)
    }
}

/// One task at a timestep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// `skill:NAME` or `free:SLUG`.
    pub id: String,
    /// What is asked.
    pub source: PromptSource,
}

/// What a prompt asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// What the card of a skill says.
    Skill {
        /// The skill's name.
        name: String,
    },
    /// A text of its own.
    Free {
        /// The text, byte for byte after YAML decoding.
        text: String,
    },
}

impl Corpus {
    /// Keeps lock and task bank in another folder, so that the corpus folder need not be written to.
    #[must_use]
    pub fn with_lock_dir(self, lock_dir: PathBuf) -> Self {
        Self { lock_dir, ..self }
    }

    /// Reads and validates a corpus.
    ///
    /// # Errors
    /// Fails when the folder is not there, cannot be read, or does not pass; then the error carries the report.
    pub fn read(root: &Path) -> Result<Self, EstateError> {
        Self::checked(root, None)
    }

    /// Reads and validates some cases of a corpus; faults inside other cases are not looked at.
    ///
    /// # Errors
    /// As [`Corpus::read`], and when the corpus has no fault and not all of these cases.
    pub fn read_only(root: &Path, only: &[String]) -> Result<Self, EstateError> {
        Self::checked(root, Some(only))
    }

    fn checked(root: &Path, only: Option<&[String]>) -> Result<Self, EstateError> {
        let (report, corpus) = validate::read(root, only)?;
        if let Some(corpus) = corpus.filter(|_| report.passed()) {
            return Ok(corpus);
        }
        let failed = report.failures().count();
        let first = report.failures().next().map(ToString::to_string).unwrap_or_default();
        Err(EstateError::Invalid { root: root.to_owned(), failed, first, report: Box::new(report) })
    }
}
