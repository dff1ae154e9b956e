//! From a corpus to repositories: objects by the recipes of `corpus.md` sections 7 and 13, written directly.

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::lock;
use crate::names::{is_owner, page_file};
use crate::repository;
use gix::ObjectId;
use gix::hash::Kind as HashKind;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree, WriteTo as _};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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

/// Where and how to build.
#[derive(Debug, Clone)]
pub struct ScaffoldOptions {
    /// The folder that holds a folder for each owner.
    pub base: PathBuf,
    /// The commit recipe.
    pub recipe: Recipe,
    /// Another owner than the corpus's.
    pub owner_override: Option<String>,
    /// Build everything and write nothing, the lock included.
    pub dry_run: bool,
}

/// What was built.
#[derive(Debug, Clone)]
pub struct Scaffolded {
    /// The text of `corpus.lock.json`.
    pub lock: String,
    /// The repositories, by case; under the sealed recipe the full one after the episodes' one.
    pub repos: Vec<RepoMade>,
}

/// One repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepoMade {
    /// The case.
    pub case_id: String,
    /// The bare repository.
    pub path: PathBuf,
    /// Whether this is the full document of a sealed case, which no episode may read.
    pub full: bool,
    /// The branches and their commits.
    pub refs: BTreeMap<String, String>,
    /// Whether anything was written, or would be.
    pub changed: bool,
}

/// The contents of one repository, in memory.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) objects: BTreeMap<ObjectId, (Kind, Vec<u8>)>,
    pub(crate) branches: BTreeMap<String, ObjectId>,
    /// The branch that HEAD names.
    pub(crate) head: String,
}

/// Builds the repositories of a corpus in a folder of bare repositories, and writes the lock into the corpus.
///
/// The result depends on the corpus alone: no git process, no working tree, nothing of the environment. Run again on an
/// unchanged corpus it writes nothing. Branches, tags and objects that the corpus does not give are removed. The lock
/// is written last, when every repository is right.
///
/// # Errors
/// Fails when a page changed since it was validated, when the owner is no owner name, or when writing fails.
pub fn scaffold(corpus: &Corpus, options: &ScaffoldOptions) -> Result<Scaffolded, EstateError> {
    let owner = options.owner_override.as_deref().unwrap_or(&corpus.settings.owner);
    if !is_owner(owner) {
        return Err(EstateError::Owner { owner: owner.to_owned() });
    }
    let home = options.base.join(owner);
    let shared = Shared::of(corpus);
    let mut repos = Vec::new();
    for case in corpus.cases.values() {
        let mut put = |contents: Contents, full: bool| {
            let path = home.join(format!("{}{}.git", case.id, if full { ".full" } else { "" }));
            let changed = repository::write(&path, &contents, options.dry_run)?;
            let refs = contents.branches.into_iter().map(|(name, id)| (name, id.to_string())).collect();
            repos.push(RepoMade { case_id: case.id.clone(), path, full, refs, changed });
            Ok(())
        };
        match options.recipe {
            Recipe::Reference => put(reference(case, &shared)?, false)?,
            Recipe::Sealed => {
                let (episodes, full) = sealed(case, &shared)?;
                put(episodes, false)?;
                put(full, true)?;
            }
        }
    }
    let lock = lock::write(corpus, owner, options.recipe, &repos, options.dry_run)?;
    Ok(Scaffolded { lock, repos })
}

/// The objects that all cases have in common.
struct Shared {
    objects: BTreeMap<ObjectId, (Kind, Vec<u8>)>,
    /// The root tree's entries but `md`.
    entries: Vec<Entry>,
    identity: String,
}

impl Shared {
    fn of(corpus: &Corpus) -> Self {
        let mut contents = Contents::default();
        let mut entries = vec![contents.file(".gitignore", GITIGNORE), contents.file("AGENTS.md", &corpus.agents_md)];
        let keep = contents.file(".gitkeep", b"");
        entries.push(contents.directory("out", vec![keep]));
        let mut skills = Vec::new();
        for (name, card) in &corpus.skills {
            let card = contents.file("SKILL.md", card);
            skills.push(contents.directory(name, vec![card]));
        }
        // Git has no empty directories.
        if !skills.is_empty() {
            entries.push(contents.directory("skills", skills));
        }
        Self { objects: contents.objects, entries, identity: corpus.settings.identity.line() }
    }

    /// Begins a repository with what it has in common with the others.
    fn begin(&self, pages: &[Entry], blobs: &Contents) -> Contents {
        let mut contents = Contents { objects: self.objects.clone(), ..Contents::default() };
        for page in pages {
            if let Some(blob) = blobs.objects.get(&page.oid) {
                contents.objects.insert(page.oid, blob.clone());
            }
        }
        contents
    }

