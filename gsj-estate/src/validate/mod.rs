//! The rules of a corpus (`corpus.md` sections 2 to 6), all of them in one run.

mod case;
mod level;
mod pages;
mod prompts;
mod settings;
mod text;
mod watch;

pub use watch::Watch;

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::files;
use crate::names::printable;
use crate::report::{At, Collector, Place, Report, below};
use crate::yaml::{self, Node};
use case::{Checked, Context};
use level::{CasePlace, Level};
use pages::Room;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks every rule and gives all findings.
///
/// A folder that is not there, or a file that cannot be read, is a finding too (`io.unreadable`).
#[must_use]
pub fn validate(root: &Path) -> Report {
    findings(root, None).unwrap_or_else(|error| {
        let mut found = Collector::default();
        found.fail(&Place::corpus("(root)"), "io.unreadable", error.to_string());
        found.report()
    })
}

/// Checks the rules of the corpus and of some of its cases; faults inside other cases are not looked at.
///
/// # Errors
/// Fails when the folder is not there, or has no fault and not the cases asked for.
pub fn validate_only(root: &Path, only: &[String]) -> Result<Report, EstateError> {
    findings(root, Some(only))
}

fn findings(root: &Path, only: Option<&[String]>) -> Result<Report, EstateError> {
    let mut room = Room::new();
    let (report, _) = walk(root, only, |place, level| {
        case::check(place, Context { skills: &level.skills, room: &mut room, wanted: false }).findings
    })?;
    Ok(report)
}

/// Validates, and gives the corpus when its own level passed; cases with faults are left out of it.
pub(crate) fn read(root: &Path, only: Option<&[String]>) -> Result<(Report, Option<Corpus>), EstateError> {
    let mut room = Room::new();
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    let (report, level) = walk(root, only, |place, level| {
        let context = Context { skills: &level.skills, room: &mut room, wanted: true };
        let Checked { findings, case } = case::check(place, context);
        cases.extend(case.map(|case| (case.id.clone(), case)));
        findings
    })?;
    let corpus = level.map(|level| Corpus {
        root: root.to_owned(),
        lock_dir: root.to_owned(),
        settings: level.settings,
        agents_md: level.agents_md,
        skills: level.skills,
        cases,
    });
    Ok((report, corpus))
}

/// Checks the corpus level, and the cases by a function that gives their findings.
fn walk(
    root: &Path,
    only: Option<&[String]>,
    mut check: impl FnMut(&CasePlace, &Level) -> Vec<crate::Finding>,
) -> Result<(Report, Option<Level>), EstateError> {
    if !root.is_dir() {
        return Err(EstateError::NoCorpus { root: root.to_owned() });
    }
    let mut found = Collector::default();
    let Some(level) = level::check(root, &mut found) else { return Ok((found.report(), None)) };
    let places = level::find_cases(root, &level, &mut found);
    let selected = |id: &str| only.is_none_or(|only| only.iter().any(|name| name == id));
    for place in places.iter().filter(|place| selected(&place.id)) {
        check(place, &level).into_iter().for_each(|finding| found.take(finding));
    }
    if let Some(only) = only {
        let seen: BTreeSet<&str> = places.iter().filter(|place| place.counted).map(|place| place.id.as_str()).collect();
        let unknown: Vec<String> = only
            .iter()
            .filter(|id| !seen.contains(id.as_str()))
            .map(|id| if id.is_empty() { "of an empty name".to_owned() } else { printable(id) })
            .collect();
        // A fault of the tree wins over a name that may be unknown because of it.
        if !unknown.is_empty() && found.failed() == 0 {
            return Err(EstateError::UnknownCases { root: root.to_owned(), cases: unknown });
        }
    }
    Ok((found.report(), Some(level)))
}

/// Reads a YAML file; the rules are those of bad UTF-8 and bad syntax. `None` after a fault, which is then reported.
fn read_yaml(path: &Path, place: &Place, rules: [&'static str; 2], found: &mut Collector) -> Option<Option<Node>> {
    let [utf8, syntax] = rules;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let content = match files::bounded(path, yaml::LONGEST) {
        Ok(Some(content)) => content,
        Ok(None) => {
            found.fail(place, syntax, format!("{name} is longer than {} MiB", yaml::LONGEST >> 20));
            return None;
        }
        Err(error) => {
            let file = place.file.clone().unwrap_or_default();
            found.unreadable(place, &file, &error);
            return None;
        }
    };
    let text = match std::str::from_utf8(&content) {
        Ok(text) => text,
        Err(error) => {
            let valid = content.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok());
            found.fail_at(place, At::of(valid.unwrap_or_default()), utf8, format!("{name} is not UTF-8"));
            return None;
        }
    };
    yaml::parse(text).map_err(|fault| found.fail_at(place, fault.at, syntax, format!("{name} {}", fault.what))).ok()
}

/// Reads a text file that the corpus cannot be without; an empty one is as bad as none.
fn read_text(root: &Path, path: &Path, place: &Place, rule: &'static str, found: &mut Collector) -> Option<Vec<u8>> {
    let name = below(root, path);
    let content = match files::bounded(path, yaml::LONGEST) {
        Ok(Some(content)) => content,
        Ok(None) => {
            found.fail(place, rule, format!("{name} is longer than {} MiB", yaml::LONGEST >> 20));
            return None;
        }
        Err(error) => {
            found.unreadable(place, &name, &error);
            return None;
        }
    };
    if content.is_empty() {
        found.fail(place, rule, format!("{name} is empty"));
        return None;
    }
    if let Err(fault) = text::check(&content) {
        found.fail_at(place, fault.at, rule, format!("{name} {fault}"));
        return None;
    }
    Some(content)
}
