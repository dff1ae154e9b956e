//! Which commit is the tip, which commits are kept, and which objects that takes.

use crate::closure::{self, Commit, Contents};
use crate::cut::{Cut, Deny};
use crate::error::CutoffError;
use crate::evidence::{History, LaterDated};
use crate::objects::{Objects, Source};
use crate::pack::Pack;
use crate::patch_id;
use crate::source::SourceRepository;
use gix::ObjectId;
use gix::hashtable::HashSet;
use std::collections::{BTreeSet, VecDeque};

/// The commit to cut at, and the branch that names it afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) commit: ObjectId,
    /// `None` leaves HEAD detached.
    pub(crate) branch: Option<String>,
}

/// The commits that are kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Commits with their trees, in the order of a walk that goes to all parents of a commit before their parents.
    pub(crate) commits: Vec<(ObjectId, ObjectId)>,
    /// Kept commits whose parents are not.
    pub(crate) boundary: BTreeSet<ObjectId>,
    pub(crate) later: Vec<LaterDated>,
}

pub(crate) fn tip(repository: &SourceRepository, source: &mut Source, cut: &Cut) -> Result<Tip, CutoffError> {
    match cut {
        Cut::Timestep(timestep) => {
            let branch = format!("timestep-{timestep}");
            Ok(Tip { commit: repository.tip(&branch)?, branch: Some(branch) })
        }
        Cut::Branch(branch) => Ok(Tip { commit: repository.tip(branch)?, branch: Some(branch.clone()) }),
        Cut::Commit(id) => Ok(Tip { commit: parse_id(id)?, branch: None }),
        Cut::Date { seconds, branch } => {
            let branch = match branch {
                Some(branch) => branch.clone(),
                None => repository.head_branch()?,
            };
            let commit = first_not_after(repository, source, &branch, *seconds)?;
            Ok(Tip { commit, branch: Some(branch) })
        }
    }
}

pub(crate) fn parse_id(text: &str) -> Result<ObjectId, CutoffError> {
    let whole = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = if whole { ObjectId::from_hex(text.to_ascii_lowercase().as_bytes()).ok() } else { None };
    id.ok_or_else(|| CutoffError::Id { text: text.to_owned() })
}

/// The first commit on a branch's first-parent line whose committer date is not after the cut.
fn first_not_after(
    repository: &SourceRepository,
    source: &mut Source,
    branch: &str,
    seconds: i64,
) -> Result<ObjectId, CutoffError> {
    let shallow = repository.shallow()?;
    let mut id = repository.tip(branch)?;
    let mut seen = HashSet::default();
    loop {
        let commit = closure::read_commit(source, id)?;
        if commit.seconds <= seconds {
            return Ok(id);
        }
        match commit.parents.first() {
            Some(parent) if !shallow.contains(&id) && seen.insert(id) => id = *parent,
            _ => {
                return Err(CutoffError::NothingBefore {
                    branch: branch.to_owned(),
                    seconds,
                    first: commit.seconds,
                    id: id.to_string(),
                });
            }
        }
    }
}

/// Walks from the tip as far as the history goes.
pub(crate) fn kept(
    source: &mut Source,
    tip: ObjectId,
    history: History,
    source_boundary: &BTreeSet<ObjectId>,
    date: Option<i64>,
) -> Result<Kept, CutoffError> {
    let deepest = match history {
        History::None => 1,
        History::Depth(depth) => depth.get(),
        History::Full => u32::MAX,
    };
    let mut kept = Kept::default();
    walk(source, tip, |id, commit, depth| {
        kept.commits.push((id, commit.tree));
        if date.is_some_and(|date| commit.seconds > date) {
            kept.later.push(LaterDated { commit: id.to_string(), seconds: commit.seconds });
        }
        let cut_here = source_boundary.contains(&id) || depth >= deepest;
        // An episode's single commit is marked whether or not it has parents: that says that it was cut.
        if (cut_here && !commit.parents.is_empty()) || history == History::None {
            kept.boundary.insert(id);
        }
        !cut_here
    })?;
    Ok(kept)
}

