//! Reading every object once, in the order in which they stand, and what HEAD reaches among them.
//!
//! Several threads read; what they note of commits and trees is a graph of positions, which is then walked. Whatever is
//! not plain and sound makes the walk give up: it is then done again object by object, which says exactly what is wrong.

use crate::closure::{self, DEEPEST, MOST_COMMITS};
use crate::error::CutoffError;
use crate::names;
use crate::objects::{Folder, Place};
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind, TreeRefIter};
use std::collections::BTreeSet;

/// The most references from commits and trees that are noted, four bytes each.
const MOST_EDGES: usize = 16 << 20;
/// Set in an edge of a tree that leads to another tree.
const TO_TREE: u32 = 1 << 31;

/// Marks of an object: as what it is reached.
const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 4;

/// What HEAD reaches.
pub(super) struct Reached {
    /// For each copy's position, marks; those of an object are at its first copy.
    marks: Vec<u8>,
    /// How many commits.
    pub(super) commits: u64,
    /// Objects that are reached and not there, commits aside.
    pub(super) absent: BTreeSet<ObjectId>,
    /// Parents that are named and not there, without a boundary that says so.
    pub(super) missing: BTreeSet<ObjectId>,
}

impl Reached {
    pub(super) fn contains(&self, objects: &Folder, id: &gix::oid) -> bool {
        objects.position(id).is_some_and(|at| self.marks[at] != 0)
    }

    pub(super) fn is_commit(&self, objects: &Folder, id: &gix::oid) -> bool {
        objects.position(id).is_some_and(|at| self.marks[at] & COMMIT != 0)
    }

    /// What is there and not reached, sorted.
    pub(super) fn unreached<'a>(&'a self, objects: &'a Folder) -> impl Iterator<Item = &'a ObjectId> {
        let copies = objects.copies().iter().zip(&self.marks).enumerate();
        let first = |at: usize, id: &ObjectId| at.checked_sub(1).is_none_or(|at| objects.copies()[at].0 != *id);
        copies.filter(move |(at, ((id, _), marks))| **marks == 0 && first(*at, id)).map(|(_, ((id, _), _))| id)
    }

    /// The commits, sorted.
    pub(super) fn commit_ids<'a>(&'a self, objects: &'a Folder) -> impl Iterator<Item = ObjectId> + 'a {
        let marked = objects.copies().iter().zip(&self.marks);
        marked.filter(|(_, marks)| **marks & COMMIT != 0).map(|((id, _), _)| *id)
    }
}

/// What was noted of one object.
#[derive(Clone, Copy, Default)]
enum Node {
    /// Not sound, or not plain enough.
    #[default]
    Odd,
    /// The tree and the parents, in the edges of a part: where they start, and how many.
    Commit(u8, u32, u32),
    /// Its entries.
    Tree(u8, u32, u32),
    Other,
}

/// Reads all objects, and walks from `tip` to all that it reaches but not beyond the `boundary`.
///
/// Gives faults of single copies with what is reached.
pub(super) fn read(
    objects: &mut Folder,
    tip: ObjectId,
    boundary: &BTreeSet<ObjectId>,
) -> Result<(Reached, Vec<(ObjectId, String)>), CutoffError> {
    let (graph, faults) = Graph::read(objects, MOST_EDGES);
    if objects.limits().exceeded() {
        return Err(too_much(objects));
    }
    let reached = match graph.and_then(|graph| graph.walk(objects, tip, boundary)) {
        Some(reached) => reached,
        None => one_by_one(objects, tip, boundary)?,
    };
    Ok((reached, faults))
}

fn too_much(objects: &Folder) -> CutoffError {
    CutoffError::TooMuch { path: objects.path().to_owned(), most: objects.limits().most() }
}

