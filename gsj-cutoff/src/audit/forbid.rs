//! Proving that nothing of the source is here but the cut.

use super::Leaks;
use super::walk;
use super::worktree::Worktree;
use crate::closure;
use crate::error::CutoffError;
use crate::names::shown;
use crate::objects::{LARGEST_OBJECT, Objects as _, Source};
use crate::source::SourceRepository;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::hashtable::HashSet;
use gix::objs::Kind;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The cut that was made.
pub(crate) struct Cut<'a> {
    pub(crate) timestep: Option<u32>,
    pub(crate) commit: ObjectId,
    pub(crate) boundary: &'a BTreeSet<ObjectId>,
}

/// What the checkout holds.
pub(crate) struct Found<'a> {
    pub(crate) ids: &'a [ObjectId],
    /// Objects outside the object store: the file's path and the id.
    pub(crate) strays: &'a [(String, ObjectId)],
    pub(crate) worktree: &'a Worktree,
    pub(crate) plain_files: &'a [PathBuf],
}

/// Tells each object and file here whose content the source holds outside the cut.
pub(crate) fn compare(
    source: &Path,
    cut: &Cut<'_>,
    found: &Found<'_>,
    dir: &Path,
    leaks: &mut Leaks,
) -> Result<(), CutoffError> {
    let repository = SourceRepository::open(source)?;
    let mut objects = repository.objects()?;
    let allowed = allowed(&repository, &mut objects, cut)?;
    let forbidden = |id: &ObjectId| !allowed.contains(id) && objects.holds(id);
    for id in found.ids.iter().filter(|id| forbidden(id)) {
        leaks.add(id.to_string(), "object of the source from outside the cut");
    }
    for (path, id) in found.strays.iter().filter(|(_, id)| forbidden(id)) {
        leaks.add(path.clone(), format!("object {id} of the source from outside the cut"));
    }
    for (path, _) in found.worktree.blobs.iter().filter(|(_, id)| forbidden(id)) {
        leaks.add(shown(path), "content of the source from outside the cut");
    }
    for path in found.plain_files {
        let Some(content) = walk::read(path, LARGEST_OBJECT)? else { continue };
        let id = gix::objs::compute_hash(HashKind::Sha1, Kind::Blob, &content)
            .map_err(|error| CutoffError::object(path.display(), format!("cannot be digested: {error}")))?;
        if forbidden(&id) {
            let where_ = path.strip_prefix(dir).unwrap_or(path);
            leaks.add(shown(where_.as_os_str().as_bytes()), "content of the source from outside the cut");
        }
    }
    Ok(())
}

/// The objects of the source that the cut may hold.
fn allowed(repository: &SourceRepository, objects: &mut Source, cut: &Cut<'_>) -> Result<HashSet, CutoffError> {
    let Some(timestep) = cut.timestep else {
        // A cut anywhere: the commit's own past is honest, and all else of the source is not.
        if objects.read(cut.commit, &mut Vec::new())?.is_none() {
            return Ok(HashSet::default());
        }
        return Ok(closure::read_history(objects, cut.commit, cut.boundary)?.objects);
    };
    if let Some(commit) = repository.find(&format!("timestep-{timestep}"))? {
        let tree = closure::read_commit(objects, commit)?.tree;
        let mut allowed: HashSet = closure::read_tree(objects, tree)?.objects().collect();
        allowed.insert(commit);
        return Ok(allowed);
    }
    // The full document of a sealed case: everything but the later pages, and but the trees that name them.
    let root = closure::read_commit(objects, repository.tip("main")?)?.tree;
    let tree = closure::read_tree(objects, root)?;
    let later = tree.pages().last().is_some_and(|last| *last > timestep);
    let mut allowed: HashSet =
        tree.files.iter().filter(|file| file.page().is_none_or(|page| page <= timestep)).map(|file| file.id).collect();
    let tainted = if later { tainted_trees(objects, root)? } else { BTreeSet::new() };
    allowed.extend(tree.trees.difference(&tainted));
    Ok(allowed)
}

/// The root tree and the tree `md`.
fn tainted_trees(objects: &mut Source, root: ObjectId) -> Result<BTreeSet<ObjectId>, CutoffError> {
    let mut buffer = Vec::new();
    objects.read_as(root, Kind::Tree, &mut buffer)?;
    let tree = gix::objs::TreeRef::from_bytes(&buffer, HashKind::Sha1)
        .map_err(|error| CutoffError::object(root, format!("is no valid tree: {error}")))?;
    let md = tree.entries.iter().find(|entry| entry.filename == "md").map(|entry| entry.oid.to_owned());
    Ok([root].into_iter().chain(md).collect())
}
