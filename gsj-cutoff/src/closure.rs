//! What a commit reaches.

use crate::error::CutoffError;
use crate::names;
use crate::objects::Objects;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::tree::EntryKind;
use gix::objs::{CommitRef, Kind, TreeRef};
use std::collections::BTreeSet;

/// The most entries that are walked in one tree; more is taken for an attack.
const MOST_ENTRIES: usize = 200_000;
/// The deepest nesting of directories.
const DEEPEST: usize = 64;
/// The most commits that are walked.
const MOST_COMMITS: usize = 200_000;

/// One commit, read.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    /// Seconds since 1970 of the committer.
    #[cfg_attr(not(feature = "git"), expect(dead_code, reason = "only a checkout has files to date"))]
    pub(crate) seconds: i64,
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    /// The path from the root, parts divided by `/`.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: EntryKind,
    pub(crate) id: ObjectId,
}

impl TreeFile {
    /// The page's number when this is a page under `md/`.
    pub(crate) fn page(&self) -> Option<u32> {
        names::page_number(self.path.strip_prefix(b"md/")?)
    }
}

/// All files of one tree, sorted by path, and the ids of the tree objects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<TreeFile>,
    pub(crate) directories: Vec<Vec<u8>>,
    pub(crate) trees: BTreeSet<ObjectId>,
}

impl Tree {
    pub(crate) fn pages(&self) -> BTreeSet<u32> {
        self.files.iter().filter_map(TreeFile::page).collect()
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.trees.iter().copied().chain(self.files.iter().map(|file| file.id))
    }
}

pub(crate) fn read_commit(objects: &mut impl Objects, id: ObjectId) -> Result<Commit, CutoffError> {
    let mut buffer = Vec::new();
    objects.read_as(id, Kind::Commit, &mut buffer)?;
    let commit = CommitRef::from_bytes(&buffer, HashKind::Sha1)
        .map_err(|error| CutoffError::object(id, format!("is no valid commit: {error}")))?;
    let seconds = commit.time().map_or(0, |time| time.seconds);
    Ok(Commit { tree: commit.tree(), parents: commit.parents().collect(), seconds })
}

/// Reads a whole tree. Names that must never reach a working tree are errors, so are submodules.
pub(crate) fn read_tree(objects: &mut impl Objects, root: ObjectId) -> Result<Tree, CutoffError> {
    let mut tree = Tree::default();
    let mut pending = vec![(Vec::new(), root, 0_usize)];
    let mut buffer = Vec::new();
    let mut entries = 0_usize;
    while let Some((directory, id, depth)) = pending.pop() {
        if depth > DEEPEST {
            return Err(refused(&directory, "it is nested too deeply"));
        }
        objects.read_as(id, Kind::Tree, &mut buffer)?;
        tree.trees.insert(id);
        let parsed = TreeRef::from_bytes(&buffer, HashKind::Sha1)
            .map_err(|error| CutoffError::object(id, format!("is no valid tree: {error}")))?;
        entries += parsed.entries.len();
        if entries > MOST_ENTRIES {
            return Err(refused(&directory, "the tree has too many entries"));
        }
        if let Some(name) = names::case_collision(parsed.entries.iter().map(|entry| -> &[u8] { entry.filename })) {
            return Err(refused(&joined(&directory, name), "another name differs from it only by case"));
        }
        for entry in &parsed.entries {
            let path = joined(&directory, entry.filename);
            if let Some(what) = names::refusal(entry.filename) {
                return Err(refused(&path, what));
            }
            match entry.mode.kind() {
                EntryKind::Tree => {
                    tree.directories.push(path.clone());
                    pending.push((path, entry.oid.to_owned(), depth + 1));
                }
                EntryKind::Commit => return Err(refused(&path, "it is a submodule")),
                kind @ (EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link) => {
                    tree.files.push(TreeFile { path, kind, id: entry.oid.to_owned() });
                }
            }
        }
    }
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.directories.sort();
    Ok(tree)
}

/// What a walk over commits found.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) commits: BTreeSet<ObjectId>,
    /// Objects reached: commits, trees and files.
    pub(crate) objects: BTreeSet<ObjectId>,
    /// Parents that are named and not there, without a boundary that says so.
    pub(crate) missing: BTreeSet<ObjectId>,
}

/// Walks all commits from `tip`, not beyond the `boundary`, and all their trees.
pub(crate) fn read_history(
    objects: &mut impl Objects,
    tip: ObjectId,
    boundary: &BTreeSet<ObjectId>,
) -> Result<History, CutoffError> {
    let mut history = History::default();
    let mut pending = vec![tip];
    let mut buffer = Vec::new();
    while let Some(id) = pending.pop() {
        if history.commits.contains(&id) {
            continue;
        }
        if id != tip && objects.read(id, &mut buffer)?.is_none() {
            history.missing.insert(id);
            continue;
        }
        let commit = read_commit(objects, id)?;
        history.commits.insert(id);
        if history.commits.len() > MOST_COMMITS {
            return Err(CutoffError::object(tip, "reaches too many commits"));
        }
        history.objects.insert(id);
        if !history.objects.contains(&commit.tree) {
            history.objects.extend(read_tree(objects, commit.tree)?.objects());
        }
        if !boundary.contains(&id) {
            pending.extend(commit.parents);
        }
    }
    Ok(history)
}

pub(crate) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        return name.to_vec();
    }
    [directory, b"/", name].concat()
}

fn refused(path: &[u8], what: &'static str) -> CutoffError {
    CutoffError::Refused { path: names::shown(path), what }
}