/// Refuses a cut that reaches something denied, hidden by a shallow boundary or not: its content would be there.
pub(crate) fn deny(
    source: &mut Source,
    tip: ObjectId,
    denied: &[Deny],
    source_boundary: &BTreeSet<ObjectId>,
) -> Result<(), CutoffError> {
    if denied.is_empty() {
        return Ok(());
    }
    let (mut commits, mut patches) = (HashSet::default(), BTreeSet::new());
    for denied in denied {
        match denied {
            Deny::Commit(id) => drop(commits.insert(parse_id(id)?)),
            Deny::PatchId(id) => drop(patches.insert(parse_id(id)?)),
        }
    }
    let mut walked = Vec::new();
    walk(source, tip, |id, commit, _| {
        walked.push((id, commit.clone()));
        !source_boundary.contains(&id)
    })?;
    if let Some((id, _)) = walked.iter().find(|(id, _)| commits.contains(id)) {
        return Err(CutoffError::Denied { commit: id.to_string(), patch: None });
    }
    if patches.is_empty() {
        return Ok(());
    }
    for (id, commit) in &walked {
        let parent = if source_boundary.contains(id) { None } else { commit.parents.first() };
        // As for git, a merge has no patch of its own.
        if commit.parents.len() > 1 {
            continue;
        }
        let before = match parent {
            Some(parent) => Some(closure::read_commit(source, *parent)?.tree),
            None => None,
        };
        if let Some(patch) = patch_id::of(source, before, commit.tree)?
            && patches.contains(&patch)
        {
            return Err(CutoffError::Denied { commit: id.to_string(), patch: Some(patch.to_string()) });
        }
    }
    Ok(())
}

/// Visits commits breadth first, each at its least depth, the tip's being 1; `visit` says whether to go on to parents.
fn walk(
    source: &mut impl Objects,
    tip: ObjectId,
    mut visit: impl FnMut(ObjectId, &Commit, u32) -> bool,
) -> Result<(), CutoffError> {
    let mut seen = HashSet::default();
    seen.insert(tip);
    let mut pending = VecDeque::from([(tip, 1_u32)]);
    while let Some((id, depth)) = pending.pop_front() {
        let commit = closure::read_commit(source, id)?;
        if visit(id, &commit, depth) {
            let new = commit.parents.iter().filter(|parent| seen.insert(**parent));
            pending.extend(new.map(|parent| (*parent, depth.saturating_add(1))));
        }
    }
    Ok(())
}

/// The objects of the kept commits: commits first, then trees and files in the order in which the commits name them.
///
/// Each thread walks some of the trees and leaves out what it met before; taken together in order and without what
/// another met before, that is what one thread would give.
pub(crate) fn objects(source: &Source, kept: &Kept) -> Result<Vec<ObjectId>, CutoffError> {
    source.packs().iter().for_each(Pack::prepare);
    let threads = source.limits().threads(kept.commits.len());
    let chunks = kept.commits.chunks(kept.commits.len().div_ceil(threads).max(1));
    let walked: Vec<_> = if threads == 1 {
        chunks.map(|chunk| trees_and_files(source, chunk)).collect()
    } else {
        std::thread::scope(|scope| {
            let running: Vec<_> =
                chunks.map(|chunk| (chunk, scope.spawn(move || trees_and_files(source, chunk)))).collect();
            let failed = |chunk: &[(ObjectId, ObjectId)]| {
                let id = chunk.first().map(|(id, _)| id.to_string()).unwrap_or_default();
                Err(CutoffError::object(id, "could not be walked"))
            };
            running.into_iter().map(|(chunk, thread)| thread.join().unwrap_or_else(|_| failed(chunk))).collect()
        })
    };
    let mut objects: Vec<ObjectId> = kept.commits.iter().map(|(id, _)| *id).collect();
    let mut seen = HashSet::default();
    for part in walked {
        objects.extend(part?.into_iter().filter(|id| threads == 1 || seen.insert(*id)));
    }
    Ok(objects)
}

fn trees_and_files(source: &Source, commits: &[(ObjectId, ObjectId)]) -> Result<Vec<ObjectId>, CutoffError> {
    let mut source = source.another();
    let mut contents = Contents::default();
    let mut objects = Vec::new();
    for (_, tree) in commits {
        contents.add(&mut source, *tree, |id| objects.push(id))?;
    }
    Ok(objects)
}
