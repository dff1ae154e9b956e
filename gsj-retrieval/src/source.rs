//! Where pages come from: a corpus folder, or bare repositories read by object.

use crate::RetrievalError;
use crate::bytes;
use crate::library::LISTED_CASES;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The placeholder for a timestep in the name of its branch.
pub(crate) const TIMESTEP: &str = "{T}";

/// One case's bare repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepoSource {
    /// The case's id.
    pub case_id: String,
    /// The bare repository that holds the whole document (under the sealed recipe `CASE.full.git`).
    pub path: PathBuf,
    /// The branch with all pages (`main`).
    pub ref_main: String,
    /// The bare repository whose branches are the recorded timesteps (under the sealed recipe `CASE.git`); absent: `path`.
    pub timesteps_from: Option<PathBuf>,
    /// How the branch of a timestep is called, with `{T}` for its number (`timestep-{T}`).
    pub ref_pattern: String,
}

impl RepoSource {
    /// A case whose repository holds document and timesteps under their usual names.
    #[must_use]
    pub fn new(case_id: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            case_id: case_id.into(),
            path: path.into(),
            ref_main: "main".to_owned(),
            timesteps_from: None,
            ref_pattern: format!("timestep-{TIMESTEP}"),
        }
    }
}

/// Where the cases of a library come from.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Sources<'a> {
    /// A corpus folder, each case at its largest timestep.
    Corpus(&'a Path),
    /// Bare repositories.
    Repos(&'a [RepoSource]),
}

/// What a case is made from, without its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// What determines the pages: the id of the commit that holds them, or a digest over them.
    pub(crate) pages_from: String,
    /// The recorded timesteps, ascending.
    pub(crate) timesteps: Vec<u32>,
    /// The commit, for a case from a repository.
    pub(crate) commit: Option<String>,
    /// The heads of the timesteps' branches, for a case from a repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) branches: BTreeMap<String, String>,
}

impl Head {
    /// Of pages that stand in no repository.
    pub(crate) fn of_pages(pages: &[String], timesteps: Vec<u32>) -> Self {
        let mut hash = Sha256::new();
        for page in pages {
            hash.update(page.len().to_le_bytes());
            hash.update(page.as_bytes());
        }
        Self { pages_from: hex::encode(hash.finalize()), timesteps, commit: None, branches: BTreeMap::new() }
    }
}

impl Sources<'_> {
    /// What each case is made from.
    pub(crate) fn heads(&self) -> Result<BTreeMap<String, Head>, RetrievalError> {
        match self {
            Self::Corpus(root) => Ok(corpus_dir(root)?.into_iter().map(|(id, read)| (id, read.head)).collect()),
            Self::Repos(repos) => {
                let mut heads = BTreeMap::new();
                for repo in *repos {
                    if heads.insert(repo.case_id.clone(), Repository::open(repo)?.head()?).is_some() {
                        return Err(RetrievalError::DuplicateCase { case_id: repo.case_id.clone() });
                    }
                }
                Ok(heads)
            }
        }
    }

    /// Reads the pages of one case as its head says, whatever was pushed since.
    pub(crate) fn pages(&self, case_id: &str, head: &Head) -> Result<Vec<String>, RetrievalError> {
        match self {
            Self::Corpus(root) => {
                let folders = SPLITS.iter().map(|split| root.join(split).join("cases").join(case_id));
                let Some(path) = folders.into_iter().find(|path| path.is_dir()) else {
                    return Err(RetrievalError::NoCases { path: (*root).to_owned() });
                };
                let read = case_dir(case_id, &path)?;
                if read.head.pages_from != head.pages_from {
                    return Err(RetrievalError::Changed { case_id: case_id.to_owned() });
                }
                Ok(read.pages)
            }
            Self::Repos(repos) => match repos.iter().find(|repo| repo.case_id == case_id) {
                Some(repo) => Repository::open(repo)?.pages(&head.pages_from),
                None => Err(RetrievalError::UnknownCase {
                    case_id: case_id.to_owned(),
                    known: repos.iter().take(LISTED_CASES).map(|repo| repo.case_id.clone()).collect(),
                    cases: repos.len(),
                }),
            },
        }
    }
}

/// What was read of one case.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) pages: Vec<String>,
    pub(crate) head: Head,
}

const SPLITS: [&str; 2] = ["train", "eval"];

/// Pages as they are collected: number to bytes.
type Collected = BTreeMap<u32, Vec<u8>>;

