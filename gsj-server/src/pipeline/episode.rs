//! One session's course, from the store's queue to its stored result.

use std::{sync::Arc, time::Duration};

use gsj_trace::json::{Object, Value};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    build::{self, Material, Recording, Timing, members, millis},
    callback::Callbacks,
    equipment::Equipment,
    harvest, init,
    run::{self, Ran},
    stage::{Place, Stage},
    verdict::{self, Verdict},
};
use crate::{
    config::WorkspacePolicy,
    id::SessionId,
    request::{Detail, TaskRequest},
    shared::Shared,
    state::SessionState,
    store::{RunKey, SessionRow, StoreError, TaskRow},
};

/// How long to wait before a result that could not be written or recorded is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often that is tried before the session is left for the next start to end.
const TRIES: u32 = 5;

/// What a session is driven with.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) equipment: Arc<Equipment>,
    pub(super) callbacks: Callbacks,
}

/// Places that a session holds from the moment it leaves the queue.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) row: SessionRow,
    pub(super) in_flight: OwnedSemaphorePermit,
    pub(super) init: Place,
}

/// Takes a session off the list of active ones when its course ends, however it ends.
struct Active<'a>(&'a Shared, &'a SessionId);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.remove(self.1);
    }
}

/// What is known of a session while it runs.
struct Course {
    session: SessionId,
    key: RunKey,
    timing: Timing,
    request: Option<TaskRequest>,
    /// The request's metadata, for a session whose request could not be read.
    trace_metadata: Value<'static>,
    extra: Object<'static>,
}

impl Driver {
    /// Drives a session to its end.
    pub(super) async fn drive(self, admitted: Admitted) {
        let Admitted { row, in_flight, init } = admitted;
        let session = row.session.clone();
        let cancel = self.shared.active.insert(session.clone());
        let _active = Active(&self.shared, &session);
        if let Err(error) = Box::pin(self.course(&row, init, cancel)).await {
            // Left as it is: the next start finds it and ends it.
            tracing::error!(%session, error = &error as &dyn std::error::Error, "the session could not be recorded");
        }
        if let Some(scan) = &self.equipment.leak_scan {
            scan.end(&session);
        }
        drop(in_flight);
    }

    /// Ends a session that no worker has had.
    pub(super) async fn cancelled(self, row: SessionRow) {
        let mut course = Course::new(&row);
        if let Ok(Some(task)) = self.shared.store.run(row.key.clone()).await
            && let Err(reason) = course.read(&self.shared, &task)
        {
            tracing::debug!(session = %row.session, reason, "a cancelled session's request");
        }
        let verdict = Verdict::cancelled(SessionState::Registered);
        if let Err(error) = self.conclude(course, verdict, None).await {
            tracing::error!(session = %row.session, error = &error as &dyn std::error::Error, "record a cancelled session");
        }
    }

