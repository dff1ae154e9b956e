//! What the API and the pipeline hold in common.

use std::{collections::BTreeMap, fmt, path::Path};

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    agent::{Agents, Installed, install_command},
    clock::Clock,
    config::Config,
    event::{Event, Events},
    id::SessionId,
    pipeline::{ActiveSessions, Order, Stages},
    request::{Detail, Rules, TaskRequest},
    split_wall::SplitWall,
    state::SessionState,
    store::{Finished, RunKey, Store, StoreError},
};

/// One server's common ground; every part holds it by `Arc`.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) events: Events,
    pub(crate) stages: Stages,
    /// The agents that are known, installed or not.
    pub(crate) agents: Agents,
    /// The agents that can run, by name.
    pub(crate) installed: BTreeMap<String, Installed>,
    /// Keeps the splits apart, where the configuration wants it.
    split_wall: Option<SplitWall>,
    /// Rung when a session waits that did not wait before.
    pub(crate) bell: Notify,
    /// The sessions that a worker has, and how to end each.
    pub(crate) active: ActiveSessions,
    /// Work for the dispatcher beside what it takes from the store.
    pub(crate) orders: mpsc::Sender<Order>,
    /// Cancelled once no further session is to be started.
    draining: CancellationToken,
    /// Cancelled when whatever still runs is to end now.
    pub(crate) stopping: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Shared")
    }
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        clock: Clock,
        store: Store,
        agents: Agents,
        installed: BTreeMap<String, Installed>,
        split_wall: Option<SplitWall>,
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let stages = Stages::new(&config.workers);
        Self {
            config,
            clock,
            store,
            events: Events::new(),
            stages,
            agents,
            installed,
            split_wall,
            bell: Notify::new(),
            active: ActiveSessions::default(),
            orders,
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
        }
    }

    /// Reads a task request against this server's configuration and agents.
    pub(crate) fn read_request(&self, body: &Value) -> Result<TaskRequest, Vec<Detail>> {
        let agent = |name: &str| match self.agents.find(name) {
            Ok(found) if self.installed.contains_key(&found.manifest().name) => Ok(found.manifest().name.clone()),
            Ok(found) => Err(self.not_installed(&found.manifest().name)),
            Err(error) => Err(error.to_string()),
        };
        Rules { config: &self.config, agent: &agent }.read(body)
    }

    /// Says why a task that was read may not run here now, or nothing.
    pub(crate) fn refusal(&self, request: &TaskRequest) -> Option<Detail> {
        self.split_wall.as_ref().and_then(|wall| wall.refusal(request))
    }

    /// The sentence for an agent that is known and cannot run, with the command that installs it.
    pub(crate) fn not_installed(&self, agent: &str) -> String {
        let config = &self.config;
        let state =
            config.harness.installed_in.as_deref().or(config.server.state_dir.as_deref()).unwrap_or(Path::new(""));
        format!("agent `{agent}` is not installed here: run `{}`", install_command(agent, state))
    }

    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Resolves once no further session is to be started.
    pub(crate) async fn drained(&self) {
        self.draining.cancelled().await;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Stores a session's new state, then tells the listeners.
    pub(crate) async fn advance(
        &self,
        key: &RunKey,
        session: &SessionId,
        state: SessionState,
    ) -> Result<(), StoreError> {
        let now = self.clock.seconds();
        self.store.advance(session.clone(), state, now).await?;
        self.events.publish(Event::session(now, &key.task, session, state));
        Ok(())
    }

    /// Tells the listeners of a state that is stored already.
    pub(crate) fn announce(&self, key: &RunKey, session: &SessionId, state: SessionState) {
        self.events.publish(Event::session(self.clock.seconds(), &key.task, session, state));
    }

    /// Tells the listeners of an end that is stored.
    pub(crate) fn announce_end(&self, key: &RunKey, session: &SessionId, state: SessionState, run: &Finished) {
        let now = self.clock.seconds();
        self.events.publish(Event::session(now, &key.task, session, state));
        let kind = if run.state == crate::state::TaskState::Running { "task.updated" } else { "task.completed" };
        self.events.publish(Event::task(kind, now, &key.task, run.state, run.completed, run.total));
    }
}
