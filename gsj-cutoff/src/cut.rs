//! Cutting a repository at a timestep, a commit, a branch or a date.

use crate::audit::{Expectation, audit};
use crate::closure::{self, Tree};
use crate::error::CutoffError;
use crate::evidence::{Evidence, History, LaterDated};
use crate::names;
use crate::plan::{self, Tip};
use crate::source::SourceRepository;
use crate::write::{self, Written};
use gix::objs::tree::EntryKind;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Where to cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// Branch `timestep-T` of a case repository: one commit, which must hold exactly the pages 1..T.
    Timestep(u32),
    /// The tip of a branch.
    Branch(String),
    /// A commit, by its full id in hex. HEAD is detached at it, since the commit does not say which branch it was on.
    Commit(String),
    /// The first commit on the branch's first-parent line whose committer date is not after `seconds`.
    ///
    /// All that it reaches is kept. Commits among those whose own committer date is later (clocks differ, and a merge
    /// can bring them in) are told in [`CutReport::later_dated`].
    Date {
        /// Seconds since 1970.
        seconds: i64,
        /// The branch; `None` takes the one that the source's HEAD names.
        branch: Option<String>,
    },
}

/// A commit, by whichever name, that a cut must not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deny {
    /// The full id of the commit, in hex.
    Commit(String),
    /// The patch id of its change, in hex, as `git diff-tree -p --full-index COMMIT | git patch-id --stable` gives it;
    /// finds the same change on another branch, rebased or picked.
    PatchId(String),
}

/// What to do with a submodule at the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Submodules {
    /// Keep the commit that it is pinned at, and an empty directory: nothing of the other repository is there.
    #[default]
    Keep,
    /// Refuse the cut.
    Refuse,
}

/// What to cut, and where to.
#[derive(Debug, Clone)]
pub struct CutRequest<'a> {
    /// A repository on this machine, bare or not; it is only read.
    pub source: &'a Path,
    /// Where to cut.
    pub cut: Cut,
    /// How much of the past is kept; a timestep has none.
    pub history: History,
    /// What must not be reached. A cut that reaches it is refused, even where a shallow boundary would hide the commit:
    /// its content would be in the files.
    pub deny: &'a [Deny],
    /// What to do with submodules.
    pub submodules: Submodules,
    /// What the objects of the result may inflate to: see [`Expectation::most_inflated`].
    pub most_inflated: Option<u64>,
    /// Where to write; absent or an empty directory.
    pub dest: &'a Path,
    /// The case, for the evidence.
    pub case_id: Option<&'a str>,
    /// Where the repository is served, for the evidence; credentials in it are dropped.
    pub clone_url: Option<&'a str>,
    /// The recipe of the repository (`sealed` or `reference`), for the evidence.
    pub recipe: Option<&'a str>,
}

impl<'a> CutRequest<'a> {
    /// A cut with its whole history (a timestep: none), nothing denied, submodules kept, and nothing to state.
    #[must_use]
    pub fn new(source: &'a Path, cut: Cut, dest: &'a Path) -> Self {
        let history = if matches!(cut, Cut::Timestep(_)) { History::None } else { History::Full };
        Self {
            source,
            cut,
            history,
            deny: &[],
            submodules: Submodules::Keep,
            most_inflated: None,
            dest,
            case_id: None,
            clone_url: None,
            recipe: None,
        }
    }
}

/// What was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CutReport {
    /// What the audit of the result measured.
    pub evidence: Evidence,
    /// For a cut at a date: kept commits whose committer date is later than it, in the order of a walk from the cut.
    pub later_dated: Vec<LaterDated>,
    /// Submodules that were kept as what they are pinned at, by path.
    pub submodules: Vec<Submodule>,
}

/// A submodule at the cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Submodule {
    /// Its path, control characters and broken UTF-8 escaped.
    pub path: String,
    /// The commit of the other repository, in hex.
    pub commit: String,
}

