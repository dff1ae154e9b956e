//! What the retrieval service serves, by the tools that episodes use.

use super::{Found, listed};
use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::lock::Lock;
use crate::names::shown;
use crate::parallel;
use crate::report::{Finding, Place};
use crate::service::{self, Asked, Served, Service};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The most hits that one search is asked for.
pub(crate) const MOST_HITS: usize = 20;
/// How many cases are asked about at once.
const AT_ONCE: usize = 4;
/// The longest query, in characters: enough words to find a page among others.
const QUERY: usize = 600;

pub(super) fn check(
    corpus: &Corpus,
    lock: &Lock,
    partial: bool,
    service: &Service,
    found: &mut Found,
) -> Result<(), EstateError> {
    let place = Place::corpus("mcp");
    let opened = service.open().and_then(|asked| asked.health().map(|health| (asked, health)));
    let (asked, health) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            found.fail(&place, "verify.mcp", error.to_string());
            return Ok(());
        }
    };
    let wrong = if health.state == "ready" {
        Vec::new()
    } else {
        vec![format!("its state is `{}`, not ready", shown(&health.state))]
    };
    found.judge(&place, "verify.mcp", &wrong, "ready");
    if !wrong.is_empty() {
        return Ok(());
    }
    let Some(served) = health.cases else {
        found.fail(&place, "verify.mcp-cases", "it does not tell us its cases: is the secret the service's?");
        return Ok(());
    };
    let mut wrong: Vec<String> = corpus
        .cases
        .keys()
        .filter(|id| !served.contains_key(*id))
        .map(|id| format!("the case {id} is not served"))
        .collect();
    if !partial {
        let surplus = served.keys().filter(|id| !corpus.cases.contains_key(*id));
        wrong.extend(surplus.map(|id| format!("`{}` is served and not in the tree", shown(id))));
    }
    found.judge(&place, "verify.mcp-cases", &wrong, format!("{} cases served", corpus.cases.len()));

    let mains = service::main_commits(lock);
    let mut cases: Vec<&Case> = corpus.cases.values().filter(|case| served.contains_key(&case.id)).collect();
    cases.sort_by_key(|case| (case.split, &case.id));
    let looked = parallel::map(&cases, AT_ONCE, |case| {
        let mut found = Found::default();
        let place = Place::case(&case.id, case.split.as_str(), "mcp");
        if let Some(served) = served.get(&case.id) {
            let wrong = facts(case, served, mains.get(&case.id));
            found.judge(&place, "verify.mcp-facts", &wrong, format!("{} pages", case.pages.len()));
        }
        text(case, &asked, &place, &mut found)?;
        Ok::<Vec<Finding>, EstateError>(found.findings)
    })?;
    found.findings.extend(looked.into_iter().flatten());
    Ok(())
}

/// Pages, timesteps and commit, as the service tells them.
fn facts(case: &Case, served: &Served, main: Option<&String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let pages = u64::from(case.page_count());
    if served.pages != Some(pages) {
        let have = served.pages.map_or_else(|| "no number of".to_owned(), |have| have.to_string());
        wrong.push(format!("{have} pages are served, the tree has {pages}"));
    }
    let timesteps: Vec<u64> = case.timesteps.keys().map(|timestep| u64::from(*timestep)).collect();
    if served.timesteps.as_ref() != Some(&timesteps) {
        wrong.push(format!(
            "the timesteps {:?} are served, the tree has {timesteps:?}",
            served.timesteps.as_deref().unwrap_or_default()
        ));
    }
    if let (Some(have), Some(want)) = (&served.commit, main)
        && have != want
    {
        wrong.push(format!("the commit {} is served, the lock has {}", shown(have), shown(want)));
    }
    wrong
}

/// Every page's text, asked for by its own words at the timestep whose last page it is.
fn text(case: &Case, asked: &Asked<'_>, place: &Place, found: &mut Found) -> Result<(), EstateError> {
    let digests: BTreeMap<u64, [u8; 32]> =
        case.pages.iter().map(|page| (u64::from(page.number), page.sha256)).collect();
    let mut right: BTreeSet<u64> = BTreeSet::new();
    let mut wrong: BTreeMap<u64, String> = BTreeMap::new();
    let mut without_words = 0;
    for page in case.pages.iter().rev() {
        let number = u64::from(page.number);
        if right.contains(&number) || wrong.contains_key(&number) {
            continue;
        }
        let content = page.read()?;
        let text = String::from_utf8_lossy(&content);
        if !text.chars().any(char::is_alphanumeric) {
            without_words += 1;
            continue;
        }
        let query: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(QUERY).collect();
        let hits = match asked.search(&case.id, page.number, &query) {
            Ok(Ok(hits)) => hits,
            Ok(Err(said)) => {
                wrong.insert(number, format!("page {number} cannot be asked for: {said}"));
                continue;
            }
            Err(error) => {
                found.fail(place, "verify.mcp-text", error.to_string());
                return Ok(());
            }
        };
        for hit in hits {
            match digests.get(&hit.page) {
                _ if hit.page > number => {
                    wrong.insert(hit.page, format!("page {} is served at timestep {number}", hit.page));
                }
                Some(digest) if Sha256::digest(hit.text.as_bytes())[..] == digest[..] => drop(right.insert(hit.page)),
                _ => {
                    let digest = Sha256::digest(hit.text.as_bytes());
                    let detail =
                        format!("page {} is served as a text of SHA-256 {}", hit.page, hex::encode(&digest[..8]));
                    wrong.insert(hit.page, detail);
                }
            }
        }
        // One of many equal pages need not be among the hits; then another of them speaks for it.
        let twin = |other: &u64| digests.get(other) == digests.get(&number);
        if !right.contains(&number) && !wrong.contains_key(&number) && !right.iter().any(twin) {
            wrong.insert(number, format!("page {number} is not found by its own words at timestep {number}"));
        }
    }
    let wrong: Vec<String> = wrong.into_values().collect();
    let more = if without_words > 0 { format!(", {without_words} without words not asked for") } else { String::new() };
    let right = format!("texts of {} pages equal by SHA-256{more}", case.pages.len() - without_words);
    found.judge(place, "verify.mcp-text", &wrong, listed(&[right]));
    Ok(())
}