/// Reads every case below `ROOT/{train,eval}/cases`, each at its largest timestep.
pub(crate) fn corpus_dir(root: &Path) -> Result<BTreeMap<String, Read>, RetrievalError> {
    let mut cases = BTreeMap::new();
    for split in SPLITS {
        let folder = root.join(split).join("cases");
        if !folder.is_dir() {
            continue;
        }
        for (case_id, path) in children(&folder)? {
            if !path.is_dir() || case_id.starts_with('.') {
                continue;
            }
            let read = case_dir(&case_id, &path)?;
            if cases.insert(case_id.clone(), read).is_some() {
                return Err(RetrievalError::DuplicateCase { case_id });
            }
        }
    }
    if cases.is_empty() {
        return Err(RetrievalError::NoCases { path: root.to_owned() });
    }
    Ok(cases)
}

fn case_dir(case_id: &str, path: &Path) -> Result<Read, RetrievalError> {
    let mut timesteps = BTreeSet::new();
    for (name, child) in children(path)? {
        if let Some(number) = name.strip_prefix("timestep-").and_then(plain_number)
            && child.is_dir()
        {
            timesteps.insert(number);
        }
    }
    let Some(last) = timesteps.last().copied() else {
        return Err(RetrievalError::NoTimestep { path: path.to_owned() });
    };
    let folder = path.join(format!("timestep-{last}")).join("pages");
    let origin = folder.display().to_string();
    let mut collected = Collected::new();
    for (name, file) in children(&folder)? {
        if let Some(number) = page_number(&name) {
            let bytes = bytes::read(&file).map_err(|source| RetrievalError::Read { path: file, source })?;
            collected.insert(number, bytes);
        }
    }
    let pages = in_order(case_id, &origin, collected)?;
    if u32::try_from(pages.len()).ok() != Some(last) {
        let problem = format!("timestep-{last} holds {} pages", pages.len());
        return Err(RetrievalError::Pages { case_id: case_id.to_owned(), problem, origin });
    }
    let head = Head::of_pages(&pages, timesteps.into_iter().collect());
    Ok(Read { pages, head })
}

/// The entries of a folder whose names are UTF-8, by name.
fn children(folder: &Path) -> Result<BTreeMap<String, PathBuf>, RetrievalError> {
    let failed = |source| RetrievalError::Read { path: folder.to_owned(), source };
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string() {
            found.insert(name, entry.path());
        }
    }
    Ok(found)
}

/// Reads the pages of a case from its branch, object by object; nothing is checked out.
pub(crate) fn repository(source: &RepoSource) -> Result<Read, RetrievalError> {
    let repository = Repository::open(source)?;
    let head = repository.head()?;
    Ok(Read { pages: repository.pages(&head.pages_from)?, head })
}

/// An open repository of a case.
struct Repository<'a> {
    source: &'a RepoSource,
    repo: gix::Repository,
}

impl<'a> Repository<'a> {
    fn open(source: &'a RepoSource) -> Result<Self, RetrievalError> {
        Ok(Self { source, repo: bare(source, &source.path)? })
    }

    fn head(&self) -> Result<Head, RetrievalError> {
        let branch = &self.source.ref_main;
        let main = self
            .repo
            .find_reference(format!("refs/heads/{branch}").as_str())
            .map_err(|error| failed(self.source, &format!("find branch `{branch}`"), error))?
            .peel_to_commit()
            .map_err(|error| failed(self.source, "read the branch's commit", error))?;
        let commit = main.id.to_string();
        let branches = match &self.source.timesteps_from {
            Some(path) => timesteps(self.source, &bare(self.source, path)?)?,
            None => timesteps(self.source, &self.repo)?,
        };
        let (timesteps, branches): (BTreeSet<u32>, BTreeMap<String, String>) =
            branches.into_iter().map(|(timestep, name, id)| (timestep, (name, id))).unzip();
        let timesteps = timesteps.into_iter().collect();
        Ok(Head { pages_from: commit.clone(), timesteps, commit: Some(commit), branches })
    }

    /// The pages that a commit holds.
    fn pages(&self, commit: &str) -> Result<Vec<String>, RetrievalError> {
        let source = self.source;
        let id = gix::ObjectId::from_hex(commit.as_bytes()).map_err(|error| failed(source, "read an id", error))?;
        let commit = self.repo.find_commit(id).map_err(|error| failed(source, "find the branch's commit", error))?;
        let tree = commit.tree().map_err(|error| failed(source, "read the branch's tree", error))?;
        let mut collected = Collected::new();
        let folder = tree.lookup_entry_by_path("md").map_err(|error| failed(source, "look up `md`", error))?;
        if let Some(folder) = folder.filter(|entry| entry.mode().is_tree()) {
            let pages = folder.object().map_err(|error| failed(source, "read `md`", error))?.into_tree();
            for entry in pages.iter() {
                let entry = entry.map_err(|error| failed(source, "decode `md`", error))?;
                let number = std::str::from_utf8(entry.filename()).ok().and_then(page_number);
                if let Some(number) = number.filter(|_| entry.mode().is_blob()) {
                    let blob = entry.object().map_err(|error| failed(source, "read a page", error))?;
                    collected.insert(number, blob.detach().data);
                }
            }
        }
        let origin = format!("branch `{}` of `{}`", source.ref_main, source.path.display());
        in_order(&source.case_id, &origin, collected)
    }
}

