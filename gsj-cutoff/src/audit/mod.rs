//! What a checkout really holds: every object, ref, setting and file, read with distrust.

mod dot_git;
mod forbid;
mod walk;
mod worktree;

use crate::closure;
use crate::error::CutoffError;
use crate::evidence::{Evidence, ObjectSet, PageCensus, without_credentials};
use crate::names::shown;
use dot_git::DotGit;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use worktree::Worktree;

/// What the caller knows about a checkout, to be compared with what is there.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// The case, for the evidence.
    pub case_id: Option<String>,
    /// The last page that may be there; with it the checkout is judged as an episode's: one commit, shallow, on branch
    /// `timestep-T`, pages 1..T.
    pub timestep: Option<u32>,
    /// Where the repository is served, for the evidence; credentials in it are dropped.
    pub clone_url: Option<String>,
    /// The recipe of the repository, for the evidence.
    pub recipe: Option<String>,
    /// A repository none of whose objects may be here but those of the cut: commit, trees and files of its branch
    /// `timestep-T`; where it has none, the files of its `main` that are not later pages.
    pub forbid_from: Option<PathBuf>,
}

/// Something in a checkout that does not belong there, or that is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Leak {
    /// Where: a path within the checkout, or an object's id.
    #[serde(rename = "where")]
    pub where_: String,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.where_, self.what)
    }
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// What the checkout holds.
    pub evidence: Evidence,
    /// What does not belong there, in a fixed order; empty when all is well.
    pub leaks: Vec<Leak>,
}

/// Leaks as they are found, up to a number that is still worth reading.
#[derive(Debug, Default)]
pub(crate) struct Leaks {
    found: Vec<Leak>,
    more: usize,
}

impl Leaks {
    const MOST: usize = 500;

    pub(crate) fn add(&mut self, where_: impl Into<String>, what: impl Into<String>) {
        if self.found.len() < Self::MOST {
            self.found.push(Leak { where_: where_.into(), what: what.into() });
        } else {
            self.more += 1;
        }
    }

    fn into_sorted(mut self) -> Vec<Leak> {
        self.found.sort();
        self.found.dedup();
        if self.more > 0 {
            self.found.push(Leak { where_: "...".into(), what: format!("{} more findings", self.more) });
        }
        self.found
    }
}

/// Audits the checkout in `dir`.
///
/// Walks the object store itself, so that objects which no ref reaches are found; reads refs, settings, index and every
/// file under `.git` without following a link, an alternate or an include, and without running anything; compares the
/// working tree with the commit, byte for byte.
///
/// # Errors
/// Fails when there is no tip to audit: `.git` is no directory, HEAD names no readable commit, its tree cannot be read
/// or holds names that must not be written. Everything else is a leak in the result.
pub fn audit(dir: &Path, expectation: &Expectation) -> Result<Audit, CutoffError> {
    let mut leaks = Leaks::default();
    let mut git = DotGit::read(dir, &mut leaks)?;
    let commit = closure::read_commit(&mut git.objects, git.head)?;
    let tree = closure::read_tree(&mut git.objects, commit.tree)?;
    let history = closure::read_history(&mut git.objects, git.head, &git.shallow)?;

    for id in history.objects.iter().filter(|id| !git.objects.holds(id)) {
        leaks.add(id.to_string(), "object that HEAD reaches is missing");
    }
    for id in history.missing {
        leaks.add(id.to_string(), "parent commit is missing and no shallow boundary says so");
    }
    let ids: Vec<_> = git.objects.ids().copied().collect();
    // Commits and trees that HEAD reaches were read by the walk above.
    for (id, what) in git.objects.verify(|id| history.commits.contains(id) || history.trees.contains(id)) {
        leaks.add(id.to_string(), format!("object {id} {what}"));
    }
    for id in ids.iter().filter(|id| !history.objects.contains(*id)) {
        leaks.add(id.to_string(), "object that HEAD does not reach");
    }
    git.compare_index(&tree, &mut leaks);

    let worktree = Worktree::compare(dir, &tree, &mut leaks)?;
    if let Some(timestep) = expectation.timestep {
        judge_episode(timestep, &git, history.commits.len(), &tree.pages(), &worktree, &mut leaks);
    }
    if let Some(source) = &expectation.forbid_from {
        let cut = forbid::Cut { timestep: expectation.timestep, commit: git.head };
        forbid::compare(source, &cut, &ids, &worktree, &git.plain_files, &mut leaks)?;
    }

    let evidence = Evidence {
        clone_url: expectation.clone_url.as_deref().map(without_credentials),
        case_id: expectation.case_id.clone(),
        branch: git.branch.clone(),
        commit: git.head.to_string(),
        tree: commit.tree.to_string(),
        shallow: git.shallow.contains(&git.head),
        commits: history.commits.len() as u64,
        remotes: git.remotes,
        pages: PageCensus::of(&worktree.pages),
        recipe: expectation.recipe.clone(),
        objects: ObjectSet::of(ids.iter()),
        skill_cards: worktree.skill_cards,
    };
    Ok(Audit { evidence, leaks: leaks.into_sorted() })
}

/// The rules for an episode's checkout: one commit, marked as shallow, on its branch, pages 1..T here and in the tree.
fn judge_episode(
    timestep: u32,
    git: &DotGit,
    commits: usize,
    tree_pages: &BTreeSet<u32>,
    worktree: &Worktree,
    leaks: &mut Leaks,
) {
    let branch = format!("timestep-{timestep}");
    if git.branch.as_deref() != Some(&branch) {
        leaks.add(".git/HEAD", format!("HEAD is not on branch {branch}"));
    }
    if !git.shallow.contains(&git.head) {
        leaks.add(".git/shallow", "the commit of HEAD is not marked as shallow");
    }
    for id in git.shallow.iter().filter(|id| **id != git.head) {
        leaks.add(".git/shallow", format!("names another commit, {id}"));
    }
    if commits != 1 {
        leaks.add(".git", format!("{commits} commits can be reached, and one belongs here"));
    }
    let expected: BTreeSet<u32> = (1..=timestep).collect();
    for (where_, pages) in [("tree of HEAD", tree_pages), ("md", &worktree.pages)] {
        for page in pages.difference(&expected) {
            leaks.add(where_, format!("page {page} is not one of 1..{timestep}"));
        }
        if let Some(page) = expected.difference(pages).next() {
            let missing = expected.difference(pages).count();
            leaks.add(where_, format!("{missing} of the pages 1..{timestep} are missing, the first is {page}"));
        }
    }
    for (path, page) in &worktree.page_like {
        if *page > timestep {
            leaks.add(shown(path), format!("its name is that of page {page}, later than {timestep}"));
        }
    }
}
