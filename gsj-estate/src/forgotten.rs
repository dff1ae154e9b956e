//! Repositories of cases that left the corpus.
//!
//! Left where they are, they would stay readable for good, and no later run would know of them: the lock forgets a case
//! in the run that misses it. So a folder's are taken away, but only what is proven to be ours: the lock names it, it was
//! written for this corpus and this owner, and the repository holds exactly the refs that the lock says. Everything else
//! is reported and left.

use crate::corpus::Corpus;
use crate::error::EstateError;
use crate::host::Session;
use crate::lock::Lock;
use crate::names::{is_case_id, is_owner};
use crate::recipe::Recipe;
use crate::repository;
use crate::scaffold::ScaffoldOptions;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A repository that the lock knew and the corpus gives no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// The case.
    pub case_id: String,
    /// The repository's URL.
    pub url: String,
    /// Whether it was taken away, or would be.
    pub removed: bool,
    /// Why it was not.
    pub why: Option<String>,
}

pub(crate) fn take_away(
    corpus: &Corpus,
    before: &Lock,
    session: &Session<'_>,
    options: &ScaffoldOptions,
) -> Result<Vec<Forgotten>, EstateError> {
    let mut found = Vec::new();
    let head = before.corpus();
    let text = |key: &str| head.and_then(|head| head.get(key)).and_then(Value::as_str);
    let same_estate = text("name") == Some(&corpus.settings.name) && text("owner") == Some(session.owner());
    let other_owner = text("owner").filter(|owner| *owner != session.owner() && is_owner(owner));
    for (case_id, case) in before.cases().into_iter().flatten() {
        let here = corpus.cases.contains_key(case_id);
        // Of a lock that somebody wrote by hand nothing is believed that could be a path.
        if !is_case_id(case_id) {
            continue;
        }
        if let Some(owner) = other_owner {
            of_another(case_id, case, owner, session, &mut found);
            continue;
        }
        for (key, suffix, wanted) in
            [("refs", "", here), ("full_refs", ".full", here && options.recipe == Recipe::Sealed)]
        {
            let Some(refs) = case.get(key).filter(|_| !wanted) else { continue };
            let name = format!("{case_id}{suffix}");
            let refusal = if options.keep_forgotten {
                Some("it was asked to be kept".to_owned())
            } else if !same_estate {
                Some("the lock was written for another corpus or owner".to_owned())
            } else {
                match session.path(&name) {
                    None => Some("only a folder's repositories are taken away; remove it on the host".to_owned()),
                    Some(path) => remove(&path, refs, options.dry_run)?,
                }
            };
            found.push(Forgotten {
                case_id: case_id.clone(),
                url: session.url(&name),
                removed: refusal.is_none(),
                why: refusal,
            });
        }
    }
    Ok(found)
}

/// The repositories of a case under the owner that the lock was written for: the lock forgets them, and they are
/// somebody else's to remove.
fn of_another(case_id: &str, case: &Value, owner: &str, session: &Session<'_>, found: &mut Vec<Forgotten>) {
    for (key, suffix) in [("refs", ""), ("full_refs", ".full")] {
        let name = format!("{case_id}{suffix}");
        let ours = format!("{}/{name}.git", session.owner());
        let gone = |path: PathBuf| {
            let base = path.parent().and_then(Path::parent);
            base.is_some_and(|base| !base.join(owner).join(format!("{name}.git")).exists())
        };
        if case.get(key).is_none() || session.path(&name).is_some_and(gone) {
            continue;
        }
        let url = session.url(&name);
        found.push(Forgotten {
            case_id: case_id.to_owned(),
            url: url.strip_suffix(&ours).map_or_else(|| url.clone(), |base| format!("{base}{owner}/{name}.git")),
            removed: false,
            why: Some(format!(
                "the lock was written for the owner `{owner}`, whose repositories are not ours to remove"
            )),
        });
    }
}

/// Removes a repository that holds exactly these refs; gives the reason where it does not.
fn remove(path: &Path, refs: &Value, dry_run: bool) -> Result<Option<String>, EstateError> {
    let fault = |error| EstateError::file("remove", path, error);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A run that was stopped while it removed has left this; what it holds was looked at before it got this name.
    let aside = path.with_file_name(format!(".{name}.removed"));
    if !dry_run {
        remove_tree(&aside).map_err(fault)?;
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
        Ok(found) if !found.is_dir() => return Ok(Some("it is no directory".into())),
        Ok(_) => {}
    }
    let held = match repository::check_foreign(path).and_then(|()| repository::refs(path)) {
        Ok(held) => held,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let held: BTreeMap<String, Option<String>> =
        held.into_iter().map(|(name, id)| (name, id.map(|id| id.to_string()))).collect();
    let locked: BTreeMap<String, Option<String>> = refs
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, id)| (format!("refs/heads/{name}"), id.as_str().map(str::to_owned)))
        .collect();
    if held != locked || held.is_empty() {
        return Ok(Some("it does not hold exactly what the lock says".into()));
    }
    if !dry_run {
        fs::rename(path, &aside).and_then(|()| remove_tree(&aside)).map_err(fault)?;
    }
    Ok(None)
}

fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
