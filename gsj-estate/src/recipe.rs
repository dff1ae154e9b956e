//! What the repositories of a case hold: trees, commits and branches by the recipes of `corpus.md` sections 7 and 13.

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::names::page_file;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree, WriteTo as _};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const GITIGNORE: &[u8] = b".pi/\nout/*\n!out/.gitkeep\n";

/// How commits are made, and what an episode's repository holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// Each timestep is a root commit with a message that tells nothing; the full document stands in `CASE.full.git`,
    /// which episodes cannot reach. The default.
    Sealed,
    /// The commit ids of the Python reference: each timestep is a child of the full document.
    Reference,
}

impl Recipe {
    /// The recipe's name, as lock and evidence have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Reference => "reference",
        }
    }
}

/// An object that is held in memory: small ones, which several trees or repositories share.
pub(crate) type Small = (Kind, Vec<u8>);

/// What all cases have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) objects: BTreeMap<ObjectId, Small>,
    /// Every file but the pages, by path.
    pub(crate) files: BTreeMap<String, ObjectId>,
    /// The root tree's entries but `md`.
    entries: Vec<Entry>,
    identity: String,
}

impl Shared {
    pub(crate) fn of(corpus: &Corpus) -> Result<Self, EstateError> {
        let mut objects = Objects::default();
        let mut files = BTreeMap::new();
        let mut file = |objects: &mut Objects, path: String, content: &[u8]| {
            let id = blob(content)
                .ok_or_else(|| EstateError::repository(&corpus.root.join(&path), COLLIDES))
                .inspect(|id| drop(objects.0.insert(*id, (Kind::Blob, content.to_vec()))))?;
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            files.insert(path, id);
            Ok::<_, EstateError>(entry(EntryKind::Blob, &name, id))
        };
        let mut entries = vec![
            file(&mut objects, ".gitignore".into(), GITIGNORE)?,
            file(&mut objects, "AGENTS.md".into(), &corpus.agents_md)?,
        ];
        let keep = file(&mut objects, "out/.gitkeep".into(), b"")?;
        entries.push(objects.directory("out", vec![keep]));
        let mut skills = Vec::new();
        for (name, card) in &corpus.skills {
            let card = file(&mut objects, format!("skills/{name}/SKILL.md"), card)?;
            skills.push(objects.directory(name, vec![card]));
        }
        // Git has no empty directories.
        if !skills.is_empty() {
            entries.push(objects.directory("skills", skills));
        }
        Ok(Self { objects: objects.0, files, entries, identity: corpus.settings.identity.line() })
    }
}

/// One repository as it must be. Pages are known by id: their bytes are read when they are written.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Whether this is the full document of a sealed case.
    pub(crate) full: bool,
    /// The branch that HEAD names.
    pub(crate) head: String,
    pub(crate) branches: BTreeMap<String, Branch>,
    /// Trees and commits; what [`Shared`] holds is not among them.
    pub(crate) own: BTreeMap<ObjectId, Small>,
}

/// One branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) commit: ObjectId,
    pub(crate) tree: ObjectId,
    /// How many pages it holds.
    pub(crate) pages: u32,
}

/// A case's repositories, and the blobs of its pages from page 1 on.
#[derive(Debug)]
pub(crate) struct CasePlan {
    pub(crate) pages: Vec<ObjectId>,
    /// The episodes' repository, and under the sealed recipe the full one after it.
    pub(crate) repositories: Vec<Plan>,
}

impl Plan {
    /// The pages of its longest branch.
    pub(crate) fn longest(&self) -> u32 {
        self.branches.values().map(|branch| branch.pages).max().unwrap_or_default()
    }

    /// The repository's name without `.git`.
    pub(crate) fn name(&self, case: &str) -> String {
        if self.full { format!("{case}.full") } else { case.to_owned() }
    }

    /// Every object that belongs here.
    pub(crate) fn ids(&self, shared: &Shared, pages: &[ObjectId]) -> BTreeSet<ObjectId> {
        let pages = up_to(pages, self.longest());
        shared.objects.keys().chain(self.own.keys()).chain(pages).copied().collect()
    }

    /// A name for the set of its objects.
    pub(crate) fn digest(ids: &BTreeSet<ObjectId>) -> String {
        let mut digest = Sha256::new();
        for id in ids {
            digest.update(id.as_slice());
        }
        hex::encode(&digest.finalize()[..20])
    }

    /// The files of a branch by path.
    pub(crate) fn files(shared: &Shared, pages: &[ObjectId], branch: &Branch) -> BTreeMap<String, ObjectId> {
        let mut files = shared.files.clone();
        for (number, id) in (1..).zip(up_to(pages, branch.pages)) {
            files.insert(format!("md/{}", page_file(number)), *id);
        }
        files
    }

