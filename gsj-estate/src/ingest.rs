//! Having the retrieval service read what was pushed (`corpus.md` section 11).

use crate::error::EstateError;
use crate::lock::Lock;
use crate::service::{self, Health, Service, Triggered};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// The most cases that a message lists.
const LISTED: usize = 5;

/// What an ingest came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// How many cases of the lock the service says that it serves; 0 when it tells nothing of cases.
    pub cases: usize,
    /// Whether it said by which commit it serves each, and that was the lock's.
    pub by_commit: bool,
    /// How often it was told to read anew.
    pub triggers: u32,
}

/// Tells the service to read the corpus anew, and waits until it serves every case by the commit that the lock has.
///
/// `lock_dir` is the folder of the lock, usually the corpus folder. A service that does not tell commits is taken to be
/// right once a run that began after our trigger is over and all cases are among those that it tells, if it tells any.
///
/// All of it ends when [`Service::timeout`] is over, calls under way included.
///
/// # Errors
/// Fails when there is no lock, when the service refuses, cannot be reached or says that it failed, and when the commits
/// are not there in time; then it names cases. So do details of cases that make no sense.
pub fn ingest(lock_dir: &Path, service: &Service) -> Result<Ingested, EstateError> {
    let lock = Lock::read(lock_dir)?.ok_or_else(|| EstateError::NoLock { root: lock_dir.to_owned() })?;
    let wanted = service::main_commits(&lock);
    // So long that the clock cannot tell it is as good as for ever.
    let deadline = Instant::now().checked_add(service.timeout);
    let asked = service.open_until(deadline)?;
    let mut last = asked.reindex()?;
    let mut triggers = 1;
    let mut seen: Option<String> = None;
    let over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    loop {
        // The end of the time may fall into a call; what was seen before says more than that.
        let health = match (asked.health(), seen) {
            (Err(EstateError::Host { .. }), Some(seen)) if over() => return Err(asked.fault(&seen)),
            (health, _) => health?,
        };
        let Standing { behind, by_commit } = standing(&health, &wanted);
        match health.state.as_str() {
            "error" => {
                let said = health.error.map(|said| format!(": {said}")).unwrap_or_default();
                return Err(asked.fault(&format!("its index failed{said}")));
            }
            // It serves what it had before.
            "ready" if health.error.is_some() && last == Triggered::Started => {
                let said = health.error.unwrap_or_default();
                return Err(asked.fault(&format!("its index failed, and it serves the one before: {said}")));
            }
            "ready" if behind.is_empty() && (by_commit || last == Triggered::Started) => {
                let cases = if health.cases.is_some() { wanted.len() } else { 0 };
                return Ok(Ingested { cases, by_commit, triggers });
            }
            // The run that was going on is over, and may have read before the push.
            "ready" if last == Triggered::Already => {
                last = asked.reindex()?;
                triggers += 1;
            }
            _ => {}
        }
        let short = short_of(&behind, &wanted, by_commit);
        let state = crate::names::shown(&health.state);
        let stood = format!("after {} s it is `{state}`{short}", service.timeout.as_secs());
        let left = deadline.map_or(service.interval, |deadline| deadline.saturating_duration_since(Instant::now()));
        std::thread::sleep(service.interval.min(left));
        if over() {
            return Err(asked.fault(&stood));
        }
        seen = Some(stood);
    }
}

/// What is missing, as the end of a sentence.
fn short_of(behind: &[String], wanted: &BTreeMap<String, String>, by_commit: bool) -> String {
    if behind.is_empty() {
        return String::new();
    }
    let names = behind.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    let more = if behind.len() > LISTED { ", ..." } else { "" };
    let how = if by_commit { "by the lock's commit" } else { "at all" };
    format!(", and {} of {} cases are not served {how}: {names}{more}", behind.len(), wanted.len())
}

/// How the service stands to the lock.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    /// The cases that are not served as they should be, as far as it tells.
    behind: Vec<String>,
    /// Whether it tells commits.
    by_commit: bool,
}

fn standing(health: &Health, wanted: &BTreeMap<String, String>) -> Standing {
    let Some(cases) = &health.cases else { return Standing { behind: Vec::new(), by_commit: false } };
    let by_commit = wanted.is_empty() || cases.is_empty() || cases.values().any(|case| case.commit.is_some());
    let fits = |(id, commit): (&String, &String)| match cases.get(id) {
        Some(case) => !by_commit || case.commit.as_ref() == Some(commit),
        None => false,
    };
    let behind = wanted.iter().filter(|entry| !fits(*entry)).map(|(id, _)| id.clone()).collect();
    Standing { behind, by_commit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Served;

    #[test]
    fn a_service_that_tells_no_commits_is_told_from_one_that_is_behind() {
        let wanted = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        let case = |commit: Option<&str>| Served { commit: commit.map(str::to_owned), ..Served::default() };
        let health = |cases: Option<Vec<(&str, Served)>>| Health {
            cases: cases.map(|cases| cases.into_iter().map(|(id, case)| (id.to_owned(), case)).collect()),
            ..Health::default()
        };
        let stands = |cases: Option<Vec<(&str, Served)>>| {
            let Standing { behind, by_commit } = standing(&health(cases), &wanted);
            (behind.join(" "), by_commit)
        };
        let says = |behind: &str, by_commit| (behind.to_owned(), by_commit);
        assert_eq!(stands(None), says("", false));
        assert_eq!(stands(Some(vec![("a", case(None)), ("b", case(None))])), says("", false));
        assert_eq!(stands(Some(vec![("a", case(None)), ("c", case(None))])), says("b", false), "it lists others");
        assert_eq!(stands(Some(vec![("a", case(Some("1"))), ("b", case(Some("2")))])), says("", true));
        assert_eq!(stands(Some(vec![("a", case(Some("1")))])), says("b", true));
        assert_eq!(stands(Some(vec![])), says("a b", true));
        assert_eq!(short_of(&[], &wanted, true), "", "nothing is said of no case");
        assert_eq!(
            short_of(&["a".to_owned()], &wanted, true),
            ", and 1 of 2 cases are not served by the lock's commit: a"
        );
    }
}