    async fn course(&self, row: &SessionRow, init_place: Place, cancel: CancellationToken) -> Result<(), StoreError> {
        let shared = &self.shared;
        let mut course = Course::new(row);
        let queued = (shared.clock.seconds() - row.created_at).max(0.0);
        course.timing.register_to_init_queue_ms = (queued * 1e6).round() / 1e3;
        shared.announce(&course.key, &course.session, SessionState::Initializing);
        let began = Instant::now();
        let Some(task) = shared.store.run(course.key.clone()).await? else {
            tracing::error!(session = %course.session, "a session without its task");
            return Ok(());
        };
        let request = match course.read(shared, &task) {
            Ok(request) => request,
            Err(reason) => return self.conclude(course, Verdict::error(reason), None).await,
        };
        if task.cancelled {
            cancel.cancel();
        }
        let seed = match shared.config.engine.sampling.seed {
            Some(seed) => Some(run::seed_of(seed, shared.store.index(course.session.clone()).await?)),
            None => None,
        };
        let prepared = init::prepare(shared, &self.equipment, &course.session, request, self.cut_off(&cancel)).await;
        course.timing.init_ms = millis(began.elapsed());
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.clean(&course.session).await;
                return self.conclude(course, Verdict::error(reason), None).await;
            }
        };
        course.trace_metadata = Value::from(members(&prepared.metadata));
        if cancel.is_cancelled() || shared.stopping.is_cancelled() {
            return self.cut(course, SessionState::Initializing).await;
        }
        shared.advance(&course.key, &course.session, SessionState::Ready).await?;
        drop(init_place);

        let run_place = tokio::select! {
            biased;
            () = self.cut_off(&cancel) => None,
            place = shared.stages.run.enter() => place,
        };
        let Some(run_place) = run_place else {
            return self.cut(course, SessionState::Ready).await;
        };
        let prepared = match init::refresh(shared, &self.equipment, &course.session, prepared).await {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.clean(&course.session).await;
                return self.conclude(course, Verdict::error(reason), None).await;
            }
        };
        shared.advance(&course.key, &course.session, SessionState::Running).await?;
        let began = Instant::now();
        let ran = Box::pin(run::run(shared, &self.equipment, &course.session, &prepared, seed, &cancel)).await;
        course.timing.run_ms = millis(began.elapsed());
        drop(run_place);
        self.post(course, prepared, ran).await
    }

    /// Copies deliverables out, closes the record, and concludes.
    async fn post(&self, mut course: Course, prepared: init::Prepared, ran: Ran) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared.advance(&course.key, &course.session, SessionState::PostRun).await?;
        let post_place = enter(&shared.stages.post).await;
        let began = Instant::now();
        let recorded = match &ran.gateway {
            Some(gateway) => Some(gateway.finish().await),
            None => None,
        };
        let manifest = prepared.installed.manifest().clone();
        let (workspace, artifacts) = (prepared.workspace.clone(), prepared.artifacts.clone());
        let (limits, seconds) = (shared.config.limits.clone(), prepared.request.timeout.as_secs_f64());
        if !matches!(ran.metadata, Value::Null) {
            course.trace_metadata = ran.metadata.clone();
        }
        let agent_ms = millis(ran.agent);
        if let Some(info) = &ran.sandbox
            && info.network != "none"
        {
            tracing::warn!(session = %course.session, network = info.network, "the agent was not isolated");
        }
        let judged = tokio::task::spawn_blocking(move || {
            let harvest = harvest::harvest(&workspace, &artifacts.join("out"), &limits);
            let transcript = artifacts.join("pi_transcript.jsonl");
            let verdict = verdict::judge(&ran, recorded.as_ref(), &manifest, &transcript, seconds);
            (harvest, verdict, recorded)
        })
        .await;
        let (verdict, recorded) = match judged {
            Ok((harvest, verdict, recorded)) => {
                course.note_harvest(harvest);
                (verdict, recorded)
            }
            Err(panic) => (Verdict::error(format!("copy the deliverables: {panic}")), None),
        };
        let token = prepared.dressed.token.clone();
        if shared.config.server.workspaces == WorkspacePolicy::Drop {
            self.clean(&course.session).await;
        }
        drop(prepared);
        let engine_ms = recorded.as_ref().map(|recorded| recorded.engine_ms);
        course.timing.postrun_ms = millis(began.elapsed());
        let Timing { init_ms, run_ms, postrun_ms, .. } = course.timing;
        let around = (init_ms + run_ms + postrun_ms - agent_ms).max(0.0);
        course.extra.insert("gsj_overhead_ms", (around * 1e3).round() / 1e3);
        course.extra.insert("gsj_agent_ms", agent_ms);
        course.extra.insert("gsj_engine_ms", engine_ms);
        // Answers that were broken off are in no trajectory; a trainer must be able to see that there were some.
        let aborted = recorded.as_ref().map(|recorded| i64::try_from(recorded.aborted).unwrap_or(i64::MAX));
        course.extra.insert("gsj_aborted_calls", aborted);
        let verdict = Verdict { error: verdict.error.map(|text| text.replace(&token, "TOKEN")), ..verdict };
        let done = self
            .conclude(
                course,
                verdict,
                recorded.map(|recorded| (Recording::of(recorded.trajectory, recorded.document), recorded.calls)),
            )
            .await;
        drop(post_place);
        done
    }

    /// Builds, validates, writes and records a session's result, and tells whoever waits for it.
    async fn conclude(
        &self,
        course: Course,
        verdict: Verdict,
        recorded: Option<(Recording, usize)>,
    ) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared.advance(&course.key, &course.session, SessionState::Building).await?;
        let Course { session, key, timing, request, trace_metadata, extra } = course;
        let (record, calls) = recorded.map_or((None, 0), |(record, calls)| (Some(record), calls));
        let mut metadata = request.as_ref().map(|request| members(&request.metadata)).unwrap_or_default();
        for (name, value) in &extra {
            metadata.insert(name.lossy().into_owned(), value.to_owned());
        }
        let options = self.equipment.builder_options(request.as_ref());
        let prompt = request.map(|request| request.instruction);
        let material = Material {
            session: session.clone(),
            task: key.task.clone(),
            node_id: shared.config.server.node_id.clone(),
            verdict,
            record,
            calls,
            trace_metadata,
            metadata,
            timing,
            options,
            prompt,
        };
        self.settle(key, session, material).await
    }

    /// Writes a result and records the end; both are tried again, since nothing else can end the session.
    pub(super) async fn settle(&self, key: RunKey, session: SessionId, material: Material) -> Result<(), StoreError> {
        let shared = &self.shared;
        let (equipment, id) = (Arc::clone(&self.equipment), session.clone());
        let (calls, timing) = (material.calls, material.timing);
        let composed = tokio::task::spawn_blocking(move || Arc::new(material.compose())).await;
        let Ok(composed) = composed else {
            tracing::error!(%session, "composing the result panicked; the next start ends the session");
            return Ok(());
        };
        let mut tries = 0;
        let ended = loop {
            let (equipment, id, composed) = (Arc::clone(&equipment), id.clone(), Arc::clone(&composed));
            let written =
                tokio::task::spawn_blocking(move || build::deliver(&equipment, &id, &composed, calls, timing)).await;
            tries += 1;
            match written {
                Ok(Ok(ended)) => break ended,
                Ok(Err(error)) if tries < TRIES => {
                    tracing::warn!(%session, error = &error as &dyn std::error::Error, "trying again");
                    sleep(AGAIN * tries).await;
                }
                Ok(Err(error)) => {
                    tracing::error!(%session, error = &error as &dyn std::error::Error, "the next start ends the session");
                    return Ok(());
                }
                Err(panic) => {
                    tracing::error!(%session, %panic, "validating the result");
                    return Ok(());
                }
            }
        };
        let finished = shared.store.finish(session.clone(), ended.clone(), shared.clock.seconds()).await?;
        tracing::info!(
            %session,
            task = %key.task,
            state = ended.state.as_str(),
            accepted = ended.accepted,
            findings = ended.findings,
            completions = ended.completions,
            error = ended.error.as_deref().unwrap_or(""),
            "session ended"
        );
        shared.announce_end(&key, &session, ended.state, &finished);
        if finished.callback_url.is_some() {
            self.callbacks.ring();
        }
        Ok(())
    }

    /// Resolves when the session is cancelled or the server stops.
    async fn cut_off(&self, cancel: &CancellationToken) {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = self.shared.stopping.cancelled() => {}
        }
    }

    /// Concludes a session that was cut off between its stages.
    async fn cut(&self, course: Course, state: SessionState) -> Result<(), StoreError> {
        self.clean(&course.session).await;
        let verdict =
            if self.shared.stopping.is_cancelled() { Verdict::interrupted(state) } else { Verdict::cancelled(state) };
        self.conclude(course, verdict, None).await
    }

    /// Removes a session's folder.
    async fn clean(&self, session: &SessionId) {
        let folder = self.equipment.places.sessions.join(session.as_str());
        let removed = tokio::task::spawn_blocking(move || match gsj_sandbox::remove_tree(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err((folder, error)),
            _ => Ok(()),
        });
        if let Ok(Err((folder, error))) = removed.await {
            tracing::warn!(%session, folder = %folder.display(), %error, "the session's folder could not be removed");
        }
    }
}

