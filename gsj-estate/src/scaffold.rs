//! From a corpus to repositories and the lock.

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::forgotten::{self, Forgotten};
use crate::host::{Host, Session};
use crate::lock::{self, Lock, Turn};
use crate::names::is_owner;
use crate::parallel;
use crate::recipe::{self, Recipe, Shared};
use crate::repository::Wanted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where and how to build.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScaffoldOptions {
    /// Where the repositories go.
    pub host: Host,
    /// The commit recipe.
    pub recipe: Recipe,
    /// Another owner than the corpus's.
    pub owner_override: Option<String>,
    /// Whether the corpus holds some cases only ([`Corpus::read_only`]): then the lock keeps what it says of others.
    pub partial: bool,
    /// Leave the repositories of cases that the corpus has no longer where they are.
    pub keep_forgotten: bool,
    /// Build everything and write nothing, the lock included.
    pub dry_run: bool,
}

impl ScaffoldOptions {
    /// All cases, to this host.
    #[must_use]
    pub fn new(host: Host, recipe: Recipe) -> Self {
        Self { host, recipe, owner_override: None, partial: false, keep_forgotten: false, dry_run: false }
    }

    /// All cases, into a folder that holds a folder for each owner.
    #[must_use]
    pub fn folder(base: &Path, recipe: Recipe) -> Self {
        Self::new(Host::Folder(base.to_owned()), recipe)
    }
}

/// What was built.
#[derive(Debug, Clone)]
pub struct Scaffolded {
    /// The text of `corpus.lock.json`.
    pub lock: String,
    /// The repositories, by case; under the sealed recipe the full one after the episodes' one.
    pub repos: Vec<RepoMade>,
    /// Repositories that the lock knew and the corpus gives no longer.
    pub forgotten: Vec<Forgotten>,
}

/// One repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepoMade {
    /// The case.
    pub case_id: String,
    /// The repository's URL, without credentials.
    pub url: String,
    /// The bare repository, where the host is a folder.
    pub path: Option<PathBuf>,
    /// Whether this is the full document of a sealed case, which no episode may read.
    pub full: bool,
    /// The branches and their commits.
    pub refs: BTreeMap<String, String>,
    /// Whether anything was written, or would be.
    pub changed: bool,
}

/// Builds the repositories of a corpus on a host, and writes the lock into the corpus.
///
/// The result depends on the corpus alone: no working tree, nothing of the environment. Run again on an unchanged corpus
/// it writes nothing. Branches, tags and objects that the corpus does not give are removed; so are, from a folder,
/// repositories of cases that left the corpus, where they hold exactly what the lock says. The lock is written last, when
/// every repository is right.
///
/// # Errors
/// Fails when a page changed since it was validated, when the owner is no owner name, when a part of an estate would get
/// another owner or recipe than the rest, or when the host refuses or cannot be reached.
pub fn scaffold(corpus: &Corpus, options: &ScaffoldOptions) -> Result<Scaffolded, EstateError> {
    let owner = options.owner_override.as_deref().unwrap_or(&corpus.settings.owner);
    if !is_owner(owner) {
        return Err(EstateError::Owner { owner: owner.to_owned() });
    }
    // Two runs at once would write each other's files.
    let _turn = if options.dry_run { None } else { Some(Turn::take(&corpus.lock_dir)?) };
    let before = Lock::read(&corpus.lock_dir)?;
    if let Some(before) = before.as_ref().filter(|_| options.partial) {
        lock::check_partial(corpus, before, owner, options.recipe)?;
    }
    let shared = Shared::of(corpus)?;
    let session = options.host.open(owner)?;
    // Runs that keep their locks in different folders may still work on the same repositories.
    let _repositories = match session.folder().filter(|_| !options.dry_run) {
        Some(folder) => Turn::take_beside(&folder, &corpus.lock_dir)?,
        None => None,
    };
    let cases: Vec<&Case> = corpus.cases.values().collect();
    let repos = parallel::map(&cases, session.threads(), |case| one(case, &shared, &session, options))?
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let forgotten = match before.filter(|_| !options.partial) {
        Some(before) => forgotten::take_away(corpus, &before, &session, options)?,
        None => Vec::new(),
    };
    let lock = lock::write(corpus, owner, options, &repos)?;
    Ok(Scaffolded { lock, repos, forgotten })
}

/// The repositories of one case; its pages' bytes are in memory one at a time.
fn one(
    case: &Case,
    shared: &Shared,
    session: &Session<'_>,
    options: &ScaffoldOptions,
) -> Result<Vec<RepoMade>, EstateError> {
    let planned = recipe::plan(case, shared, options.recipe)?;
    planned
        .repositories
        .iter()
        .map(|plan| {
            let wanted = Wanted { case, plan, shared, pages: &planned.pages };
            let changed = session.put(wanted, options.dry_run)?;
            let name = plan.name(&case.id);
            Ok(RepoMade {
                case_id: case.id.clone(),
                url: session.url(&name),
                path: session.path(&name),
                full: plan.full,
                refs: plan.branches.iter().map(|(name, branch)| (name.clone(), branch.commit.to_string())).collect(),
                changed,
            })
        })
        .collect()
}
