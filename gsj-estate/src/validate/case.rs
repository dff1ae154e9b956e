//! One case: its `case.yaml`, its timesteps, their pages.

use super::level::CasePlace;
use super::pages::{Difference, Loaded, Room};
use super::text::TextFault;
use super::{prompts, read_yaml};
use crate::corpus::{Case, Page, Timestep};
use crate::files::{self, Kind};
use crate::names::{self, page_file, shown};
use crate::report::{Collector, Finding, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The most numbers that one message lists.
const LISTED: usize = 20;

/// What the check of a case gives.
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    /// The case, when nothing in it fails.
    pub(super) case: Option<Case>,
}

/// What the check of a case needs.
pub(super) struct Context<'a> {
    pub(super) skills: &'a BTreeMap<String, Vec<u8>>,
    pub(super) room: &'a mut Room,
    /// Whether the case itself is wanted; its pages have a digest each, which findings alone don't need.
    pub(super) wanted: bool,
}

/// A timestep's directory, as far as it could be read.
struct Step {
    number: u64,
    name: String,
    path: PathBuf,
    /// What does not belong in it.
    strays: Vec<String>,
    has_prompts: bool,
    /// The numbers of the pages that can be read; `None` when there is no directory of pages.
    pages: Option<BTreeSet<u32>>,
    /// By file name, so that findings come in the directory's order.
    faults: Vec<(String, PageFault)>,
    /// By page, with the earlier timestep that has it.
    differences: Vec<(u32, String, Difference)>,
    /// A directory that cannot be listed.
    unreadable: Option<(String, io::Error)>,
}

enum PageFault {
    Name,
    NoFile(Kind),
    Text(TextFault),
    Unreadable(io::Error),
}

pub(super) fn check(place: &CasePlace, context: Context<'_>) -> Checked {
    let mut found = Collector::default();
    let wanted = context.wanted;
    let case = read(place, context, &mut found).filter(|_| wanted && found.failed() == 0);
    Checked { findings: found.report().findings, case }
}

fn read(place: &CasePlace, context: Context<'_>, found: &mut Collector) -> Option<Case> {
    let split = place.split.as_str();
    let home = format!("{split}/cases/{}", place.id);
    let whole = Place::case(&place.id, split, "(case)");
    if let Some((rule, detail)) = &place.fault {
        found.fail(&whole.of_file(home), rule, detail.clone());
        return None;
    }
    let entries = match files::list(&place.path) {
        Ok(entries) => entries,
        Err(error) => {
            found.unreadable(&whole, &home, &error);
            return None;
        }
    };
    let mut has_meta = false;
    // Numbers beyond 64 bits are one here, so names tell directories apart.
    let mut steps: BTreeMap<(u64, String), Step> = BTreeMap::new();
    for entry in entries {
        match (names::timestep(&entry.name), entry.kind) {
            (Some(number), Kind::Directory) => {
                let path = place.path.join(&entry.name);
                steps.insert((number, entry.name.clone()), Step::list(number, entry.name, path));
            }
            (None, Kind::File) if entry.name == "case.yaml" => has_meta = true,
            (timestep, kind) => {
                let name = shown(&entry.name);
                let detail = match kind {
                    Kind::Directory | Kind::File if timestep.is_none() && entry.name != "case.yaml" => {
                        format!("`{name}` is neither case.yaml nor a directory timestep-T (T from 1, no leading zero)")
                    }
                    kind => {
                        format!("`{name}` is {}, where case.yaml or a directory timestep-T is wanted", kind.described())
                    }
                };
                found.fail(&whole.of_file(format!("{home}/{}", entry.name)), "case.stray", detail);
            }
        }
    }
    let (title, notes) = if has_meta {
        let meta = Place { where_: "case.yaml".into(), ..whole.of_file(format!("{home}/case.yaml")) };
        metadata(&place.path.join("case.yaml"), &meta, found)
    } else {
        (None, None)
    };
    if steps.is_empty() {
        found.fail(
            &whole.of_file(&*home),
            "case.no-timesteps",
            format!("case {} has no directory timestep-T", place.id),
        );
    }

    let mut steps: Vec<Step> = steps.into_values().collect();
    let pages = match files::open_directory(&place.path) {
        Ok(directory) => compare_pages(&directory, place, &mut steps, context.room, context.wanted),
        Err(error) => {
            found.unreadable(&whole, &home, &error);
            return None;
        }
    };
    let mut timesteps = BTreeMap::new();
    for step in steps {
        let place = Place::case(&place.id, split, &step.name);
        let number = step.number;
        let prompts = step.report(&place, &format!("{home}/{}", place.where_), context.skills, found);
        if let Ok(number) = u32::try_from(number) {
            timesteps.insert(number, Timestep { prompts });
        }
    }
    Some(Case { id: place.id.clone(), split: place.split, title, notes, pages, timesteps })
}