    /// The tree of a cutoff: everything in common, and the pages up to it.
    fn tree(&self, contents: &mut Contents, pages: &[Entry]) -> ObjectId {
        let mut entries = self.entries.clone();
        entries.push(contents.directory("md", pages.to_vec()));
        contents.tree(entries)
    }

    fn commit(&self, contents: &mut Contents, tree: ObjectId, parent: Option<ObjectId>, message: &str) -> ObjectId {
        let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
        let who = &self.identity;
        let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n");
        contents.put(Kind::Commit, text.into_bytes())
    }
}

impl Contents {
    fn put(&mut self, kind: Kind, content: Vec<u8>) -> ObjectId {
        let id = id_of(kind, &content);
        self.objects.insert(id, (kind, content));
        id
    }

    fn file(&mut self, name: &str, content: &[u8]) -> Entry {
        let oid = self.put(Kind::Blob, content.to_vec());
        Entry { mode: EntryKind::Blob.into(), filename: name.into(), oid }
    }

    fn directory(&mut self, name: &str, entries: Vec<Entry>) -> Entry {
        let oid = self.tree(entries);
        Entry { mode: EntryKind::Tree.into(), filename: name.into(), oid }
    }

    fn tree(&mut self, mut entries: Vec<Entry>) -> ObjectId {
        // Git's own order: a directory sorts as if its name ended in a slash.
        entries.sort();
        let mut content = Vec::new();
        // Writing into memory fails for names with a zero byte alone, and no name of ours has one.
        let written = Tree { entries }.write_to(&mut content);
        debug_assert!(written.is_ok(), "a tree of plain names encodes");
        self.put(Kind::Tree, content)
    }
}

fn id_of(kind: Kind, content: &[u8]) -> ObjectId {
    // The digest fails only on content made to collide; the id is then one that no object has.
    gix::objs::compute_hash(HashKind::Sha1, kind, content).unwrap_or_else(|_| ObjectId::null(HashKind::Sha1))
}

/// Reads all pages of a case as entries of `md`, with their blobs.
fn pages(case: &Case) -> Result<(Vec<Entry>, Contents), EstateError> {
    let mut blobs = Contents::default();
    let mut entries = Vec::with_capacity(case.pages.len());
    for page in &case.pages {
        let content = page.read()?;
        let entry = blobs.file(&page_file(page.number), &content);
        if entry.oid.is_null() {
            return Err(EstateError::repository(&page.path, "its bytes are made to collide with another file's"));
        }
        entries.push(entry);
    }
    Ok((entries, blobs))
}

fn up_to(pages: &[Entry], timestep: u32) -> &[Entry] {
    &pages[..pages.len().min(usize::try_from(timestep).unwrap_or(usize::MAX))]
}

fn reference(case: &Case, shared: &Shared) -> Result<Contents, EstateError> {
    let (pages, blobs) = pages(case)?;
    let last = case.page_count();
    let mut contents = shared.begin(&pages, &blobs);
    let tree = shared.tree(&mut contents, &pages);
    let main = shared.commit(&mut contents, tree, None, &format!("{}: full document ({last} pages)", case.id));
    contents.branches.insert("main".into(), main);
    for timestep in case.timesteps.keys() {
        let tree = shared.tree(&mut contents, up_to(&pages, *timestep));
        let more = if *timestep == last { " (no pages beyond cutoff)" } else { "" };
        let message = format!("timestep-{timestep}: truncate after page {timestep}{more}");
        let commit = shared.commit(&mut contents, tree, Some(main), &message);
        contents.branches.insert(format!("timestep-{timestep}"), commit);
    }
    contents.head = "main".into();
    Ok(contents)
}

/// The episodes' repository, and the full document's.
fn sealed(case: &Case, shared: &Shared) -> Result<(Contents, Contents), EstateError> {
    let (pages, blobs) = pages(case)?;
    let last = case.page_count();
    let mut episodes = shared.begin(&pages, &blobs);
    for timestep in case.timesteps.keys() {
        let tree = shared.tree(&mut episodes, up_to(&pages, *timestep));
        let commit = shared.commit(&mut episodes, tree, None, &format!("timestep-{timestep}"));
        episodes.branches.insert(format!("timestep-{timestep}"), commit);
    }
    episodes.head = format!("timestep-{last}");

    let mut full = shared.begin(&pages, &blobs);
    let tree = shared.tree(&mut full, &pages);
    let main = shared.commit(&mut full, tree, None, &case.id);
    full.branches.insert("main".into(), main);
    full.head = "main".into();
    Ok((episodes, full))
}