/// Makes a checkout that holds a cut of the source and nothing else, and audits it.
///
/// Kept are the commits of the cut, their trees and files, and one branch (none for [`Cut::Commit`]). Nothing else of
/// the source survives: no other ref, tag, note, replacement, graft, reflog, stash, setting, hook or remote, no object
/// store beside the new one. The bytes under `.git` depend only on the objects, on how they are packed in the source
/// (with [`History::None`] not even on that), and on the branch's name. Files have mode 0644 or 0755 whatever the umask
/// and the time of the cut's commit. No process is started, nothing in the environment is read.
///
/// # Errors
/// Fails when the tip or an object is not there, when something denied is reached, when the tree of the cut holds a name
/// or link that must not be written, when the destination is not empty, or when the result fails its audit. Whatever was
/// written is then gone again.
pub fn cut(request: &CutRequest<'_>) -> Result<CutReport, CutoffError> {
    let timestep = match &request.cut {
        Cut::Timestep(timestep) if request.history == History::None => Some(*timestep),
        Cut::Timestep(timestep) => return Err(CutoffError::HistoryOfTimestep { timestep: *timestep }),
        _ => None,
    };
    let repository = SourceRepository::open(request.source)?;
    let mut source = repository.objects()?;
    let tip = plan::tip(&repository, &mut source, &request.cut)?;
    let boundary = repository.shallow()?;
    plan::deny(&mut source, tip.commit, request.deny, &boundary)?;

    let commit = closure::read_commit(&mut source, tip.commit)?;
    let tree = closure::read_tree(&mut source, commit.tree)?;
    if request.submodules == Submodules::Refuse
        && let Some((path, _)) = tree.gitlinks.first()
    {
        return Err(CutoffError::Refused { path: names::shown(path), what: "it is a submodule" });
    }
    if let Some(timestep) = timestep {
        check_pages(timestep, &tree)?;
    }
    let date = match request.cut {
        Cut::Date { seconds, .. } => Some(seconds),
        _ => None,
    };
    // Content that is taken over as it stands is compared with its id by the audit, which reads all of it anyway.
    source.set_verified(request.history == History::None);
    let kept = plan::kept(&mut source, tip.commit, request.history, &boundary, date)?;

    let created = write::prepare(request.dest)?;
    let written = Written { dest: request.dest, tip: &tip, kept: &kept, tree: &tree, seconds: commit.seconds };
    let result = written
        .objects(&mut source, request.history)
        .and_then(|contents| written.files(&mut source, &contents))
        .and_then(|()| {
            // The audit takes as much memory again.
            drop(source);
            inspect(request, timestep, &tip)
        });
    match result {
        Ok(evidence) => Ok(CutReport {
            evidence,
            later_dated: kept.later,
            submodules: tree
                .gitlinks
                .iter()
                .map(|(path, id)| Submodule { path: names::shown(path), commit: id.to_string() })
                .collect(),
        }),
        Err(error) => {
            write::take_away(request.dest, created);
            Err(error)
        }
    }
}

fn inspect(request: &CutRequest<'_>, timestep: Option<u32>, tip: &Tip) -> Result<Evidence, CutoffError> {
    let expectation = Expectation {
        case_id: request.case_id.map(str::to_owned),
        timestep,
        clone_url: request.clone_url.map(str::to_owned),
        recipe: request.recipe.map(str::to_owned),
        most_inflated: request.most_inflated,
        ..Expectation::default()
    };
    let found = audit(request.dest, &expectation)?;
    let commit = tip.commit.to_string();
    if found.evidence.commit != commit {
        return Err(CutoffError::object(tip.commit, "is not the commit that was checked out"));
    }
    match found.leaks.first() {
        None => Ok(found.evidence),
        Some(leak) => {
            Err(CutoffError::Leaks { path: request.dest.to_owned(), count: found.leaks.len(), first: leak.to_string() })
        }
    }
}

fn check_pages(timestep: u32, tree: &Tree) -> Result<(), CutoffError> {
    let fault = |found: String| CutoffError::Pages { branch: format!("timestep-{timestep}"), timestep, found };
    for file in &tree.files {
        let under_md = file.path == b"md" || file.path.starts_with(b"md/");
        if under_md && (file.page().is_none() || file.kind == EntryKind::Link) {
            return Err(fault(format!("`{}`, which is no page,", names::shown(&file.path))));
        }
    }
    let pages = tree.pages();
    if let Some(later) = pages.iter().find(|page| **page > timestep) {
        return Err(fault(format!("page {later}")));
    }
    if pages != (1..=timestep).collect::<BTreeSet<_>>() {
        let missing = (1..=timestep).find(|page| !pages.contains(page)).unwrap_or_default();
        return Err(fault(format!("{} pages (the first missing is {missing})", pages.len())));
    }
    Ok(())
}

/// Reads a date as seconds since 1970: `2026-01-31T12:00:00Z` and the other forms of git that state their offset,
/// `@1767225600`, or a day alone, `2026-01-31`, which means its first second in UTC.
///
/// ```
/// use gsj_cutoff::parse_date;
/// assert_eq!(parse_date("2026-01-01T00:00:00Z")?, 1_767_225_600);
/// assert_eq!(parse_date("2026-01-01T02:00:00+02:00")?, 1_767_225_600);
/// assert_eq!(parse_date("@1767225600")?, 1_767_225_600);
/// assert_eq!(parse_date("2026-01-01")?, 1_767_225_600);
/// assert!(parse_date("yesterday").is_err(), "the library has no clock");
/// assert!(parse_date("2026-01-01T00:00:00").is_err(), "whose midnight?");
/// # Ok::<(), gsj_cutoff::CutoffError>(())
/// ```
///
/// # Errors
/// Fails for everything else; above all for times without an offset, which would depend on the machine's zone.
pub fn parse_date(text: &str) -> Result<i64, CutoffError> {
    let fault = || CutoffError::Date { text: text.to_owned() };
    let trimmed = text.trim();
    let bytes = trimmed.as_bytes();
    let day = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    // An offset ends in `Z` or in `+hhmm`, `-hh:mm`; a date alone ends in `-mm-dd`.
    let digits = trimmed.trim_end_matches(|character: char| character.is_ascii_digit() || character == ':');
    let offset = trimmed.len() > digits.len() && digits.ends_with(['+', '-']) && trimmed.len() - digits.len() <= 5;
    if !(day || trimmed.starts_with('@') || trimmed.ends_with(['Z', 'z']) || (offset && trimmed.contains(':'))) {
        let raw = trimmed.split_once(' ').is_some_and(|(seconds, _)| seconds.bytes().all(|byte| byte.is_ascii_digit()));
        if !(raw && offset) {
            return Err(fault());
        }
    }
    gix::date::parse(trimmed, None).map(|time| time.seconds).map_err(|_| fault())
}