/// Walks by reading again what is reached.
fn one_by_one(objects: &mut Folder, tip: ObjectId, boundary: &BTreeSet<ObjectId>) -> Result<Reached, CutoffError> {
    let history = closure::read_history(objects, tip, boundary);
    if objects.limits().exceeded() {
        return Err(too_much(objects));
    }
    let history = history?;
    let mut marks = vec![0; objects.copies().len()];
    let mut absent = BTreeSet::new();
    for (ids, mark) in [(&history.objects, BLOB), (&history.commits, COMMIT)] {
        for id in ids {
            match objects.position(id) {
                Some(at) => marks[at] |= mark,
                None => drop(absent.insert(*id)),
            }
        }
    }
    Ok(Reached { marks, commits: history.commits.len() as u64, absent, missing: history.missing })
}

/// The position of the first copy of the object whose copy is at a position: what is known of it is kept there.
fn first(objects: &Folder, position: u32) -> u32 {
    let copies = objects.copies();
    let id = copies[position as usize].0;
    let alone = position.checked_sub(1).is_none_or(|before| copies[before as usize].0 != id);
    let first = if alone { None } else { objects.position(&id).and_then(|at| u32::try_from(at).ok()) };
    first.unwrap_or(position)
}

/// What commits and trees name, as positions.
struct Graph {
    nodes: Vec<Node>,
    /// The edges that each thread noted.
    parts: Vec<Vec<u32>>,
}

/// What one thread found.
#[derive(Default)]
struct Part {
    number: u8,
    nodes: Vec<(u32, Node)>,
    edges: Vec<u32>,
    faults: Vec<(ObjectId, String)>,
}

impl Graph {
    /// Reads every copy of every object; `None` for the graph when there are too many edges for it.
    fn read(objects: &Folder, most_edges: usize) -> (Option<Self>, Vec<(ObjectId, String)>) {
        let mut order: Vec<(Place, u32)> =
            objects.copies().iter().zip(0..).map(|((_, place), position)| (*place, position)).collect();
        order.sort_unstable();
        let threads = objects.limits().threads(order.len());
        let most = most_edges / threads;
        let chunks = order.chunks(order.len().div_ceil(threads).max(1));
        let mut parts: Vec<Part> = if threads == 1 {
            chunks.map(|chunk| Part::read(objects, 0, chunk, most)).collect()
        } else {
            std::thread::scope(|scope| {
                let running: Vec<_> = (0..)
                    .zip(chunks)
                    .map(|(number, chunk)| (chunk, scope.spawn(move || Part::read(objects, number, chunk, most))))
                    .collect();
                running
                    .into_iter()
                    .map(|(chunk, thread)| thread.join().unwrap_or_else(|_| Part::failed(objects, chunk)))
                    .collect()
            })
        };
        let mut faults: Vec<_> = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.faults)).collect();
        faults.sort();
        let fits = parts.iter().all(|part| part.edges.len() <= most) && objects.copies().len() < TO_TREE as usize;
        let graph = fits.then(|| {
            let mut nodes = vec![Node::Odd; objects.copies().len()];
            for (position, node) in parts.iter().flat_map(|part| &part.nodes) {
                nodes[*position as usize] = *node;
            }
            Self { nodes, parts: parts.into_iter().map(|part| part.edges).collect() }
        });
        (graph, faults)
    }

    /// Walks over the graph; `None` when something that it comes to is not there or not plain.
    fn walk(&self, objects: &Folder, tip: ObjectId, boundary: &BTreeSet<ObjectId>) -> Option<Reached> {
        let boundary: BTreeSet<usize> = boundary.iter().filter_map(|id| objects.position(id)).collect();
        let mut marks = vec![0_u8; self.nodes.len()];
        let mut commits = 0_usize;
        let mut pending = vec![u32::try_from(objects.position(&tip)?).ok()?];
        let mut trees = Vec::new();
        while let Some(at) = pending.pop() {
            let mark = marks.get_mut(at as usize)?;
            if *mark & COMMIT != 0 {
                continue;
            }
            *mark |= COMMIT;
            commits += 1;
            let Node::Commit(part, start, count) = self.nodes[at as usize] else { return None };
            let (tree, parents) = self.edges(part, start, count)?.split_first()?;
            if commits > MOST_COMMITS {
                return None;
            }
            if !boundary.contains(&(at as usize)) {
                pending.extend(parents);
            }
            trees.push((*tree, 0_usize));
            while let Some((at, depth)) = trees.pop() {
                let mark = marks.get_mut(at as usize)?;
                if *mark & TREE != 0 {
                    continue;
                }
                *mark |= TREE;
                let Node::Tree(part, start, count) = self.nodes[at as usize] else { return None };
                if depth > DEEPEST {
                    return None;
                }
                for edge in self.edges(part, start, count)? {
                    if edge & TO_TREE != 0 {
                        trees.push((edge & !TO_TREE, depth + 1));
                    } else {
                        *marks.get_mut(*edge as usize)? |= BLOB;
                    }
                }
            }
        }
        let (absent, missing) = (BTreeSet::new(), BTreeSet::new());
        Some(Reached { marks, commits: commits as u64, absent, missing })
    }

    fn edges(&self, part: u8, start: u32, count: u32) -> Option<&[u32]> {
        self.parts.get(usize::from(part))?.get(start as usize..)?.get(..count as usize)
    }
}

