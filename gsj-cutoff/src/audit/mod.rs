//! What a checkout really holds: every object, ref, setting and file, read with distrust.

mod dot_git;
mod forbid;
mod reach;
mod stray;
pub(crate) mod walk;
mod worktree;

use crate::closure;
use crate::error::CutoffError;
use crate::evidence::{Evidence, History, LaterDated, ObjectSet, PageCensus, without_credentials};
use crate::names::shown;
use dot_git::DotGit;
use gix::ObjectId;
use reach::Reached;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
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
    /// The commit that HEAD must be at, in hex.
    pub commit: Option<String>,
    /// How much of the past belongs here: all of it and no shallow boundary, or so many commits and a boundary at the
    /// last ones.
    pub history: Option<History>,
    /// The date of the cut, in seconds since 1970: reachable commits that say they are later are told in
    /// [`Audit::later_dated`]. They are no leaks, as clocks differ.
    pub not_after: Option<i64>,
    /// Where the repository is served, for the evidence; credentials in it are dropped.
    pub clone_url: Option<String>,
    /// The recipe of the repository, for the evidence.
    pub recipe: Option<String>,
    /// A repository none of whose objects may be here but those of the cut: commit, trees and files of its branch
    /// `timestep-T`; where it has none, the files of its `main` that are not later pages. Without a timestep the cut is
    /// what HEAD reaches, up to the shallow boundary.
    pub forbid_from: Option<PathBuf>,
    /// How many bytes the objects may inflate to in all, deltas on the way included; with more the audit fails. By
    /// default 8 GiB and 64 for each byte of a pack, which a few kilobytes made for it can exceed by far, and honestly
    /// only a large file with a very long history. Say how much is honest where that is known to be so.
    pub most_inflated: Option<u64>,
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
    /// Commits later than [`Expectation::not_after`] among those that HEAD reaches, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later_dated: Vec<LaterDated>,
    /// What does not belong there, in a fixed order; empty when all is well.
    pub leaks: Vec<Leak>,
}

/// Leaks as they are found, up to a number that is still worth reading.
#[derive(Debug, Default)]
pub(crate) struct Leaks {
    found: Vec<Leak>,
    /// How many there are of each kind: of equal words, names and numbers aside.
    kinds: BTreeMap<String, usize>,
    /// How many are told of no kind: names can make more kinds than anyone would read.
    uncounted: usize,
}

impl Leaks {
    /// So many of one kind are told one by one, so that none of another kind drowns among them.
    const MOST_OF_A_KIND: usize = 100;
    /// So many kinds are told apart.
    const MOST_KINDS: usize = 1_000;

    pub(crate) fn add(&mut self, where_: impl Into<String>, what: impl Into<String>) {
        let what = what.into();
        let named = |word: &&str| !word.contains('`') && !word.bytes().any(|byte| byte.is_ascii_digit());
        let kind = what.split(' ').filter(named).collect::<Vec<_>>().join(" ");
        if self.kinds.len() >= Self::MOST_KINDS && !self.kinds.contains_key(&kind) {
            self.uncounted += 1;
            return;
        }
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        if *count <= Self::MOST_OF_A_KIND {
            self.found.push(Leak { where_: where_.into(), what });
        }
    }