fn metadata(path: &Path, place: &Place, found: &mut Collector) -> (Option<String>, Option<String>) {
    let rules = ["case.meta-utf8", "case.meta-syntax"];
    let Some(node) = read_yaml(path, place, rules, found).flatten().filter(|node| !node.is_null()) else {
        return (None, None);
    };
    let Some(members) = node.map() else {
        let detail = format!("case.yaml must be a mapping of title and notes, found {}", node.described());
        found.fail_at(place, node.at, "case.meta-shape", detail);
        return (None, None);
    };
    for (key, value) in members {
        let (at, detail) = match key.text() {
            Some("title" | "notes") if value.text().is_some() => continue,
            Some(name @ ("title" | "notes")) => {
                (value.at, format!("{name} must be a string, found {}", value.described()))
            }
            _ => (key.at, format!("there is no key {}; case.yaml takes title and notes", key.as_words())),
        };
        found.fail_at(place, at, "case.meta-shape", detail);
    }
    let text = |key| node.get(key).and_then(crate::yaml::Node::text).map(str::to_owned);
    (text("title"), text("notes"))
}

impl Step {
    fn list(number: u64, name: String, path: PathBuf) -> Self {
        let mut step = Self {
            number,
            name,
            path,
            strays: Vec::new(),
            has_prompts: false,
            pages: None,
            faults: Vec::new(),
            differences: Vec::new(),
            unreadable: None,
        };
        if let Err(fault) = step.entries() {
            step.unreadable = Some(fault);
        }
        step
    }

    fn entries(&mut self) -> Result<(), (String, io::Error)> {
        let mut has_pages = false;
        for entry in files::list(&self.path).map_err(|error| (String::new(), error))? {
            match (entry.name.as_str(), entry.kind) {
                ("pages", Kind::Directory) => has_pages = true,
                ("prompts.yaml", Kind::File) => self.has_prompts = true,
                _ => self.strays.push(entry.name),
            }
        }
        if !has_pages {
            return Ok(());
        }
        let (mut pages, faults) = (BTreeSet::new(), &mut self.faults);
        let listed = files::each_entry(&self.path.join("pages"), |name, kind| match (names::page(&name), kind) {
            (Some(number), Kind::File) => {
                pages.insert(number);
            }
            (Some(_), kind) => faults.push((name.into_owned(), PageFault::NoFile(kind))),
            (None, _) => faults.push((name.into_owned(), PageFault::Name)),
        });
        listed.map_err(|error| ("/pages".to_owned(), error))?;
        self.pages = Some(pages);
        Ok(())
    }

