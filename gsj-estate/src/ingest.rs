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
    /// How many cases of the lock the service serves.
    pub cases: usize,
    /// Whether it said by which commit it serves each, and that was the lock's.
    pub by_commit: bool,
    /// How often it was told to read anew.
    pub triggers: u32,
}

/// Tells the service to read the corpus anew, and waits until it serves every case by the commit that the lock has.
///
/// `lock_dir` is the folder of the lock, usually the corpus folder. A service that does not tell commits is taken to be right once a run that began after our trigger is over.
///
/// # Errors
/// Fails when there is no lock, when the service refuses, cannot be reached or says that it failed, and when the commits
/// are not there in time; then it names cases.
pub fn ingest(lock_dir: &Path, service: &Service) -> Result<Ingested, EstateError> {
    let lock = Lock::read(lock_dir)?.ok_or_else(|| EstateError::NoLock { root: lock_dir.to_owned() })?;
    let wanted = service::main_commits(&lock);
    let asked = service.open()?;
    let started = Instant::now();
    let mut last = asked.reindex()?;
    let mut triggers = 1;
    loop {
        let health = asked.health()?;
        let behind = behind(&health, &wanted);
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
            "ready" if behind.as_ref().is_ok_and(Vec::is_empty) => {
                return Ok(Ingested { cases: wanted.len(), by_commit: true, triggers });
            }
            "ready" if last == Triggered::Started && behind.is_err() => {
                return Ok(Ingested { cases: wanted.len(), by_commit: false, triggers });
            }
            // The run that was going on is over, and may have read before the push.
            "ready" if last == Triggered::Already => {
                last = asked.reindex()?;
                triggers += 1;
            }
            _ => {}
        }
        if started.elapsed() >= service.timeout {
            let behind = behind.unwrap_or_default();
            let names = behind.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
            return Err(asked.fault(&format!(
                "after {} s it is `{}` and {} of {} cases are not served by the lock's commit ({names})",
                service.timeout.as_secs(),
                crate::names::shown(&health.state),
                behind.len(),
                wanted.len(),
            )));
        }
        std::thread::sleep(service.interval);
    }
}

/// Cases that are not served by the commit wanted; `Err` when the service tells no commits.
fn behind(health: &Health, wanted: &BTreeMap<String, String>) -> Result<Vec<String>, ()> {
    let cases = health.cases.as_ref().ok_or(())?;
    if !wanted.is_empty() && !cases.is_empty() && cases.values().all(|case| case.commit.is_none()) {
        return Err(());
    }
    let served = |id: &String| cases.get(id).and_then(|case| case.commit.as_ref());
    Ok(wanted.iter().filter(|(id, commit)| served(id) != Some(*commit)).map(|(id, _)| id.clone()).collect())
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
        assert_eq!(behind(&health(None), &wanted), Err(()));
        assert_eq!(behind(&health(Some(vec![("a", case(None)), ("b", case(None))])), &wanted), Err(()));
        let right = vec![("a", case(Some("1"))), ("b", case(Some("2")))];
        assert_eq!(behind(&health(Some(right)), &wanted), Ok(Vec::new()));
        assert_eq!(behind(&health(Some(vec![("a", case(Some("1")))])), &wanted), Ok(vec!["b".to_owned()]));
        assert_eq!(behind(&health(Some(vec![])), &wanted), Ok(vec!["a".to_owned(), "b".to_owned()]));
    }
}
