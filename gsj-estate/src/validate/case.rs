//! One case: its `case.yaml`, its timesteps, their pages.

use super::level::CasePlace;
use super::prompts;
use crate::corpus::{Case, Page, Timestep};
use crate::error::EstateError;
use crate::files::{self, Kind};
use crate::names::{self, shown};
use crate::report::{Place, Report};
use crate::yaml;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most numbers that one message lists.
const LISTED: usize = 20;

/// A timestep as far as it could be read.
struct Read {
    pages: BTreeMap<u32, Page>,
    prompts: Vec<crate::corpus::Prompt>,
}

/// Checks a case; gives it when nothing in it fails.
pub(super) fn check(
    place: &CasePlace,
    skills: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> Result<Option<Case>, EstateError> {
    let split = place.split.as_str();
    let whole = Place::case(shown(&place.id), split, "(case)");
    if let Some((rule, detail)) = &place.fault {
        report.fail(&whole, rule, detail.clone());
        return Ok(None);
    }
    let before = report.failures().count();
    let mut meta = None;
    let mut found: BTreeMap<u64, (String, PathBuf)> = BTreeMap::new();
    for entry in files::list(&place.path)? {
        let path = place.path.join(&entry.name);
        match (names::timestep(&entry.name), entry.kind) {
            (Some(timestep), Kind::Directory) => {
                found.insert(timestep, (entry.name, path));
            }
            (None, Kind::File) if entry.name == "case.yaml" => meta = Some(path),
            _ => report.fail(
                &whole,
                "case.stray",
                format!(
                    "`{}` is neither case.yaml nor a directory timestep-T (T from 1, no leading zero)",
                    shown(&entry.name)
                ),
            ),
        }
    }
    let described =
        Place { where_: "case.yaml".into(), ..whole.clone() }.of_file(format!("{split}/cases/{}/case.yaml", place.id));
    let (title, notes) = match meta {
        Some(path) => metadata(&path, &described, report)?,
        None => (None, None),
    };
    if found.is_empty() {
        report.fail(&whole, "case.no-timesteps", format!("case {} has no directory timestep-T", place.id));
    }

    let mut timesteps = BTreeMap::new();
    let mut pages = BTreeMap::new();
    let mut earlier: Option<(String, BTreeMap<u32, Page>)> = None;
    for (timestep, (name, path)) in found {
        let place = Place::case(&place.id, split, &name);
        let failures = report.failures().count();
        let Some(read) = read(timestep, &path, &place, skills, report)? else { continue };
        if let Some((earlier_name, earlier_pages)) = &earlier {
            compare_prefix(earlier_name, earlier_pages, &name, &read.pages, &place, report);
        }
        if report.failures().count() == failures {
            report.pass(&place, "ts.pass", format!("{} pages, {} prompts", read.pages.len(), read.prompts.len()));
        }
        earlier = Some((name, read.pages.clone()));
        if let Ok(number) = u32::try_from(timestep) {
            timesteps.insert(number, Timestep { prompts: read.prompts });
            pages = read.pages;
        }
    }
    let passed = report.failures().count() == before;
    let pages = pages.into_values().collect();
    Ok(passed.then(|| Case { id: place.id.clone(), split: place.split, title, notes, pages, timesteps }))
}

type Described = (Option<String>, Option<String>);

fn metadata(path: &Path, place: &Place, report: &mut Report) -> Result<Described, EstateError> {
    let nothing = (None, None);
    let Some(content) = files::read_at_most(path, yaml::LONGEST)? else {
        report.fail(place, "case.meta-syntax", format!("case.yaml holds more than {} bytes", yaml::LONGEST));
        return Ok(nothing);
    };
    let Ok(text) = String::from_utf8(content) else {
        report.fail(place, "case.meta-utf8", "case.yaml is not UTF-8");
        return Ok(nothing);
    };
    let node = match yaml::parse(&text) {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(nothing),
        Err(fault) => {
            report.fail_at(place, fault.line, "case.meta-syntax", format!("case.yaml {}", fault.what));
            return Ok(nothing);
        }
    };
    // A document of an explicit null says as little as an empty file.
    if node.value == yaml::Value::Null {
        return Ok(nothing);
    }
    let mut fail = |line, detail: String| report.fail_at(place, line, "case.meta-shape", detail);
    let Some(members) = node.map() else {
        fail(node.line, format!("case.yaml must be a mapping of title and notes, found {}", node.described()));
        return Ok(nothing);
    };
    for (key, value) in members {
        match key.text() {
            Some("title" | "notes") if value.text().is_some() => {}
            Some(name @ ("title" | "notes")) => {
                fail(value.line, format!("{name} must be a string, found {}", value.described()));
            }
            _ => fail(key.line, format!("the key {} is not known; case.yaml takes title and notes", key.described())),
        }
    }
    let text = |key| node.get(key).and_then(yaml::Node::text).map(str::to_owned);
    Ok((text("title"), text("notes")))
}

fn read(
    timestep: u64,
    path: &Path,
    place: &Place,
    skills: &BTreeMap<String, Vec<u8>>,
    report: &mut Report,
) -> Result<Option<Read>, EstateError> {
    let (mut has_pages, mut has_prompts) = (false, false);
    for entry in files::list(path)? {
        match (entry.name.as_str(), entry.kind) {
            ("pages", Kind::Directory) => has_pages = true,
            ("prompts.yaml", Kind::File) => has_prompts = true,
            _ => report.fail(
                place,
                "ts.stray",
                format!(
                    "`{}` does not belong here, only the directory pages and the file prompts.yaml",
                    shown(&entry.name)
                ),
            ),
        }
    }
    let mut pages = BTreeMap::new();
    if has_pages {
        pages = read_pages(&path.join("pages"), place, report)?;
        census(timestep, &pages, place, report);
    } else {
        report.fail(place, "ts.pages-missing", "the directory pages is not there");
    }
    let mut prompts = Vec::new();
    if has_prompts {
        prompts = prompts::read(&path.join("prompts.yaml"), place, skills, report)?;
    }
    Ok(has_pages.then_some(Read { pages, prompts }))
}

fn read_pages(directory: &Path, place: &Place, report: &mut Report) -> Result<BTreeMap<u32, Page>, EstateError> {
    let mut pages = BTreeMap::new();
    for entry in files::list(directory)? {
        let path = directory.join(&entry.name);
        let number = match (names::page(&entry.name), entry.kind) {
            (Some(number), Kind::File) => number,
            (Some(_), _) => {
                report.fail(place, "page.stray", format!("pages/{} is a link or no file", shown(&entry.name)));
                continue;
            }
            (None, _) => {
                let detail = format!("pages/{} is no page: page_ and four digits and .md", shown(&entry.name));
                report.fail(place, "page.stray", detail);
                continue;
            }
        };
        let content = files::read(&path)?;
        if let Err(error) = std::str::from_utf8(&content) {
            let detail = format!("pages/{} is not UTF-8 (at byte {})", entry.name, error.valid_up_to());
            report.fail(place, "page.utf8", detail);
            continue;
        }
        let sha256 = Sha256::digest(&content).into();
        pages.insert(number, Page { number, path, sha256 });
    }
    Ok(pages)
}

/// The pages must be 1..T. Numbers are counted, not listed one by one, as T may be anything.
fn census(timestep: u64, pages: &BTreeMap<u32, Page>, place: &Place, report: &mut Report) {
    let fits = |page: &u32| *page >= 1 && u64::from(*page) <= timestep;
    let surplus: Vec<u64> = pages.keys().filter(|page| !fits(page)).map(|page| u64::from(*page)).collect();
    let present = (pages.len() - surplus.len()) as u64;
    let missing_count = timestep - present;
    if surplus.is_empty() && missing_count == 0 {
        return;
    }
    let absent = |page: &u64| !u32::try_from(*page).is_ok_and(|page| pages.contains_key(&page));
    let missing: Vec<u64> = (1..=timestep).filter(absent).take(LISTED).collect();
    let mut parts = Vec::new();
    if missing_count > 0 {
        parts.push(format!("missing {}", listed(&missing, missing_count)));
    }
    if !surplus.is_empty() {
        let first: Vec<u64> = surplus.iter().copied().take(LISTED).collect();
        parts.push(format!("surplus {}", listed(&first, surplus.len() as u64)));
    }
    report.fail(place, "page.census", format!("pages must be 1..{timestep}: {}", parts.join("; ")));
}

fn listed(numbers: &[u64], count: u64) -> String {
    let text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match count - numbers.len() as u64 {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn compare_prefix(
    earlier: &str,
    earlier_pages: &BTreeMap<u32, Page>,
    later: &str,
    later_pages: &BTreeMap<u32, Page>,
    place: &Place,
    report: &mut Report,
) {
    for (number, before) in earlier_pages {
        if let Some(after) = later_pages.get(number)
            && before.sha256 != after.sha256
        {
            let digest = |page: &Page| hex::encode(&page.sha256[..8]);
            report.fail(
                place,
                "page.prefix",
                format!(
                    "case {} page {number} is not the same in {earlier} ({}) and {later} ({})",
                    place.scope,
                    digest(before),
                    digest(after)
                ),
            );
        }
    }
}