    /// Reports what was found here, and checks the prompts.
    fn report(
        mut self,
        place: &Place,
        home: &str,
        skills: &BTreeMap<String, Vec<u8>>,
        found: &mut Collector,
    ) -> Vec<crate::corpus::Prompt> {
        let before = found.failed();
        for stray in &self.strays {
            let detail =
                format!("`{}` does not belong here, only the directory pages and the file prompts.yaml", shown(stray));
            found.fail(&place.of_file(format!("{home}/{stray}")), "ts.stray", detail);
        }
        if let Some((directory, error)) = &self.unreadable {
            found.unreadable(place, &format!("{home}{directory}"), error);
        }
        self.faults.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, fault) in self.faults {
            let at_page = place.of_file(format!("{home}/pages/{name}"));
            let name = shown(&name);
            match fault {
                PageFault::Name => {
                    let detail = format!("pages/{name} is no page: a page is page_, four digits and .md");
                    found.fail(&at_page, "page.stray", detail);
                }
                PageFault::NoFile(kind) => {
                    let detail = format!("pages/{name} is {}; a page is a file", kind.described());
                    found.fail(&at_page, "page.stray", detail);
                }
                PageFault::Text(fault) => {
                    found.fail_at(&at_page, fault.at, "page.utf8", format!("pages/{name} {fault}"));
                }
                PageFault::Unreadable(error) => found.unreadable(place, &format!("{home}/pages/{name}"), &error),
            }
        }
        match &self.pages {
            Some(pages) => census(self.number, pages, &place.of_file(format!("{home}/pages")), found),
            None if self.unreadable.is_none() => {
                found.fail(&place.of_file(home), "ts.pages-missing", format!("{} has no directory pages", self.name));
            }
            None => {}
        }
        for (page, earlier, difference) in &self.differences {
            differs(*page, difference, earlier, place, home, found);
        }
        let mut prompts = Vec::new();
        if self.has_prompts {
            let file = place.of_file(format!("{home}/prompts.yaml"));
            prompts = prompts::read(&self.path.join("prompts.yaml"), &file, skills, found);
        }
        if found.failed() == before {
            let count = self.pages.map_or(0, |pages| pages.len());
            let detail = format!("{}, {}", counted(count, "page"), counted(prompts.len(), "prompt"));
            found.pass(place, None, "ts.pass", detail);
        }
        prompts
    }
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Reads every page of every timestep once, page by page, and gives the pages of the last timestep if they are wanted.
fn compare_pages(
    directory: &OwnedFd,
    place: &CasePlace,
    steps: &mut [Step],
    room: &mut Room,
    wanted: bool,
) -> Vec<Page> {
    let numbers: BTreeSet<u32> = steps.iter().filter_map(|step| step.pages.as_ref()).flatten().copied().collect();
    let last = steps.len().saturating_sub(1);
    let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
    let mut whole = Vec::new();
    let mut path = String::new();
    let Room { now, before } = room;
    for page in numbers {
        // The nearest earlier timestep that has this page, as text; others may lie between, which the census tells.
        let mut earlier: Option<usize> = None;
        for (index, step) in steps.iter_mut().enumerate() {
            let Some(pages) = &mut step.pages else { continue };
            if !pages.contains(&page) {
                continue;
            }
            path.clear();
            path.extend([step.name.as_str(), "/pages/", &page_file(page)]);
            let loaded = files::open_at(directory, &path).and_then(|file| now.load(file, earlier.map(|_| &*before)));
            let fault = match loaded {
                Ok(Ok(loaded)) => {
                    if let Loaded::Differs(difference) = loaded {
                        let earlier = earlier.and_then(|index| names.get(index)).cloned().unwrap_or_default();
                        step.differences.push((page, earlier, difference));
                    }
                    if wanted && index == last {
                        whole.push(Page { number: page, path: place.path.join(&path), sha256: now.sha256() });
                    }
                    std::mem::swap(now, before);
                    earlier = Some(index);
                    continue;
                }
                Ok(Err(fault)) => PageFault::Text(fault),
                Err(error) => PageFault::Unreadable(error),
            };
            // What is no text is missing to the census; of what cannot be read nobody knows.
            if matches!(fault, PageFault::Text(_)) {
                pages.remove(&page);
            }
            step.faults.push((page_file(page), fault));
        }
    }
    whole
}

fn differs(page: u32, difference: &Difference, earlier: &str, place: &Place, home: &str, found: &mut Collector) {
    let [was, is] = &difference.digests;
    let unseen = difference.unseen.map(|unseen| format!("; {unseen}")).unwrap_or_default();
    let detail = format!(
        "case {} page {page} is not the same in {earlier} ({was}) and {} ({is}){unseen}",
        place.scope, place.where_
    );
    let place = place.of_file(format!("{home}/pages/{}", page_file(page)));
    match difference.at {
        Some(at) => found.fail_at(&place, at, "page.prefix", detail),
        None => found.fail(&place, "page.prefix", detail),
    }
}

/// The pages must be 1..T. Numbers are counted, not listed one by one, as T may be anything.
fn census(timestep: u64, pages: &BTreeSet<u32>, place: &Place, found: &mut Collector) {
    let fits = |page: &u32| *page >= 1 && u64::from(*page) <= timestep;
    let surplus: Vec<u64> = pages.iter().filter(|page| !fits(page)).map(|page| u64::from(*page)).collect();
    let present = (pages.len() - surplus.len()) as u64;
    let missing_count = timestep - present;
    if surplus.is_empty() && missing_count == 0 {
        return;
    }
    let absent = |page: &u64| !u32::try_from(*page).is_ok_and(|page| pages.contains(&page));
    let missing: Vec<u64> = (1..=timestep).filter(absent).take(LISTED).collect();
    let mut parts = Vec::new();
    if missing_count > 0 {
        parts.push(format!("missing {}", listed(&missing, missing_count)));
    }
    if !surplus.is_empty() {
        let first: Vec<u64> = surplus.iter().copied().take(LISTED).collect();
        parts.push(format!("surplus {}", listed(&first, surplus.len() as u64)));
    }
    let last = place.where_.trim_start_matches("timestep-");
    found.fail(place, "page.census", format!("pages must be 1..{last}: {}", parts.join("; ")));
}

fn listed(numbers: &[u64], count: u64) -> String {
    let text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match count - numbers.len() as u64 {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
