//! The corpus level: `corpus.yaml`, `AGENTS.md`, `skills/`, the root's entries, the splits.

use super::{read_text, read_yaml, settings};
use crate::corpus::{Settings, Split};
use crate::files::{self, Entry, Kind};
use crate::names::{LONGEST_CASE_ID, is_case_id, is_token, shown};
use crate::report::{Collector, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the corpus level gives to the cases.
pub(super) struct Level {
    pub(super) settings: Settings,
    pub(super) agents_md: Vec<u8>,
    pub(super) skills: BTreeMap<String, Vec<u8>>,
    /// The entries of the root.
    entries: Vec<Entry>,
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
pub(super) fn check(root: &Path, found: &mut Collector) -> Option<Level> {
    let entries = match files::list(root) {
        Ok(entries) => entries,
        Err(error) => {
            let detail = format!("the corpus folder {} cannot be read: {error}", shown(&root.to_string_lossy()));
            found.fail(&Place::corpus("(root)"), "io.unreadable", detail);
            return None;
        }
    };
    // A corpus.yaml that cannot be read ends the level, but for the walk over the root's entries.
    let level = corpus_yaml(root, &entries, found).map(|settings| {
        let agents_md = agents(root, &entries, found);
        let skills = skills(root, &entries, found);
        (settings, agents_md, skills)
    });
    walk(&entries, found);
    let (settings, agents_md, skills) = level.filter(|_| found.failed() == 0)?;
    Some(Level { settings: settings?, agents_md: agents_md?, skills, entries })
}

fn kind(entries: &[Entry], name: &str) -> Option<Kind> {
    entries.iter().find(|entry| entry.name == name).map(|entry| entry.kind)
}

/// What there is in place of what is wanted.
fn instead(kind: Option<Kind>) -> String {
    kind.map_or_else(|| "is not there".into(), |kind| format!("is {}", kind.described()))
}

/// The settings, `Some(None)` when a key is at fault, `None` when the file as a whole is.
fn corpus_yaml(root: &Path, entries: &[Entry], found: &mut Collector) -> Option<Option<Settings>> {
    let place = Place::corpus("corpus.yaml").of_file("corpus.yaml");
    let there = kind(entries, "corpus.yaml");
    if there != Some(Kind::File) {
        let detail = format!("corpus.yaml {}; the corpus root must hold it as a regular file", instead(there));
        found.fail(&place, "yaml.missing", detail);
        return None;
    }
    let node = read_yaml(&root.join("corpus.yaml"), &place, ["yaml.utf8", "yaml.syntax"], found)?;
    match node {
        Some(node) if node.map().is_some() => Some(settings::check(&node, &place, found)),
        Some(node) => {
            let detail = format!("corpus.yaml must be a mapping, found {}", node.described());
            found.fail_at(&place, node.at, "yaml.not-mapping", detail);
            None
        }
        None => {
            found.fail(&place, "yaml.not-mapping", "corpus.yaml must be a mapping, found nothing");
            None
        }
    }
}

fn agents(root: &Path, entries: &[Entry], found: &mut Collector) -> Option<Vec<u8>> {
    let place = Place::corpus("AGENTS.md").of_file("AGENTS.md");
    let there = kind(entries, "AGENTS.md");
    if there != Some(Kind::File) {
        let detail = format!("AGENTS.md {}; the corpus root must hold it as a regular file", instead(there));
        found.fail(&place, "agents.missing", detail);
        return None;
    }
    read_text(root, &root.join("AGENTS.md"), &place, "agents.empty-or-utf8", found)
}

fn skills(root: &Path, entries: &[Entry], found: &mut Collector) -> BTreeMap<String, Vec<u8>> {
    let place = Place::corpus("skills/");
    let directory = root.join("skills");
    let mut skills = BTreeMap::new();
    let there = kind(entries, "skills");
    if there != Some(Kind::Directory) {
        let detail = format!("skills {}; the corpus root must hold it as a directory, empty or not", instead(there));
        found.fail(&place.of_file("skills"), "skills.missing", detail);
        return skills;
    }
    let entries = match files::list(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            found.unreadable(&place, "skills", &error);
            return skills;
        }
    };
    for entry in entries {
        let name = shown(&entry.name);
        let here = place.of_file(format!("skills/{}", entry.name));
        if entry.kind != Kind::Directory {
            let detail = format!("skills/{name} is {}; a skill is skills/NAME/SKILL.md", entry.kind.described());
            found.fail(&here, "skills.stray", detail);
            continue;
        }
        if !is_token(&entry.name) {
            let detail = format!("skills/{name}: `{name}` is no skill name: {}", crate::names::TOKEN);
            found.fail(&here, "skills.name-token", detail);
            continue;
        }
        let card = directory.join(&entry.name).join("SKILL.md");
        match files::look(&card) {
            Ok(Some(Kind::File)) => {}
            Ok(there) => {
                found.fail(&here, "skills.card-missing", format!("skills/{name}/SKILL.md {}", instead(there)));
                continue;
            }
            Err(error) => {
                found.unreadable(&place, &format!("skills/{name}/SKILL.md"), &error);
                continue;
            }
        }
        let here = place.of_file(format!("skills/{name}/SKILL.md"));
        if let Some(content) = read_text(root, &card, &here, "skills.card-empty-or-utf8", found) {
            skills.insert(entry.name, content);
        }
    }
    skills
}

fn walk(entries: &[Entry], found: &mut Collector) {
    for Entry { name, kind } in entries {
        match name.as_str() {
            "corpus.yaml" | "AGENTS.md" | "skills" => {}
            hidden if hidden.starts_with('.') => {}
            "cases" if *kind == Kind::Directory => found.fail(
                &Place::corpus("cases/").of_file("cases"),
                "root.pre-split-cases",
                "cases/ is the retired layout: move each case under train/cases/ or eval/cases/",
            ),
            "train" | "eval" => {
                if *kind != Kind::Directory {
                    let detail = format!("{name} is {}; a split is a directory", kind.described());
                    found.fail(&Place::corpus(name).of_file(name), "root.split-not-dir", detail);
                }
            }
            "corpus.lock.json" | "taskbank.parquet" => {
                if *kind == Kind::Directory {
                    let detail = format!("{name} is a directory, and a file of that name is generated");
                    found.fail(&Place::corpus(name).of_file(name), "root.generated-is-dir", detail);
                }
            }
            _ => {
                let detail = format!("{} does not belong in the corpus root", shown(name));
                found.fail(&Place::corpus("(root)").of_file(name), "root.stray", detail);
            }
        }
    }
}

/// Lists the cases of both splits, train first.
pub(super) fn find_cases(root: &Path, level: &Level, found: &mut Collector) -> Vec<CasePlace> {
    let mut places = Vec::new();
    let mut ids = BTreeSet::new();
    let (mut splits, mut listed) = (0, 0);
    for split in [Split::Train, Split::Eval] {
        if kind(&level.entries, split.as_str()) == Some(Kind::Directory) {
            splits += 1;
            listed += usize::from(cases_of(root, split, &mut ids, &mut places, found));
        }
    }
    if splits == 0 {
        let detail = "there is no case: put cases under train/cases/ or eval/cases/";
        found.fail(&Place::corpus("train/eval"), "split.none", detail);
    } else if places.is_empty() && listed > 0 {
        found.fail(&Place::corpus("cases"), "split.no-cases", "no split holds a case");
    }
    // A case that stands in both splits is dropped from both.
    let doubled: BTreeSet<String> = places
        .iter()
        .filter(|place| matches!(place.fault, Some(("case.both-splits", _))))
        .map(|place| place.id.clone())
        .collect();
    places.retain(|place| place.fault.is_some() || !doubled.contains(&place.id));
    for place in places.iter_mut().filter(|place| doubled.contains(&place.id)) {
        place.counted = true;
    }
    places
}

/// Lists the cases of a split; tells whether it has a directory of them.
fn cases_of(
    root: &Path,
    split: Split,
    ids: &mut BTreeSet<String>,
    places: &mut Vec<CasePlace>,
    found: &mut Collector,
) -> bool {
    let name = split.as_str();
    let directory = root.join(name);
    let place = Place::split(name, format!("{name}/"));
    let entries = match files::list(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            found.unreadable(&place, name, &error);
            return false;
        }
    };
    for Entry { name: stray, kind } in &entries {
        if stray != "cases" || *kind != Kind::Directory {
            let detail = format!(
                "{name}/{} is {}; a split holds the directory cases and nothing else",
                shown(stray),
                kind.described()
            );
            found.fail(&place.of_file(format!("{name}/{stray}")), "split.stray", detail);
        }
    }
    let place = Place::split(name, format!("{name}/cases/"));
    let there = kind(&entries, "cases");
    if there != Some(Kind::Directory) {
        let detail = format!("{name}/cases {}; a split holds the directory cases", instead(there));
        found.fail(&place, "split.cases-missing", detail);
        return false;
    }
    let directory = directory.join("cases");
    let entries = match files::list(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            found.unreadable(&place, &format!("{name}/cases"), &error);
            return false;
        }
    };
    for entry in entries {
        let id = shown(&entry.name);
        let fault = match entry.kind {
            Kind::File | Kind::Special(_) => {
                let detail = format!("{name}/cases/{id} is {}; a case is a directory", entry.kind.described());
                found.fail(&place.of_file(format!("{name}/cases/{}", entry.name)), "split.cases-stray-file", detail);
                continue;
            }
            Kind::Link => {
                Some(("case.id", format!("{name}/cases/{id} is a symbolic link; a case is a directory of its own")))
            }
            Kind::Directory if entry.name.len() > LONGEST_CASE_ID => {
                let detail = format!(
                    "{name}/cases/{id}: a case id has at most {LONGEST_CASE_ID} characters, so that its repositories' \
                     names fit; this has {}",
                    entry.name.len()
                );
                Some(("case.id", detail))
            }
            Kind::Directory if !is_case_id(&entry.name) => Some((
                "case.id",
                format!(
                    "`{id}` is no case id: small letters, digits, underscore and dash, the first a letter or digit"
                ),
            )),
            Kind::Directory if !ids.insert(entry.name.clone()) => {
                Some(("case.both-splits", format!("case {id} stands in train/ and in eval/; it belongs to one split")))
            }
            Kind::Directory => None,
        };
        let path = directory.join(&entry.name);
        places.push(CasePlace { id: entry.name, split, path, counted: fault.is_none(), fault });
    }
    true
}
