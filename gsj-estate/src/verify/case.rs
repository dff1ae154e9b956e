//! One case: its entry in the lock, and its repositories on the host.

use super::branch::{self, Branches};
use super::{Found, listed};
use crate::corpus::{Case, Corpus, Page};
use crate::error::EstateError;
use crate::host::Session;
use crate::lock;
use crate::names::shown;
use crate::recipe::{self, CasePlan, Plan, Recipe, Shared};
use crate::report::{Finding, Place};
use crate::repository;
use gix::ObjectId;
use gix::prelude::FindExt as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What all cases are looked at with.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) corpus: &'a Corpus,
    pub(super) shared: &'a Shared,
    pub(super) session: &'a Session<'a>,
    pub(super) recipe: Recipe,
    pub(super) owner: &'a str,
}

impl Look<'_> {
    pub(super) fn at(self, case: &Case, entry: Option<&Value>) -> Result<Vec<Finding>, EstateError> {
        let planned = recipe::plan(case, self.shared, self.recipe)?;
        let mut found = Found::default();
        let place = |where_: &str| Place::case(&case.id, case.split.as_str(), where_);
        match entry {
            None => found.fail(&place("lock"), "verify.lock-case", "the lock does not have this case"),
            Some(entry) => self.entry(case, &planned, entry, &mut found),
        }
        for plan in &planned.repositories {
            let locked = entry.and_then(|entry| entry.get(if plan.full { "full_refs" } else { "refs" }));
            self.repository(case, &planned, plan, locked, &mut found)?;
        }
        Ok(found.findings)
    }

    /// The lock's own words about the case.
    fn entry(self, case: &Case, planned: &CasePlan, entry: &Value, found: &mut Found) {
        let place = |where_: &str| Place::case(&case.id, case.split.as_str(), where_);
        let refs: Vec<(bool, BTreeMap<String, String>)> = planned
            .repositories
            .iter()
            .map(|plan| {
                (plan.full, plan.branches.iter().map(|(name, b)| (name.clone(), b.commit.to_string())).collect())
            })
            .collect();
        let wanted = lock::entry(self.corpus, case, self.owner, refs.iter().map(|(full, refs)| (*full, refs)));
        let split = entry.get("split").and_then(Value::as_str).unwrap_or_default();
        let wrong = if split == case.split.as_str() {
            Vec::new()
        } else {
            vec![format!("the lock has the split `{}`, the tree {}", shown(split), case.split)]
        };
        found.judge(&place("split"), "verify.split", &wrong, "tree and lock agree");
        let mut wrong = Vec::new();
        let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let (have, want) = (members(entry), members(&wanted));
        for key in have.keys().chain(want.keys()).collect::<BTreeSet<_>>() {
            // Split and refs have findings of their own.
            if ["split", "refs", "full_refs"].contains(&key.as_str()) && want.contains_key(key) {
                continue;
            }
            let (have, want) = (have.get(key), want.get(key));
            if have != want && key == "timesteps" {
                wrong.extend(timesteps(have, want));
            } else if have != want {
                wrong.push(format!("{}: the lock has {}, the tree gives {}", shown(key), value(have), value(want)));
            }
        }
        found.judge(
            &place("lock"),
            "verify.lock-case",
            &wrong,
            "clone_url, timesteps and prompt_ids as the tree gives",
        );
        for (full, refs) in &refs {
            let key = if *full { "full_refs" } else { "refs" };
            let wrong = different(&text_map(entry.get(key)), refs, "the lock has", "the tree gives");
            found.judge(&place(key), "verify.ids", &wrong, "ids of the lock are those computed from the tree");
        }
    }

    /// A repository as the host has it.
    fn repository(
        self,
        case: &Case,
        planned: &CasePlan,
        plan: &Plan,
        locked: Option<&Value>,
        found: &mut Found,
    ) -> Result<(), EstateError> {
        let place = |where_: &str| {
            let where_ = if plan.full { format!("full {where_}") } else { where_.to_owned() };
            Place::case(&case.id, case.split.as_str(), where_)
        };
        let fetched = match self.session.fetch(&plan.name(&case.id)) {
            Ok(fetched) => fetched,
            Err(error @ EstateError::Repository { .. }) => {
                found.fail(&place("clone"), "verify.clone", error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let path = fetched.path();
        let opened = repository::open(path).and_then(|repository| Ok((repository, repository::refs(path)?)));
        let (repository, refs) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                found.fail(&place("clone"), "verify.clone", error.to_string());
                return Ok(());
            }
        };
        let ids = plan.ids(self.shared, &planned.pages);
        let bad = unsound(&repository, &sizes(self.shared, plan, case, &planned.pages, &ids));
        let mut wrong = if fetched.is_in_place() { repository::uncloneable(path)? } else { Vec::new() };
        wrong.extend(bad.iter().map(|(id, what)| format!("object {id} {what}")));
        found.judge(&place("clone"), "verify.clone", &wrong, format!("{} objects read back", ids.len()));
        if let Some(strays) = strays(&repository, &ids) {
            let wrong: Vec<String> = strays.iter().map(|id| format!("object {id} belongs to no branch")).collect();
            found.judge(&place("objects"), "verify.objects", &wrong, "no object that the tree does not give");
        }
        references(path, plan, locked, &refs, &place, found);

        let mut branches = Branches::new(&repository);
        for (name, wanted) in &plan.branches {
            let tip = refs.get(&format!("refs/heads/{name}")).copied().flatten();
            let sound = tip == Some(wanted.commit) && bad.is_empty();
            let files = Plan::files(self.shared, &planned.pages, wanted);
            match branches.look(name, tip, sound, files) {
                Ok(wrong) => {
                    let right = format!("{} pages and {} other files equal", wanted.pages, self.shared.files.len());
                    found.judge(&place(name), "verify.branch", &wrong, right);
                }
                Err(what) => found.fail(&place(name), "verify.branch", what),
            }
        }
        let order: Vec<&String> = branch::by_number(plan);
        let wrong = branches.prefix(&order);
        found.judge(&place("prefix"), "verify.prefix", &wrong, "shared pages of neighbouring timesteps are equal");
        Ok(())
    }
}

