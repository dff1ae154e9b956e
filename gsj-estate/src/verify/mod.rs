//! Reading an estate back and comparing it with its corpus (`corpus.md` section 11).
//!
//! Nothing is taken from the lock on trust: every id is computed anew from the corpus, and lock and host are each
//! compared with it. What is not as it should be is a finding; an error is only what keeps from looking at all.

mod bank;
mod branch;
mod case;
mod locked;
#[cfg(feature = "remote")]
mod served;

#[cfg(feature = "remote")]
pub(crate) use served::MOST_HITS;

use crate::corpus::{Case, Corpus};
use crate::error::EstateError;
use crate::host::Host;
use crate::lock::Lock;
use crate::names::is_owner;
use crate::parallel;
use crate::recipe::Shared;
use crate::report::{Finding, Place, Report};

/// What to compare a corpus with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Where the repositories are.
    pub host: Host,
    /// Another owner than the corpus's.
    pub owner_override: Option<String>,
    /// Whether the corpus holds some cases only: then neither the bank nor other cases of the lock are looked at.
    pub partial: bool,
    /// The retrieval service, where what it serves is to be looked at.
    #[cfg(feature = "remote")]
    pub service: Option<crate::service::Service>,
}

impl VerifyOptions {
    /// Everything on this host.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self {
            host,
            owner_override: None,
            partial: false,
            #[cfg(feature = "remote")]
            service: None,
        }
    }
}

/// Compares host, lock and task bank with the corpus, by the recipe that the lock names.
///
/// # Errors
/// Fails when there is no lock or it cannot be read, when a page changed since it was validated, or when the host cannot
/// be asked at all; a repository that is not there is a finding.
pub fn verify(corpus: &Corpus, options: &VerifyOptions) -> Result<Report, EstateError> {
    let owner = options.owner_override.as_deref().unwrap_or(&corpus.settings.owner);
    if !is_owner(owner) {
        return Err(EstateError::Owner { owner: owner.to_owned() });
    }
    let lock = Lock::read(&corpus.lock_dir)?.ok_or_else(|| EstateError::NoLock { root: corpus.lock_dir.clone() })?;
    let recipe = lock.recipe()?;
    let shared = Shared::of(corpus)?;
    let session = options.host.open(owner)?;
    let mut cases: Vec<&Case> = corpus.cases.values().collect();
    cases.sort_by_key(|case| (case.split, &case.id));
    let looked = parallel::map(&cases, session.threads(), |case| {
        let entry = lock.cases().and_then(|cases| cases.get(&case.id));
        let looked = case::Look { corpus, shared: &shared, session: &session, recipe, owner };
        looked.at(case, entry)
    })?;
    let mut found = Found { findings: looked.into_iter().flatten().collect() };
    locked::check(corpus, &lock, owner, recipe, options.partial, &mut found);
    #[cfg(feature = "remote")]
    if let Some(service) = &options.service {
        served::check(corpus, &lock, options.partial, service, &mut found)?;
    }
    if !options.partial {
        bank::check(corpus, &lock, &mut found);
    }
    Ok(Report { findings: found.findings })
}

/// Findings as they are collected.
#[derive(Debug, Default)]
pub(crate) struct Found {
    findings: Vec<Finding>,
}

impl Found {
    pub(crate) fn pass(&mut self, place: &Place, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(place.finding(rule, true, detail));
    }

    pub(crate) fn fail(&mut self, place: &Place, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(place.finding(rule, false, detail));
    }

    /// Passes when nothing was found wrong, else fails with all of it.
    pub(crate) fn judge(&mut self, place: &Place, rule: &'static str, wrong: &[String], right: impl Into<String>) {
        if wrong.is_empty() { self.pass(place, rule, right) } else { self.fail(place, rule, listed(wrong)) }
    }
}

/// The most items that one message lists.
const LISTED: usize = 12;

/// Items of a message, the first of many.
pub(crate) fn listed(items: &[String]) -> String {
    let first = items.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(LISTED) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}
