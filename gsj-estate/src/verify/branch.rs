//! The files of branches as a host has them.

use crate::names::{self, shown};
use crate::recipe::Plan;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use std::collections::{BTreeMap, BTreeSet};

/// The most entries of one branch's trees that are walked, and the deepest folder.
const MOST_ENTRIES: usize = 100_000;
const DEEPEST: usize = 16;
/// The largest tree or commit that is read, in bytes.
const LARGEST_TREE: u64 = 64 << 20;

type Files = BTreeMap<String, (EntryKind, ObjectId)>;

/// Branches that were looked at, with the pages that each holds.
pub(super) struct Branches<'a> {
    repository: &'a gix::Repository,
    pages: BTreeMap<String, BTreeMap<u32, ObjectId>>,
}

impl<'a> Branches<'a> {
    pub(super) fn new(repository: &'a gix::Repository) -> Self {
        Self { repository, pages: BTreeMap::new() }
    }

    /// Compares the files of a branch with what they should be; gives all that is wrong.
    ///
    /// `sound` says that the tip is the expected commit and every object below it was read and digested.
    pub(super) fn look(
        &mut self,
        name: &str,
        tip: Option<ObjectId>,
        sound: bool,
        wanted: BTreeMap<String, ObjectId>,
    ) -> Result<Vec<String>, String> {
        let tip = tip.ok_or("the host does not have this branch")?;
        let have: Files = if sound {
            wanted.iter().map(|(path, id)| (path.clone(), (EntryKind::Blob, *id))).collect()
        } else {
            files(self.repository, tip)?
        };
        let number = |path: &str| path.strip_prefix("md/").and_then(names::page);
        let pages = have.iter().filter_map(|(path, (_, id))| Some((number(path)?, *id))).collect();
        self.pages.insert(name.to_owned(), pages);
        let paths: BTreeSet<&String> = have.keys().chain(wanted.keys()).collect();
        let mut wrong = Vec::new();
        for path in paths {
            match (have.get(path), wanted.get(path)) {
                (Some((EntryKind::Blob, have)), Some(want)) if have == want => {}
                (Some((EntryKind::Blob, _)), Some(_)) => wrong.push(format!("{} has other bytes", shown(path))),
                (Some((kind, _)), Some(_)) => {
                    wrong.push(format!("{} has the mode {}", shown(path), kind.as_octal_str()));
                }
                (None, _) => wrong.push(format!("{path} is missing")),
                (Some(_), None) => wrong.push(format!("{} is surplus", shown(path))),
            }
        }
        Ok(wrong)
    }

    /// Compares the pages that neighbouring timesteps share.
    pub(super) fn prefix(&self, order: &[&String]) -> Vec<String> {
        let mut wrong = Vec::new();
        for pair in order.windows(2) {
            let [earlier, later] = pair else { continue };
            let (Some(before), Some(after)) = (self.pages.get(*earlier), self.pages.get(*later)) else { continue };
            for (page, id) in before {
                match after.get(page) {
                    Some(other) if other == id => {}
                    Some(_) => wrong.push(format!("page {page} is not the same in {earlier} and {later}")),
                    None => wrong.push(format!("page {page} of {earlier} is not in {later}")),
                }
            }
        }
        wrong
    }
}

/// The timestep branches by number.
pub(super) fn by_number(plan: &Plan) -> Vec<&String> {
    let mut numbered: Vec<(u64, &String)> =
        plan.branches.keys().filter_map(|name| Some((names::timestep(name)?, name))).collect();
    numbered.sort_unstable();
    numbered.into_iter().map(|(_, name)| name).collect()
}

/// Every file below a commit's tree.
fn files(repository: &gix::Repository, tip: ObjectId) -> Result<Files, String> {
    if repository.find_header(tip).is_ok_and(|header| header.size() > LARGEST_TREE) {
        return Err("its tip is too large".to_owned());
    }
    let commit = repository.find_object(tip).map_err(|error| format!("its tip cannot be read: {error}"))?;
    let commit = commit.try_into_commit().map_err(|_| "its tip is no commit".to_owned())?;
    let tree = commit.tree_id().map_err(|error| format!("its tip cannot be read: {error}"))?.detach();
    let mut found = Files::new();
    let mut pending = vec![(String::new(), tree, 0)];
    while let Some((prefix, id, depth)) = pending.pop() {
        let fault = |what: &dyn std::fmt::Display| format!("folder `{}` cannot be read: {what}", shown(&prefix));
        let size = repository.find_header(id).map_err(|error| fault(&error))?.size();
        if size > LARGEST_TREE {
            return Err(fault(&"it is too large"));
        }
        let tree = repository.find_object(id).map_err(|error| fault(&error))?;
        let tree = tree.try_into_tree().map_err(|error| fault(&error))?;
        for entry in tree.iter() {
            let entry = entry.map_err(|error| fault(&error))?;
            let path = format!("{prefix}{}", entry.filename());
            match entry.mode().kind() {
                EntryKind::Tree if depth < DEEPEST => pending.push((path + "/", entry.object_id(), depth + 1)),
                kind => drop(found.insert(path, (kind, entry.object_id()))),
            }
            if found.len() + pending.len() > MOST_ENTRIES {
                return Err(format!("it holds more than {MOST_ENTRIES} files"));
            }
        }
    }
    Ok(found)
}
