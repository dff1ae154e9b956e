//! What every session works with, checked once at the start.

use std::{path::PathBuf, sync::Arc};

use gsj_checks::Policy;
use gsj_cutoff::tokens::Secret;
use gsj_gateway::Engine;
use gsj_pins::Pins;
use gsj_retrieval::Service;
use gsj_sandbox::{InitProgram, Launcher};
use gsj_trace::reconstruct::Options;

use super::{cases::Cases, leak::LeakScan};
use crate::request::TaskRequest;

/// The parts that a session is made with.
#[derive(Debug)]
pub(crate) struct Equipment {
    pub(crate) cases: Arc<Cases>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) retrieval: Service,
    /// Signs retrieval tokens.
    pub(crate) secret: Secret,
    pub(crate) launcher: Launcher,
    pub(crate) init: InitProgram,
    /// Whom workspaces belong to; absent when the server is not root and runs sandboxes as itself.
    pub(crate) owner: Option<u32>,
    pub(crate) pins: Pins,
    pub(crate) policy: Policy,
    /// Looks for text of later pages in traces; absent when it is switched off.
    pub(crate) leak_scan: Option<Arc<LeakScan>>,
    /// How trajectories are built where a task says nothing of it.
    pub(crate) builder: Options,
    pub(crate) places: Places,
    /// Labels this server's sandboxes.
    pub(crate) run: String,
}

impl Equipment {
    /// How the trajectory of a task is built.
    pub(super) fn builder_options(&self, request: Option<&TaskRequest>) -> Options {
        let mut options = self.builder.clone();
        if let Some(request) = request {
            options.end_of_turn_token_id = request.end_of_turn;
            options.glue_ids.clone_from(&request.glue);
        }
        options
    }
}

/// The folders of a server.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) state: PathBuf,
    /// Workspaces and agent homes, one folder a session.
    pub(crate) sessions: PathBuf,
    /// Transcripts, gateway records and deliverables, one folder a session.
    pub(crate) artifacts: PathBuf,
    pub(crate) traces: PathBuf,
    pub(crate) quarantine: PathBuf,
    /// The sandboxes' intents.
    pub(crate) run: PathBuf,
}