fn bare(source: &RepoSource, path: &Path) -> Result<gix::Repository, RetrievalError> {
    gix::open_opts(path, gix::open::Options::isolated().open_path_as_is(true)).map_err(|error| RetrievalError::Git {
        case_id: source.case_id.clone(),
        path: path.to_owned(),
        doing: "open".to_owned(),
        source: error.into(),
    })
}

/// The branches that are timesteps: number, name and head of each.
fn timesteps(source: &RepoSource, repo: &gix::Repository) -> Result<Vec<(u32, String, String)>, RetrievalError> {
    let failed = |error: Box<dyn Error + Send + Sync>| failed(source, "list branches", error);
    let Some((before, after)) = source.ref_pattern.split_once(TIMESTEP) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let references = repo.references().map_err(|error| failed(error.into()))?;
    for reference in references.local_branches().map_err(|error| failed(error.into()))? {
        let reference = reference.map_err(|error| failed(error.into()))?;
        let name = reference.name().shorten().to_string();
        let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).and_then(plain_number);
        // A symbolic branch has no commit of its own.
        if let (Some(timestep), Some(id)) = (number, reference.try_id()) {
            found.push((timestep, name, id.to_string()));
        }
    }
    Ok(found)
}

fn failed(source: &RepoSource, doing: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> RetrievalError {
    RetrievalError::Git {
        case_id: source.case_id.clone(),
        path: source.path.clone(),
        doing: doing.to_owned(),
        source: error.into(),
    }
}

/// Checks that the numbers are 1..N and the bytes UTF-8, and gives the texts in order.
pub(crate) fn in_order(case_id: &str, origin: &str, collected: Collected) -> Result<Vec<String>, RetrievalError> {
    let gap =
        |problem: String| RetrievalError::Pages { case_id: case_id.to_owned(), problem, origin: origin.to_owned() };
    if collected.is_empty() {
        return Err(gap("there are no pages".into()));
    }
    (1_u32..)
        .zip(collected)
        .map(|(expected, (number, bytes))| {
            if number != expected {
                return Err(gap(format!("page {expected} is missing")));
            }
            String::from_utf8(bytes).map_err(|_| RetrievalError::Utf8 {
                case_id: case_id.to_owned(),
                page: number,
                origin: origin.to_owned(),
            })
        })
        .collect()
}

/// The number in `page_NNNN.md`: four ASCII digits, not all zero.
fn page_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("page_")?.strip_suffix(".md")?;
    let plain = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number > 0)
}

/// A decimal number from 1 without sign and leading zeros.
fn plain_number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_name_form_is_a_page() {
        assert_eq!(page_number("page_0012.md"), Some(12));
        for name in [
            "page_0000.md",
            "page_12.md",
            "page_00012.md",
            "page_+012.md",
            "page_٠٠٠١.md",
            "page_0001.md\n",
            "Page_0001.md",
        ] {
            assert_eq!(page_number(name), None, "{name:?}");
        }
    }

    #[test]
    fn only_plain_numbers_are_timesteps() {
        assert_eq!(plain_number("10"), Some(10));
        for text in ["", "0", "01", "+1", "1 ", "٣", "99999999999"] {
            assert_eq!(plain_number(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_gap_and_bad_bytes_are_named() {
        let pages = |numbers: &[u32]| numbers.iter().map(|number| (*number, b"x".to_vec())).collect::<Collected>();
        let error = in_order("c", "here", pages(&[1, 3])).expect_err("gap");
        assert!(error.to_string().contains("page 2 is missing"), "{error}");
        assert!(in_order("c", "here", pages(&[2])).is_err(), "must begin at 1");
        assert!(in_order("c", "here", Collected::new()).is_err());
        let error = in_order("c", "here", BTreeMap::from([(1, vec![0xff])])).expect_err("not UTF-8");
        assert!(error.to_string().contains("page 1 is not valid UTF-8"), "{error}");
        assert_eq!(in_order("c", "here", BTreeMap::from([(1, b"a\r\nb\r".to_vec())])).expect("text"), ["a\r\nb\r"]);
    }
}
