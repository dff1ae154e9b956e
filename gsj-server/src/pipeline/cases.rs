//! The cases that are served and the library over them, which are read anew together.

use std::{
    fs,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use axum::Router;
use gsj_retrieval::{Embedder, IndexFault, IndexSource, Library, Mirrors, Progress, Rebuild, Scope, Service, Sources};

use super::{estate::Estate, leak::LeakScan};
use crate::{
    config::{EstateConfig, RetrievalConfig},
    error::ServerError,
};

/// The cases that are served now.
#[derive(Debug)]
pub(crate) struct Cases(RwLock<Arc<Estate>>);

impl Cases {
    pub(crate) fn new(estate: Estate) -> Self {
        Self(RwLock::new(Arc::new(estate)))
    }

    /// What a session begins with and keeps: the cases, and the routes of its retrieval over the same state of them.
    pub(super) fn begin(&self, retrieval: &Service, scope: Scope) -> (Arc<Estate>, Router) {
        // The lock is held over both, so that no index run can come between. It guards a whole value always.
        let estate = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&estate), retrieval.router_for(scope))
    }
}

/// Reads the case repositories into a library, at the start and whenever an index run is asked for.
#[derive(Debug)]
pub(crate) struct Reading {
    estate: EstateConfig,
    retrieval: RetrievalConfig,
    mirrors: Mirrors,
    rebuild: Rebuild,
    embedder: Option<Arc<Embedder>>,
    /// Where what was read is put, once a server runs.
    served: Option<(Arc<Cases>, Option<Arc<LeakScan>>)>,
    /// What the last run read beside the library.
    read: Option<(Estate, Vec<u8>)>,
}

impl Reading {
    pub(crate) fn new(
        estate: &EstateConfig,
        retrieval: &RetrievalConfig,
        mirrors: Mirrors,
        embedder: Option<Arc<Embedder>>,
    ) -> Self {
        Self {
            estate: estate.clone(),
            retrieval: retrieval.clone(),
            mirrors,
            rebuild: retrieval.rebuild.into(),
            embedder,
            served: None,
            read: None,
        }
    }

    /// Lists the cases and brings the index up to date with them.
    pub(crate) fn read(&mut self, progress: &Progress) -> Result<(Library, Estate, Vec<u8>), ServerError> {
        let failed = |what: String| move |source| ServerError::Retrieval { what, source };
        let estate = Estate::open(&self.estate, &self.mirrors, progress)?;
        let index = self.retrieval.index_dir.as_deref().ok_or(ServerError::Unset { key: "retrieval.index_dir" })?;
        let sources = estate.sources();
        let stored =
            Library::stored_near(index, Sources::Repos(&sources), self.rebuild, progress, self.embedder.clone());
        let (mut library, _) = stored.map_err(failed("the case repositories".to_owned()))?;
        // `always` means each start; what did not change since need not be built again by the next run.
        if self.rebuild == Rebuild::Always {
            self.rebuild = Rebuild::IfStale;
        }
        let mut decisions = Vec::new();
        if let Some(path) = &self.retrieval.decisions_file {
            decisions = bytes(path)?;
            library = library
                .with_decisions(&decisions)
                .map_err(failed(format!("retrieval.decisions_file `{}`", path.display())))?;
        }
        Ok((library, estate, decisions))
    }

    /// Says where later runs put what they read.
    pub(crate) fn serve(&mut self, cases: Arc<Cases>, leak_scan: Option<Arc<LeakScan>>) {
        self.served = Some((cases, leak_scan));
    }
}

impl IndexSource for Reading {
    fn index(&mut self, progress: &Progress) -> Result<Library, IndexFault> {
        let (library, estate, decisions) = self.read(progress)?;
        self.read = Some((estate, decisions));
        Ok(library)
    }

    fn switch(&mut self, publish: &mut dyn FnMut()) {
        let (Some((cases, leak_scan)), Some((estate, decisions))) = (&self.served, self.read.take()) else {
            return publish();
        };
        let estate = Arc::new(estate);
        let mut held = cases.0.write().unwrap_or_else(PoisonError::into_inner);
        publish();
        if let Some(scan) = leak_scan {
            scan.replace(Arc::clone(&estate), decisions);
        }
        *held = estate;
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, ServerError> {
    fs::read(path).map_err(|source| ServerError::Io { doing: "read", path: path.to_owned(), source })
}