    fn commit(&mut self, shared: &Shared, name: &str, pages: &[ObjectId], parent: Option<ObjectId>, message: &str) {
        let entries =
            (1..).zip(pages).map(|(number, id)| entry(EntryKind::Blob, &page_file(number), *id)).collect::<Vec<_>>();
        let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
        let mut objects = Objects(std::mem::take(&mut self.own));
        let mut root = shared.entries.clone();
        root.push(objects.directory("md", entries));
        let tree = objects.tree(root);
        let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
        let who = &shared.identity;
        let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n");
        let commit = objects.put(Kind::Commit, text.into_bytes());
        self.own = objects.0;
        self.branches.insert(name.to_owned(), Branch { commit, tree, pages: count });
    }
}

const COLLIDES: &str = "its bytes are made to collide with another file's";

/// Reads the pages of a case and says what its repositories must be.
pub(crate) fn plan(case: &Case, shared: &Shared, recipe: Recipe) -> Result<CasePlan, EstateError> {
    let mut pages = Vec::with_capacity(case.pages.len());
    for page in &case.pages {
        let content = page.read()?;
        pages.push(blob(&content).ok_or_else(|| EstateError::repository(&page.path, COLLIDES))?);
    }
    let repositories = match recipe {
        Recipe::Reference => vec![reference(case, shared, &pages)],
        Recipe::Sealed => sealed(case, shared, &pages),
    };
    Ok(CasePlan { pages, repositories })
}

fn reference(case: &Case, shared: &Shared, pages: &[ObjectId]) -> Plan {
    let last = case.page_count();
    let mut plan = Plan { full: false, head: "main".into(), branches: BTreeMap::new(), own: BTreeMap::new() };
    plan.commit(shared, "main", pages, None, &format!("{}: full document ({last} pages)", case.id));
    let main = plan.branches.get("main").map(|main| main.commit);
    for timestep in case.timesteps.keys() {
        let more = if *timestep == last { " (no pages beyond cutoff)" } else { "" };
        let name = format!("timestep-{timestep}");
        let message = format!("{name}: truncate after page {timestep}{more}");
        plan.commit(shared, &name, up_to(pages, *timestep), main, &message);
    }
    plan
}

fn sealed(case: &Case, shared: &Shared, pages: &[ObjectId]) -> Vec<Plan> {
    let head = format!("timestep-{}", case.page_count());
    let mut episodes = Plan { full: false, head, branches: BTreeMap::new(), own: BTreeMap::new() };
    for timestep in case.timesteps.keys() {
        let name = format!("timestep-{timestep}");
        episodes.commit(shared, &name, up_to(pages, *timestep), None, &name);
    }
    let mut full = Plan { full: true, head: "main".into(), branches: BTreeMap::new(), own: BTreeMap::new() };
    full.commit(shared, "main", pages, None, &case.id);
    vec![episodes, full]
}

/// The pages up to a timestep.
pub(crate) fn up_to(pages: &[ObjectId], timestep: u32) -> &[ObjectId] {
    &pages[..pages.len().min(usize::try_from(timestep).unwrap_or(usize::MAX))]
}

/// The id of a file's content; `None` for content made to collide.
pub(crate) fn blob(content: &[u8]) -> Option<ObjectId> {
    gix::objs::compute_hash(HashKind::Sha1, Kind::Blob, content).ok()
}

fn entry(kind: EntryKind, name: &str, oid: ObjectId) -> Entry {
    Entry { mode: kind.into(), filename: name.into(), oid }
}

#[derive(Default)]
struct Objects(BTreeMap<ObjectId, Small>);

impl Objects {
    fn put(&mut self, kind: Kind, content: Vec<u8>) -> ObjectId {
        // Trees and commits of ours hold names and digests, from which no collision can be made; the null id would be
        // one that no object has.
        let id =
            gix::objs::compute_hash(HashKind::Sha1, kind, &content).unwrap_or_else(|_| ObjectId::null(HashKind::Sha1));
        self.0.insert(id, (kind, content));
        id
    }

    fn directory(&mut self, name: &str, entries: Vec<Entry>) -> Entry {
        let oid = self.tree(entries);
        entry(EntryKind::Tree, name, oid)
    }

    fn tree(&mut self, mut entries: Vec<Entry>) -> ObjectId {
        entries.sort();
        let mut content = Vec::new();
        // Writing into memory fails for names with a zero byte alone, and no name of ours has one.
        let written = Tree { entries }.write_to(&mut content);
        debug_assert!(written.is_ok(), "a tree of plain names encodes");
        self.put(Kind::Tree, content)
    }
}