/// Heads against the lock, refs of other kinds, and HEAD.
fn references(
    path: &Path,
    plan: &Plan,
    locked: Option<&Value>,
    refs: &BTreeMap<String, Option<ObjectId>>,
    place: &impl Fn(&str) -> Place,
    found: &mut Found,
) {
    let heads: BTreeMap<String, String> = refs
        .iter()
        .filter_map(|(name, id)| {
            let name = name.strip_prefix("refs/heads/")?;
            Some((name.to_owned(), id.map_or_else(|| "another ref".to_owned(), |id| id.to_string())))
        })
        .collect();
    let wrong = different(&heads, &text_map(locked), "the host has", "the lock");
    found.judge(&place("refs"), "verify.refs", &wrong, format!("{} heads as in the lock", heads.len()));
    let others: Vec<String> = refs
        .keys()
        .filter(|name| !name.starts_with("refs/heads/"))
        .map(|name| format!("`{}` is neither a branch of the tree's nor of ours", shown(name)))
        .collect();
    found.judge(&place("other refs"), "verify.other-refs", &others, "no tags or other refs");
    let head = repository::head(path).unwrap_or_default();
    let wrong = if head == plan.head {
        Vec::new()
    } else {
        vec![format!("HEAD names `{}`, a plain clone should check out {}", shown(&head), plan.head)]
    };
    found.judge(&place("HEAD"), "verify.head", &wrong, format!("names {}", plan.head));
}

/// How long each object is.
fn sizes(
    shared: &Shared,
    plan: &Plan,
    case: &Case,
    pages: &[ObjectId],
    ids: &BTreeSet<ObjectId>,
) -> BTreeMap<ObjectId, u64> {
    let own = plan.own.iter().chain(&shared.objects).map(|(id, (_, content))| (*id, content.len() as u64));
    // A page that cannot be looked at now has another size than any object.
    let size = |page: &Page| std::fs::metadata(&page.path).map_or(u64::MAX, |found| found.len());
    let pages = case.pages.iter().zip(pages).map(|(page, id)| (*id, size(page)));
    own.chain(pages).filter(|(id, _)| ids.contains(id)).collect()
}

/// Objects that are missing, or are not what their id says. Nothing is unpacked that has another size than it should.
fn unsound(repository: &gix::Repository, sizes: &BTreeMap<ObjectId, u64>) -> Vec<(ObjectId, String)> {
    let mut bad = Vec::new();
    let mut buffer = Vec::new();
    for (id, size) in sizes {
        let what = match repository.find_header(*id) {
            Err(_) => Some("is missing".to_owned()),
            Ok(header) if header.size() != *size => Some(format!("claims {} bytes instead of {size}", header.size())),
            Ok(_) => match repository.objects.find(id, &mut buffer) {
                Err(error) => Some(format!("cannot be read: {error}")),
                Ok(data) => match gix::objs::compute_hash(id.kind(), data.kind, data.data) {
                    Ok(digest) if digest == *id => None,
                    Ok(digest) => Some(format!("holds the content of {digest}")),
                    Err(error) => Some(format!("cannot be digested: {error}")),
                },
            },
        };
        bad.extend(what.map(|what| (*id, what)));
    }
    bad
}

/// Objects that no branch of the tree's needs; `None` when the host cannot list what it has.
fn strays(repository: &gix::Repository, ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
    let all = repository.objects.iter().ok()?;
    Some(all.filter_map(Result::ok).filter(|id| !ids.contains(id)).collect())
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let members = value.and_then(Value::as_object);
    members
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

/// What differs between two maps, with the words for whose they are.
fn different(
    have: &BTreeMap<String, String>,
    want: &BTreeMap<String, String>,
    having: &str,
    wanting: &str,
) -> Vec<String> {
    let nothing = || "nothing".to_owned();
    have.keys()
        .chain(want.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|name| have.get(*name) != want.get(*name))
        .map(|name| {
            let [have, want] = [have, want].map(|map| map.get(name).map_or_else(nothing, |value| shown(value)));
            format!("{}: {having} {have}, {wanting} {want}", shown(name))
        })
        .collect()
}

fn timesteps(have: Option<&Value>, want: Option<&Value>) -> Vec<String> {
    let map = |value: Option<&Value>| -> BTreeMap<String, String> {
        value
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect()
    };
    different(&map(have), &map(want), "timestep: the lock has", "the tree gives")
}

fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| listed(&[shown(&value.to_string())]))
}
