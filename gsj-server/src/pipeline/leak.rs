//! The leak scan: whether a session's trace holds text of a later page, by whatever way it came there.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gsj_checks::LaterText;
use gsj_cutoff::{CutoffError, branch_files, scan::Fingerprints};

use super::estate::{Estate, MAIN};

/// What the fingerprints that are kept may take, in bytes; the ones used last stay.
const KEPT_BYTES: usize = 256 << 20;

/// A case and the last page that may be seen.
type Cut = (String, u32);

/// The fingerprints of every cut that is asked for, made from the repositories that checkouts and retrieval read.
#[derive(Debug)]
pub(crate) struct LeakScan {
    /// By case: where checkouts are made from, and where the full document is.
    cases: BTreeMap<String, (PathBuf, PathBuf)>,
    /// What retrieval answers from beside the pages.
    decisions: Vec<u8>,
    kept: Mutex<VecDeque<(Cut, Arc<Fingerprints>)>>,
}

impl LeakScan {
    pub(crate) fn new(estate: &Estate, decisions: Vec<u8>) -> Self {
        let places = |case: &super::estate::Case| (case.repository.clone(), case.full.clone());
        let cases = estate.cases.iter().map(|(name, case)| (name.clone(), places(case))).collect();
        Self { cases, decisions, kept: Mutex::default() }
    }

    /// The scan of one session, to which what its prompt quotes is nothing later.
    pub(super) fn of_session<'a>(&'a self, prompt: &'a str) -> SessionScan<'a> {
        SessionScan { scan: self, prompt, fault: Mutex::default() }
    }

    /// The fingerprints of a cut; `None` for a case that is not served.
    fn prints(&self, case_id: &str, timestep: u32) -> Result<Option<Arc<Fingerprints>>, CutoffError> {
        let Some((repository, full)) = self.cases.get(case_id) else { return Ok(None) };
        let cut = (case_id.to_owned(), timestep);
        let mut kept = self.lock();
        if let Some(at) = kept.iter().position(|(other, _)| *other == cut)
            && let Some(hit) = kept.remove(at)
        {
            let prints = Arc::clone(&hit.1);
            kept.push_back(hit);
            return Ok(Some(prints));
        }
        // Others need not wait while these are made; two that make the same are no harm.
        drop(kept);
        let visible = branch_files(repository, &format!("timestep-{timestep}"))?;
        let whole = branch_files(full, MAIN)?;
        let later = whole.iter().filter_map(|file| Some((file.page.filter(|page| *page > timestep)?, &file.content)));
        let visible = visible.iter().map(|file| &file.content).chain([&self.decisions]);
        let prints = Arc::new(Fingerprints::of(later, visible));
        let mut kept = self.lock();
        kept.push_back((cut, Arc::clone(&prints)));
        while kept.len() > 1 && kept.iter().map(|(_, prints)| prints.bytes()).sum::<usize>() > KEPT_BYTES {
            kept.pop_front();
        }
        Ok(Some(prints))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Cut, Arc<Fingerprints>)>> {
        // Entries are put in and taken out whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The leak scan over one session's trace.
#[derive(Debug)]
pub(super) struct SessionScan<'a> {
    scan: &'a LeakScan,
    prompt: &'a str,
    fault: Mutex<Option<String>>,
}

impl SessionScan<'_> {
    /// Why the trace could not be scanned: then its having no finding means nothing.
    pub(super) fn fault(self) -> Option<String> {
        self.fault.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaterText for SessionScan<'_> {
    fn later_pages(&self, case_id: &str, timestep: u64, text: &str) -> Vec<u64> {
        // No page has a greater number.
        let Ok(timestep) = u32::try_from(timestep) else { return Vec::new() };
        match self.scan.prints(case_id, timestep) {
            Ok(Some(prints)) => {
                let mut scanner = prints.scanner().allow(self.prompt);
                scanner.push(text.as_bytes());
                let pages: BTreeSet<u64> = scanner.finish().into_iter().map(|found| u64::from(found.page)).collect();
                pages.into_iter().collect()
            }
            Ok(None) => Vec::new(),
            Err(error) => {
                let fault = format!("leak scan of case `{case_id}` at timestep {timestep}: {error}");
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
                Vec::new()
            }
        }
    }
}