impl Part {
    fn read(objects: &Folder, number: u8, chunk: &[(Place, u32)], most: usize) -> Self {
        let mut part = Self { number, ..Self::default() };
        let mut checker = objects.checker();
        for (place, position) in chunk {
            let (id, _) = objects.copies()[*position as usize];
            match checker.check(id, *place, |kind, content| part.note(objects, kind, content, most)) {
                Ok(node) => part.nodes.push((first(objects, *position), node)),
                Err(what) => part.faults.push((id, what)),
            }
        }
        part
    }

    /// Says of each object that it was not read.
    fn failed(objects: &Folder, chunk: &[(Place, u32)]) -> Self {
        let id = |position: &u32| objects.copies()[*position as usize].0;
        let faults = chunk.iter().map(|(_, position)| (id(position), "could not be verified".to_owned())).collect();
        Self { faults, ..Self::default() }
    }

    fn note(&mut self, objects: &Folder, kind: Kind, content: &[u8], most: usize) -> Node {
        let start = self.edges.len();
        if start > most {
            return Node::Odd;
        }
        let noted = match kind {
            Kind::Blob | Kind::Tag => return Node::Other,
            Kind::Commit => self.note_commit(objects, content),
            Kind::Tree => self.note_tree(objects, content),
        };
        let range = (u32::try_from(start), u32::try_from(self.edges.len() - start));
        match (noted, kind, range) {
            (Some(()), Kind::Commit, (Ok(start), Ok(count))) => Node::Commit(self.number, start, count),
            (Some(()), _, (Ok(start), Ok(count))) => Node::Tree(self.number, start, count),
            _ => {
                self.edges.truncate(start);
                Node::Odd
            }
        }
    }

    fn note_commit(&mut self, objects: &Folder, content: &[u8]) -> Option<()> {
        // The id is not needed: nobody hears of what is wrong here.
        let commit = closure::parse_commit(ObjectId::null(HashKind::Sha1), content).ok()?;
        for id in std::iter::once(&commit.tree).chain(&commit.parents) {
            // A parent beyond the boundary is honestly not there; one that must be there is noticed by the walk.
            self.edges.push(objects.position(id).map_or(Some(u32::MAX), |at| u32::try_from(at).ok())?);
        }
        Some(())
    }

    fn note_tree(&mut self, objects: &Folder, content: &[u8]) -> Option<()> {
        for entry in TreeRefIter::from_bytes(content, HashKind::Sha1) {
            let entry = entry.ok()?;
            if names::fatal(entry.filename).is_some() {
                return None;
            }
            let kind = entry.mode.kind();
            if kind != EntryKind::Commit {
                let at = u32::try_from(objects.position(entry.oid)?).ok()?;
                self.edges.push(if kind == EntryKind::Tree { at | TO_TREE } else { at });
            }
        }
        Some(())
    }
}