async fn enter(stage: &Stage) -> Option<Place> {
    stage.enter().await
}

impl Course {
    fn new(row: &SessionRow) -> Self {
        Self {
            session: row.session.clone(),
            key: row.key.clone(),
            timing: Timing::default(),
            request: None,
            trace_metadata: Value::from(Object::new()),
            extra: Object::new(),
        }
    }

    /// Reads the stored request; what was accepted once may not be any more, after a change of configuration.
    fn read(&mut self, shared: &Shared, task: &TaskRow) -> Result<TaskRequest, String> {
        let stored: serde_json::Value =
            serde_json::from_str(&task.request).map_err(|error| format!("read the stored request: {error}"))?;
        let refused = |detail: Option<&Detail>| {
            let first = detail.map(|detail| format!("{} ({:?})", detail.msg, detail.loc)).unwrap_or_default();
            format!("the stored request is no longer accepted by this server's configuration: {first}")
        };
        let request = shared.read_request(&stored).map_err(|details| refused(details.first()))?;
        // A case may have moved between the splits, or the server been started for something else, since it was taken.
        if let Some(refusal) = shared.refusal(&request) {
            return Err(refused(Some(&refusal)));
        }
        let mut metadata = members(&request.metadata);
        metadata.insert("session_id", self.session.as_str().to_owned());
        metadata.insert("task_id", self.key.task.as_str().to_owned());
        self.trace_metadata = Value::from(metadata);
        self.request = Some(request.clone());
        Ok(request)
    }

    fn note_harvest(&mut self, harvest: std::io::Result<harvest::Harvest>) {
        let mut noted = Object::new();
        match harvest {
            Ok(harvest) => {
                let list = |texts: Vec<String>| texts.into_iter().map(Value::from).collect::<Vec<_>>();
                noted.insert("bytes", harvest.bytes);
                noted.insert("files", list(harvest.files));
                noted.insert("skipped", list(harvest.skipped));
            }
            Err(error) => {
                tracing::error!(session = %self.session, %error, "the deliverables could not be copied out");
                noted.insert("error", error.to_string());
            }
        }
        self.extra.insert("gsj_deliverables", noted);
    }
}
