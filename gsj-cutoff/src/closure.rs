//! What a commit reaches.

use crate::error::CutoffError;
use crate::names;
use crate::objects::Objects;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::hashtable::HashSet;
use gix::objs::commit::ref_iter::Token;
use gix::objs::tree::EntryKind;
use gix::objs::{CommitRefIter, Kind, TreeRefIter};
use std::collections::BTreeSet;

/// The most entries that are walked in one tree; more is taken for an attack.
const MOST_ENTRIES: usize = 200_000;
/// The deepest nesting of directories.
pub(crate) const DEEPEST: usize = 64;
/// The most commits that are walked.
pub(crate) const MOST_COMMITS: usize = 2_000_000;

/// One commit, read.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    /// Seconds since 1970 of the committer.
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
    /// Directories, those that stand for a submodule included: git wants an empty one there.
    pub(crate) directories: Vec<Vec<u8>>,
    /// Submodules: path, and the commit of another repository that they are pinned at.
    pub(crate) gitlinks: Vec<(Vec<u8>, ObjectId)>,
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
    parse_commit(id, &buffer)
}

/// Reads a commit as far as its committer; what follows changes nothing here.
pub(crate) fn parse_commit(id: ObjectId, content: &[u8]) -> Result<Commit, CutoffError> {
    let fault = |what: &dyn std::fmt::Display| CutoffError::object(id, format!("is no valid commit: {what}"));
    let (mut tree, mut parents) = (None, Vec::new());
    for token in CommitRefIter::from_bytes(content, HashKind::Sha1) {
        match token.map_err(|error| fault(&error))? {
            Token::Tree { id } => tree = Some(id),
            Token::Parent { id } => parents.push(id),
            Token::Committer { signature } => {
                let tree = tree.ok_or_else(|| fault(&"it names no tree"))?;
                return Ok(Commit { tree, parents, seconds: signature.time().map_or(0, |time| time.seconds) });
            }
            _ => {}
        }
    }
    Err(fault(&"it names no committer"))
}

/// Reads a whole tree. Names that must never reach a working tree are errors.
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
        let mut names = Vec::new();
        for entry in TreeRefIter::from_bytes(&buffer, HashKind::Sha1) {
            let entry = entry.map_err(|error| CutoffError::object(id, format!("is no valid tree: {error}")))?;
            entries += 1;
            if entries > MOST_ENTRIES {
                return Err(refused(&directory, "the tree has too many entries"));
            }
            let name: &[u8] = entry.filename;
            let path = joined(&directory, name);
            if let Some(what) = names::refusal(name) {
                return Err(refused(&path, what));
            }
            names.push(name);
            match entry.mode.kind() {
                EntryKind::Tree => {
                    tree.directories.push(path.clone());
                    pending.push((path, entry.oid.to_owned(), depth + 1));
                }
                EntryKind::Commit => {
                    tree.directories.push(path.clone());
                    tree.gitlinks.push((path, entry.oid.to_owned()));
                }
                kind @ (EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link) => {
                    tree.files.push(TreeFile { path, kind, id: entry.oid.to_owned() });
                }
            }
        }
        if let Some((name, what)) = names::collision(names.into_iter()) {
            return Err(refused(&joined(&directory, name), what));
        }
    }
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.directories.sort();
    tree.gitlinks.sort();
    Ok(tree)
}

/// What a walk over commits found.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) commits: HashSet,
    /// Objects reached: commits, trees and files.
    pub(crate) objects: HashSet,
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
    let mut commits = HashSet::default();
    let mut contents = Contents::default();
    let mut pending = vec![tip];
    let mut buffer = Vec::new();
    while let Some(id) = pending.pop() {
        if !commits.insert(id) {
            continue;
        }
        let found = objects.read(id, &mut buffer)?;
        if found.is_none() && id != tip {
            commits.remove(&id);
            history.missing.insert(id);
            continue;
        }
        if found != Some(Kind::Commit) {
            return Err(CutoffError::object(id, "is no commit, or is missing"));
        }
        let commit = parse_commit(id, &buffer)?;
        if commits.len() > MOST_COMMITS {
            return Err(CutoffError::object(tip, "reaches too many commits"));
        }
        contents.add(objects, commit.tree, |_| ())?;
        if !boundary.contains(&id) {
            pending.extend(commit.parents);
        }
    }
    history.objects = contents.blobs;
    history.objects.extend(commits.iter().chain(&contents.trees));
    history.commits = commits;
    Ok(history)
}

/// The trees and files of many commits, each read once.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) trees: HashSet,
    pub(crate) blobs: HashSet,
}

impl Contents {
    /// Adds what a tree reaches and tells of each object that is new, a tree before what is in it.
    ///
    /// Nothing of this need ever be written to a working tree, so only names that git itself refuses are errors here.
    pub(crate) fn add(
        &mut self,
        objects: &mut impl Objects,
        root: ObjectId,
        mut new: impl FnMut(ObjectId),
    ) -> Result<(), CutoffError> {
        let mut pending = vec![(root, 0_usize)];
        let mut buffer = Vec::new();
        while let Some((id, depth)) = pending.pop() {
            if !self.trees.insert(id) {
                continue;
            }
            if depth > DEEPEST {
                return Err(CutoffError::object(id, "is a directory nested too deeply"));
            }
            objects.read_as(id, Kind::Tree, &mut buffer)?;
            new(id);
            for entry in TreeRefIter::from_bytes(&buffer, HashKind::Sha1) {
                let entry = entry.map_err(|error| CutoffError::object(id, format!("is no valid tree: {error}")))?;
                if let Some(what) = names::fatal(entry.filename) {
                    return Err(refused(entry.filename, what));
                }
                let child = entry.oid.to_owned();
                match entry.mode.kind() {
                    EntryKind::Tree => pending.push((child, depth + 1)),
                    EntryKind::Commit => {}
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                        if self.blobs.insert(child) {
                            new(child);
                        }
                    }
                }
            }
        }
        Ok(())
    }
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