#[cfg(all(test, feature = "git"))]
mod tests {
    use super::*;
    use crate::pack_write::PackWriter;
    use gix::zlib::Compression;
    use tempfile::TempDir;

    /// A pack of 40 commits on top of each other, each with a folder of two files, and a file that nobody names.
    fn folder() -> (TempDir, Folder, Vec<ObjectId>) {
        let root = TempDir::new().expect("temporary folder");
        let mut objects: Vec<(ObjectId, Kind, Vec<u8>)> = Vec::new();
        let mut add = |kind, content: Vec<u8>| {
            let id = gix::objs::compute_hash(HashKind::Sha1, kind, &content).expect("digests");
            if !objects.iter().any(|(other, ..)| *other == id) {
                objects.push((id, kind, content));
            }
            id
        };
        let entry = |mode: &str, name: &str, id: ObjectId| {
            [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id.as_slice()].concat()
        };
        let mut commits: Vec<ObjectId> = Vec::new();
        for number in 0..40 {
            let one = add(Kind::Blob, format!("one {}", number / 3).into_bytes());
            let two = add(Kind::Blob, format!("two {}", number % 5).into_bytes());
            let inner = add(Kind::Tree, [entry("100644", "one", one), entry("100755", "two", two)].concat());
            let tree = add(Kind::Tree, entry("40000", "d", inner));
            let parent = commits.last().map(|parent| format!("parent {parent}\n")).unwrap_or_default();
            let who = format!("c <c@c.invalid> {number} +0000");
            let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{number}\n");
            commits.push(add(Kind::Commit, text.into_bytes()));
        }
        add(Kind::Blob, b"nobody names me".to_vec());
        let mut pack = PackWriter::begin(root.path(), objects.len()).expect("begins");
        for (id, kind, content) in objects {
            pack.add(id, kind, &content, Compression::BEST_SPEED).expect("adds");
        }
        let [_, index] = pack.finish().expect("finishes");
        let (folder, faults) = Folder::open(root.path(), [], &[index], None);
        assert_eq!(faults, []);
        (root, folder, commits)
    }

    #[test]
    fn the_walk_over_the_graph_comes_to_what_the_walk_object_by_object_comes_to() {
        let (_root, mut objects, commits) = folder();
        for (tip, boundary) in [(39, None), (39, Some(20)), (7, None), (0, None), (5, Some(5))] {
            let boundary: BTreeSet<ObjectId> = boundary.map(|at: usize| commits[at]).into_iter().collect();
            let (graph, faults) = Graph::read(&objects, MOST_EDGES);
            assert_eq!(faults, []);
            let quick = graph.expect("fits").walk(&objects, commits[tip], &boundary).expect("is plain");
            let slow = one_by_one(&mut objects, commits[tip], &boundary).expect("walks");
            assert_eq!((quick.commits, quick.absent.len()), (slow.commits, slow.absent.len()));
            let marked = |reached: &Reached| reached.unreached(&objects).copied().collect::<Vec<_>>();
            assert_eq!(marked(&quick), marked(&slow));
            assert_eq!(quick.commit_ids(&objects).collect::<Vec<_>>(), slow.commit_ids(&objects).collect::<Vec<_>>());
            assert!(!marked(&quick).is_empty(), "one file is named by nobody");
        }
    }

    #[test]
    fn too_many_edges_and_a_missing_tip_leave_it_to_the_other_walk() {
        let (_root, mut objects, commits) = folder();
        assert!(Graph::read(&objects, 10).0.is_none());
        let nobody = ObjectId::null(HashKind::Sha1);
        assert!(Graph::read(&objects, MOST_EDGES).0.expect("fits").walk(&objects, nobody, &BTreeSet::new()).is_none());
        let error = read(&mut objects, nobody, &BTreeSet::new()).map(drop).expect_err("no such commit");
        assert!(error.to_string().contains("is missing"), "{error}");
        assert_eq!(read(&mut objects, commits[3], &BTreeSet::new()).expect("reads").0.commits, 4);
    }
}
