//! The rules of a corpus (`corpus.md` sections 2 to 6), all of them in one run.

mod case;
mod level;
mod prompts;
mod settings;

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::report::{Place, Report};
use std::collections::BTreeMap;
use std::path::Path;

/// Checks every rule and gives all findings.
///
/// A folder that is not there, or a file that cannot be read, is a finding too (`io.unreadable`).
#[must_use]
pub fn validate(root: &Path) -> Report {
    match read(root, None) {
        Ok((report, _)) => report,
        Err(error) => unreadable(&error),
    }
}

/// Checks the rules of the corpus and of some of its cases; faults inside other cases are not looked at.
///
/// # Errors
/// Fails when the folder is not there, or has no fault and not the cases asked for.
pub fn validate_only(root: &Path, only: &[String]) -> Result<Report, EstateError> {
    Ok(read(root, Some(only))?.0)
}

fn unreadable(error: &EstateError) -> Report {
    let mut report = Report::default();
    let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    report.fail(&Place::corpus("(root)"), "io.unreadable", format!("{error}{cause}"));
    report
}

/// Validates, and gives the corpus when its own level passed; cases with faults are left out of it.
pub(crate) fn read(root: &Path, only: Option<&[String]>) -> Result<(Report, Option<Corpus>), EstateError> {
    if !root.is_dir() {
        return Err(EstateError::NoCorpus { root: root.to_owned() });
    }
    let mut report = Report::default();
    let level = level::check(root, &mut report)?;
    let Some(level) = level else { return Ok((report, None)) };
    let found = level::find_cases(root, &mut report)?;
    let selected = |id: &str| only.is_none_or(|only| only.iter().any(|name| name == id));

    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    let mut seen = Vec::new();
    for place in &found {
        if place.counted {
            seen.push(place.id.as_str());
        }
        if selected(&place.id)
            && let Some(case) = case::check(place, &level.skills, &mut report)?
        {
            cases.insert(case.id.clone(), case);
        }
    }
    if let Some(only) = only {
        let unknown: Vec<String> = only.iter().filter(|id| !seen.contains(&id.as_str())).cloned().collect();
        // A fault of the tree wins over a name that may be unknown because of it.
        if !unknown.is_empty() && report.passed() {
            return Err(EstateError::UnknownCases { root: root.to_owned(), cases: unknown });
        }
    }
    let corpus = Corpus {
        root: root.to_owned(),
        settings: level.settings,
        agents_md: level.agents_md,
        skills: level.skills,
        cases,
    };
    Ok((report, Some(corpus)))
}
