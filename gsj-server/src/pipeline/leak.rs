//! The leak scan: whether a session's trace holds text of a later page, by whatever way it came there.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gsj_checks::LaterText;
use gsj_cutoff::{CutoffError, branch_files, scan::Fingerprints};

use super::estate::{Estate, MAIN};
use crate::id::SessionId;

/// What the fingerprints that are kept may take, in bytes; the ones used last stay.
const KEPT_BYTES: usize = 256 << 20;

/// A case and the last page that may be seen.
type Cut = (String, u32);

/// The fingerprints of every cut that is asked for, made from the repositories that checkouts and retrieval read.
#[derive(Debug)]
pub(crate) struct LeakScan(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Where checkouts are made from, and where the full documents are.
    estate: Arc<Estate>,
    /// What retrieval answers from beside the pages.
    decisions: Arc<Vec<u8>>,
    kept: VecDeque<(Cut, Arc<Fingerprints>)>,
    /// What the sessions that run began with, whatever was read anew since.
    begun: BTreeMap<SessionId, (Cut, Arc<Fingerprints>)>,
}

impl LeakScan {
    pub(crate) fn new(estate: Arc<Estate>, decisions: Vec<u8>) -> Self {
        let decisions = Arc::new(decisions);
        Self(Mutex::new(State { estate, decisions, kept: VecDeque::new(), begun: BTreeMap::new() }))
    }

    /// Takes the cases as they are now; sessions that have begun keep theirs.
    pub(super) fn replace(&self, estate: Arc<Estate>, decisions: Vec<u8>) {
        let mut state = self.lock();
        state.estate = estate;
        state.decisions = Arc::new(decisions);
        state.kept.clear();
    }

    /// Fixes what is later for a session that begins. One for which that fails is scanned by what is there at its end.
    pub(super) fn begin(&self, session: &SessionId, case_id: &str, timestep: u32) {
        match self.prints(case_id, timestep) {
            Ok(Some(prints)) => {
                self.lock().begun.insert(session.clone(), ((case_id.to_owned(), timestep), prints));
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%session, %error, "the pages to scan for"),
        }
    }

    /// Forgets a session that has ended.
    pub(super) fn end(&self, session: &SessionId) {
        self.lock().begun.remove(session);
    }

    /// The scan of one session, to which what its prompt quotes is nothing later.
    pub(super) fn of_session<'a>(&'a self, session: &SessionId, prompt: &'a str) -> SessionScan<'a> {
        let begun = self.lock().begun.get(session).cloned();
        SessionScan { scan: self, begun, prompt, fault: Mutex::default() }
    }

    /// The fingerprints of a cut; `None` for a case that is not served.
    fn prints(&self, case_id: &str, timestep: u32) -> Result<Option<Arc<Fingerprints>>, CutoffError> {
        let cut = (case_id.to_owned(), timestep);
        let mut state = self.lock();
        if let Some(at) = state.kept.iter().position(|(other, _)| *other == cut)
            && let Some(hit) = state.kept.remove(at)
        {
            let prints = Arc::clone(&hit.1);
            state.kept.push_back(hit);
            return Ok(Some(prints));
        }
        let (estate, decisions) = (Arc::clone(&state.estate), Arc::clone(&state.decisions));
        // Others need not wait while these are made; two that make the same are no harm.
        drop(state);
        let Some(case) = estate.cases.get(case_id) else { return Ok(None) };
        let visible = branch_files(&case.repository, &format!("timestep-{timestep}"))?;
        let whole = branch_files(&case.full, MAIN)?;
        let later = whole.iter().filter_map(|file| Some((file.page.filter(|page| *page > timestep)?, &file.content)));
        let visible = visible.iter().map(|file| &file.content).chain([&*decisions]);
        let prints = Arc::new(Fingerprints::of(later, visible));
        let mut state = self.lock();
        // Those of cases that were read anew meanwhile are for this once.
        if !Arc::ptr_eq(&state.estate, &estate) {
            return Ok(Some(prints));
        }
        let kept = &mut state.kept;
        kept.push_back((cut, Arc::clone(&prints)));
        while kept.len() > 1 && kept.iter().map(|(_, prints)| prints.bytes()).sum::<usize>() > KEPT_BYTES {
            kept.pop_front();
        }
        Ok(Some(prints))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Entries are put in and taken out whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The leak scan over one session's trace.
#[derive(Debug)]
pub(super) struct SessionScan<'a> {
    scan: &'a LeakScan,
    begun: Option<(Cut, Arc<Fingerprints>)>,
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
        let begun = self.begun.as_ref().filter(|((case, cut), _)| case == case_id && *cut == timestep);
        match begun.map_or_else(|| self.scan.prints(case_id, timestep), |(_, prints)| Ok(Some(Arc::clone(prints)))) {
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