    fn into_sorted(mut self) -> Vec<Leak> {
        self.found.sort();
        self.found.dedup();
        for (kind, count) in self.kinds {
            if let Some(more) = count.checked_sub(Self::MOST_OF_A_KIND).filter(|more| *more > 0) {
                self.found.push(Leak { where_: "...".into(), what: format!("{more} more of: {kind}") });
            }
        }
        if self.uncounted > 0 {
            self.found.push(Leak { where_: "...".into(), what: format!("{} more of other kinds", self.uncounted) });
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
    let mut git = DotGit::read(dir, expectation.most_inflated, &mut leaks)?;
    let commit = closure::read_commit(&mut git.objects, git.head)?;
    let tree = closure::read_tree(&mut git.objects, commit.tree)?;
    let (reached, faults) = reach::read(&mut git.objects, git.head, &git.shallow)?;

    for id in &reached.absent {
        leaks.add(id.to_string(), "object that HEAD reaches is missing");
    }
    for id in &reached.missing {
        leaks.add(id.to_string(), "parent commit is missing and no shallow boundary says so");
    }
    for (id, what) in faults {
        leaks.add(id.to_string(), format!("object {id} {what}"));
    }
    let ids: Vec<_> = git.objects.ids().copied().collect();
    for id in reached.unreached(&git.objects) {
        leaks.add(id.to_string(), "object that HEAD does not reach");
    }
    for id in git.shallow.iter().filter(|id| !reached.is_commit(&git.objects, id)) {
        leaks.add(".git/shallow", format!("names a commit that HEAD does not reach, {id}"));
    }
    let head = git.head.to_string();
    if let Some(commit) = expectation.commit.as_ref().filter(|commit| **commit != head) {
        leaks.add(".git/HEAD", format!("HEAD is not at commit {commit}"));
    }
    git.compare_index(&tree, &mut leaks);

    let worktree = Worktree::compare(dir, &tree, &mut leaks)?;
    let strays = stray_objects(dir, &mut git, &worktree, &reached, &mut leaks)?;
    if let Some(expected) = expectation.history {
        judge_history(expected, &mut git, &mut leaks)?;
    }
    let mut later_dated = Vec::new();
    if let Some(seconds) = expectation.not_after {
        let commits: Vec<_> = reached.commit_ids(&git.objects).collect();
        for id in commits {
            let commit = closure::read_commit(&mut git.objects, id)?;
            if commit.seconds > seconds {
                later_dated.push(LaterDated { commit: id.to_string(), seconds: commit.seconds });
            }
        }
    }
    if let Some(timestep) = expectation.timestep {
        judge_episode(timestep, &git, reached.commits, &tree.pages(), &worktree, &mut leaks);
    }
    if let Some(source) = &expectation.forbid_from {
        let cut = forbid::Cut { timestep: expectation.timestep, commit: git.head, boundary: &git.shallow };
        let found = forbid::Found { ids: &ids, strays: &strays, worktree: &worktree, plain_files: &git.plain_files };
        forbid::compare(source, &cut, &found, dir, &mut leaks)?;
    }

    let evidence = Evidence {
        clone_url: expectation.clone_url.as_deref().map(without_credentials),
        case_id: expectation.case_id.clone(),
        branch: git.branch.clone(),
        commit: head,
        tree: commit.tree.to_string(),
        shallow: git.shallow.contains(&git.head),
        commits: reached.commits,
        remotes: git.remotes,
        pages: PageCensus::of(&worktree.pages),
        recipe: expectation.recipe.clone(),
        objects: ObjectSet::of(ids.iter()),
        skill_cards: worktree.skill_cards,
    };
    Ok(Audit { evidence, later_dated, leaks: leaks.into_sorted() })
}

/// Reads the objects of every file that holds some outside the object store's order, and names what is there.
fn stray_objects(
    dir: &Path,
    git: &mut DotGit,
    worktree: &Worktree,
    reached: &Reached,
    leaks: &mut Leaks,
) -> Result<Vec<(String, ObjectId)>, CutoffError> {
    let mut strays = Vec::new();
    let untracked = worktree.untracked.iter().map(|path| dir.join(OsStr::from_bytes(path)));
    let paths: Vec<PathBuf> = git.unindexed.iter().chain(&git.plain_files).cloned().chain(untracked).collect();
    for path in paths {
        let Some(found) = stray::read(&path, &mut git.objects)? else { continue };
        let where_ = shown(path.strip_prefix(dir).unwrap_or(&path).as_os_str().as_bytes());
        leaks.add(where_.clone(), format!("{} ({} objects)", found.form.name(), found.ids.len()));
        for what in found.faults {
            leaks.add(where_.clone(), what);
        }
        for id in found.ids {
            if !reached.contains(&git.objects, &id) {
                leaks.add(where_.clone(), format!("object {id} that HEAD does not reach"));
            }
            strays.push((where_.clone(), id));
        }
    }
    Ok(strays)
}

/// Compares how far the commits go back with what was to be kept.
fn judge_history(expected: History, git: &mut DotGit, leaks: &mut Leaks) -> Result<(), CutoffError> {
    let most = match expected {
        History::Full => {
            for id in &git.shallow {
                leaks.add(".git/shallow", format!("the history ends at {id}, and all of it belongs here"));
            }
            return Ok(());
        }
        History::Depth(most) => most.get(),
        History::None => 1,
    };
    let mut seen = BTreeSet::from([git.head]);
    let mut row = vec![git.head];
    for depth in 1..=most {
        let mut next = Vec::new();
        for id in row {
            let commit = closure::read_commit(&mut git.objects, id)?;
            if git.shallow.contains(&id) {
                // Git writes a boundary for commits without a parent too.
                if depth < most && !commit.parents.is_empty() {
                    leaks.add(".git/shallow", format!("the history ends at {id}, after {depth} of {most} commits"));
                }
                continue;
            }
            if depth == most && !commit.parents.is_empty() {
                leaks.add(id.to_string(), format!("the history goes on after {most} commits"));
                continue;
            }
            next.extend(commit.parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
        next.retain(|id| git.objects.holds(id));
        row = next;
    }
    Ok(())
}

/// The rules for an episode's checkout: one commit, marked as shallow, on its branch, pages 1..T here and in the tree.
fn judge_episode(
    timestep: u32,
    git: &DotGit,
    commits: u64,
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
