//! The corpus level: `corpus.yaml`, `AGENTS.md`, `skills/`, the root's entries, the splits.

use super::settings;
use crate::corpus::{Settings, Split};
use crate::error::EstateError;
use crate::files::{self, Kind};
use crate::names::{is_case_id, is_token, shown};
use crate::report::{Place, Report};
use crate::yaml;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the corpus level gives to the cases.
pub(super) struct Level {
    pub(super) settings: Settings,
    pub(super) agents_md: Vec<u8>,
    pub(super) skills: BTreeMap<String, Vec<u8>>,
}

/// A directory that is taken for a case.
pub(super) struct CasePlace {
    pub(super) id: String,
    pub(super) split: Split,
    pub(super) path: PathBuf,
    /// What is wrong with the directory itself, as rule and words; then it is not read further.
    pub(super) fault: Option<(&'static str, String)>,
    /// Whether this directory makes the case known.
    pub(super) counted: bool,
}

/// Checks the corpus level; `None` when something in it fails.
pub(super) fn check(root: &Path, report: &mut Report) -> Result<Option<Level>, EstateError> {
    let settings = corpus_yaml(root, report)?;
    let agents_md = agents(root, report)?;
    let skills = skills(root, report)?;
    entries(root, report)?;
    if !report.passed() {
        return Ok(None);
    }
    Ok(settings.zip(agents_md).map(|(settings, agents_md)| Level { settings, agents_md, skills }))
}

fn corpus_yaml(root: &Path, report: &mut Report) -> Result<Option<Settings>, EstateError> {
    let place = Place::corpus("corpus.yaml").of_file("corpus.yaml");
    let path = root.join("corpus.yaml");
    if files::kind(&path) != Some(Kind::File) {
        report.fail(&place, "yaml.missing", "corpus.yaml is not there as a regular file");
        return Ok(None);
    }
    let Some(content) = files::read_at_most(&path, yaml::LONGEST)? else {
        report.fail(&place, "yaml.syntax", format!("corpus.yaml holds more than {} bytes", yaml::LONGEST));
        return Ok(None);
    };
    let Ok(text) = String::from_utf8(content) else {
        report.fail(&place, "yaml.utf8", "corpus.yaml is not UTF-8");
        return Ok(None);
    };
    match yaml::parse(&text) {
        Err(fault) => report.fail_at(&place, fault.line, "yaml.syntax", format!("corpus.yaml {}", fault.what)),
        Ok(Some(node)) if node.map().is_some() => return Ok(settings::check(&node, &place, report)),
        Ok(node) => {
            let found = node.map_or_else(|| "nothing".to_owned(), |node| node.described());
            report.fail(&place, "yaml.not-mapping", format!("corpus.yaml holds {found} where a mapping is needed"));
        }
    }
    Ok(None)
}

fn agents(root: &Path, report: &mut Report) -> Result<Option<Vec<u8>>, EstateError> {
    let place = Place::corpus("AGENTS.md").of_file("AGENTS.md");
    let path = root.join("AGENTS.md");
    if files::kind(&path) != Some(Kind::File) {
        report.fail(&place, "agents.missing", "AGENTS.md is not there as a regular file in the corpus root");
        return Ok(None);
    }
    let content = files::read(&path)?;
    if content.is_empty() || std::str::from_utf8(&content).is_err() {
        report.fail(&place, "agents.empty-or-utf8", "AGENTS.md is empty or not UTF-8");
        return Ok(None);
    }
    Ok(Some(content))
}

fn skills(root: &Path, report: &mut Report) -> Result<BTreeMap<String, Vec<u8>>, EstateError> {
    let place = Place::corpus("skills/");
    let directory = root.join("skills");
    let mut skills = BTreeMap::new();
    if files::kind(&directory) != Some(Kind::Directory) {
        report.fail(&place, "skills.missing", "the directory skills/ is not there (it may be empty)");
        return Ok(skills);
    }
    for entry in files::list(&directory)? {
        let name = shown(&entry.name);
        if entry.kind != Kind::Directory {
            report.fail(
                &place,
                "skills.stray",
                format!("skills/{name} is no directory; a skill is skills/NAME/SKILL.md"),
            );
            continue;
        }
        if !is_token(&entry.name) {
            report.fail(&place, "skills.name-token", format!("skills/{name}: `{name}` is no skill name"));
            continue;
        }
        let card = directory.join(&entry.name).join("SKILL.md");
        let place = place.clone().of_file(format!("skills/{name}/SKILL.md"));
        if files::kind(&card) != Some(Kind::File) {
            report.fail(&place, "skills.card-missing", format!("skills/{name} has no file SKILL.md"));
            continue;
        }
        let content = files::read(&card)?;
        if content.is_empty() || std::str::from_utf8(&content).is_err() {
            report.fail(&place, "skills.card-empty-or-utf8", format!("skills/{name}/SKILL.md is empty or not UTF-8"));
            continue;
        }
        skills.insert(entry.name, content);
    }
    Ok(skills)
}

fn entries(root: &Path, report: &mut Report) -> Result<(), EstateError> {
    for entry in files::list(root)? {
        let name = shown(&entry.name);
        match entry.name.as_str() {
            "corpus.yaml" | "AGENTS.md" | "skills" => {}
            hidden if hidden.starts_with('.') => {}
            "cases" if entry.kind == Kind::Directory => report.fail(
                &Place::corpus("cases/"),
                "root.pre-split-cases",
                "cases/ is the retired layout: move each case under train/cases/ or eval/cases/",
            ),
            "train" | "eval" => {
                if entry.kind != Kind::Directory {
                    report.fail(&Place::corpus(&name), "root.split-not-dir", format!("{name} is no directory"));
                }
            }
            "corpus.lock.json" | "taskbank.parquet" => {
                if entry.kind == Kind::Directory {
                    let detail = format!("{name} is a directory, and a file of that name is generated");
                    report.fail(&Place::corpus(&name), "root.generated-is-dir", detail);
                }
            }
            _ => report.fail(
                &Place::corpus("(root)"),
                "root.stray",
                format!("{name} does not belong in the corpus root"),
            ),
        }
    }
    Ok(())
}

/// Lists the cases of both splits, train first.
pub(super) fn find_cases(root: &Path, report: &mut Report) -> Result<Vec<CasePlace>, EstateError> {
    let mut found = Vec::new();
    let mut ids = BTreeSet::new();
    let (mut splits, mut with_cases) = (0, 0);
    for split in [Split::Train, Split::Eval] {
        let directory = root.join(split.as_str());
        if files::kind(&directory) != Some(Kind::Directory) {
            continue;
        }
        splits += 1;
        let name = split.as_str();
        let place = Place::split(name, format!("{name}/"));
        for entry in files::list(&directory)? {
            if entry.name != "cases" || entry.kind != Kind::Directory {
                let stray = shown(&entry.name);
                report.fail(
                    &place,
                    "split.stray",
                    format!("{name}/{stray} does not belong here, only the directory cases"),
                );
            }
        }
        let place = Place::split(name, format!("{name}/cases/"));
        if files::kind(&directory.join("cases")) != Some(Kind::Directory) {
            report.fail(&place, "split.cases-missing", format!("{name}/cases/ is not there as a directory"));
            continue;
        }
        with_cases += 1;
        for entry in files::list(&directory.join("cases"))? {
            let path = directory.join("cases").join(&entry.name);
            let id = shown(&entry.name);
            let fault = match entry.kind {
                Kind::File => {
                    report.fail(&place, "split.cases-stray-file", format!("{name}/cases/{id} is no directory"));
                    continue;
                }
                Kind::Other => Some(("case.id", format!("{name}/cases/{id} is a link or no directory"))),
                Kind::Directory if !is_case_id(&entry.name) => Some((
                    "case.id",
                    format!(
                        "`{id}` is no case id: small letters, digits, underscore and dash, the first a letter or digit"
                    ),
                )),
                Kind::Directory if !ids.insert(entry.name.clone()) => Some((
                    "case.both-splits",
                    format!("case {id} stands in train/ and in eval/; it belongs to one split"),
                )),
                Kind::Directory => None,
            };
            found.push(CasePlace { id: entry.name, split, path, counted: fault.is_none(), fault });
        }
    }
    if splits == 0 {
        let detail = "there is no case: put cases under train/cases/ or eval/cases/";
        report.fail(&Place::corpus("train/eval"), "split.none", detail);
    } else if found.is_empty() && with_cases > 0 {
        report.fail(&Place::corpus("cases"), "split.no-cases", "no split holds a case");
    }
    // A case that stands in both splits is dropped from both.
    let doubled: BTreeSet<String> = found
        .iter()
        .filter(|place| matches!(place.fault, Some(("case.both-splits", _))))
        .map(|place| place.id.clone())
        .collect();
    found.retain(|place| place.fault.is_some() || !doubled.contains(&place.id));
    for place in found.iter_mut().filter(|place| doubled.contains(&place.id)) {
        place.counted = true;
    }
    Ok(found)
}
