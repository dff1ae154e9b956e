//! The middle stage: the agent runs, and its two sockets are served.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gsj_gateway::{CallLimits, Sampling, Session, SessionFailure, SessionOptions};
use gsj_sandbox::{Backend, Exit, Label, Limits, Mount, Running, SandboxInfo, SmallFile, Spec, Tmpfs};
use gsj_trace::json::Value;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    equipment::Equipment,
    init::{PORTS, Prepared, USER_HOME, WORKSPACE, inside_home, sentence},
    output::{Copied, Copy},
};
use crate::{
    config::{Config, SandboxBackendName},
    id::SessionId,
    serve::serve,
    shared::Shared,
};

/// How long an agent that is told that its session is over may take to end by itself.
const LEAVE: Duration = Duration::from_secs(3);
/// How long an agent has between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the agent's streams may take to run dry once it has ended.
const DRY: Duration = Duration::from_secs(5);
/// Most connections on one of the session's sockets at once.
const CONNECTIONS: usize = 64;
/// How long a connection of the agent may lie idle, as between two calls around a long tool run.
const IDLE: Duration = Duration::from_secs(3600);
/// Largest standard error that is kept, in bytes.
const STDERR_LIMIT: u64 = 1 << 20;

/// Why a run ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// The agent ended.
    Exited(Exit),
    /// The agent could not be started, or not be served.
    NotStarted(String),
    /// The task's time was over.
    Deadline,
    /// The session could not go on.
    Failed(SessionFailure),
    /// The task was cancelled.
    Cancelled,
    /// The server stops.
    Stopping,
}

/// What a run leaves behind.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) ending: Ending,
    /// Absent when no agent was started.
    pub(super) gateway: Option<Session>,
    /// The trace's metadata, sandbox included.
    pub(super) metadata: Value<'static>,
    pub(super) sandbox: Option<SandboxInfo>,
    /// From the agent's start to its end.
    pub(super) agent: Duration,
    pub(super) stdout: Copied,
    pub(super) stderr: Copied,
}

/// The seed of the session of this index in its task: the configured one for the first, then counting on, never
/// negative. With one seed for all, every session of a task would sample the same answers.
pub(super) fn seed_of(configured: i64, index: i64) -> i64 {
    configured.wrapping_add(index) & i64::MAX
}

/// Runs the agent of a prepared episode to its end, its deadline or the session's.
///
/// When this returns, nothing of the sandbox is left running. Dropping it kills the sandbox as well.
pub(super) async fn run(
    shared: &Arc<Shared>,
    equipment: &Equipment,
    session: &SessionId,
    prepared: &Prepared,
    seed: Option<i64>,
    cancel: &CancellationToken,
) -> Ran {
    let deadline = Instant::now().checked_add(prepared.request.timeout);
    let mut ran = Ran {
        ending: Ending::Cancelled,
        gateway: None,
        metadata: Value::Null,
        sandbox: None,
        agent: Duration::ZERO,
        stdout: Copied::default(),
        stderr: Copied::default(),
    };
    let (spec, copies) = match specify(shared, equipment, session, prepared) {
        Ok(made) => made,
        Err(error) => {
            ran.ending = Ending::NotStarted(error);
            return ran;
        }
    };
    let started = tokio::select! {
        biased;
        ending = interrupted(shared, cancel, deadline) => Err(ending),
        started = equipment.launcher.start(spec) => started.map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            Ending::NotStarted(sentence("start the sandbox", &error) + &hint)
        }),
    };
    let mut running = match started {
        Ok(running) => running,
        Err(ending) => {
            ran.ending = ending;
            return ran;
        }
    };
    let began = Instant::now();
    ran.sandbox = Some(running.info.clone());
    let mut copying = JoinSet::new();
    for (stream, copy) in copies {
        copying.spawn(async move { (stream, copy.run().await) });
    }
    let closing = CancellationToken::new();
    let mut serving = JoinSet::new();
    let served = open(shared, equipment, session, prepared, seed, &running, &mut ran).and_then(|gateway| {
        serve_sockets(prepared, &mut running, &gateway, &mut serving, &closing)?;
        Ok(gateway)
    });
    match served {
        Ok(gateway) => {
            ran.ending = attend(shared, &mut running, &gateway, cancel, deadline).await;
            ran.gateway = Some(gateway);
        }
        Err(error) => ran.ending = Ending::NotStarted(error),
    }
    if !matches!(ran.ending, Ending::Exited(_)) {
        running.terminate(GRACE).await;
    }
    ran.agent = began.elapsed();
    drop(running);
    closing.cancel();
    let dry = async {
        while let Some(copied) = copying.join_next().await {
            match copied {
                Ok((Stream::Out, copied)) => ran.stdout = copied,
                Ok((Stream::Err, copied)) => ran.stderr = copied,
                Err(panic) => tracing::error!(%session, %panic, "copying the agent's output"),
            }
        }
    };
    if timeout(DRY, dry).await.is_err() {
        tracing::warn!(%session, "the agent's output stayed open after its end");
    }
    while serving.join_next().await.is_some() {}
    ran
}

/// Waits for what ends a run from outside.
async fn interrupted(shared: &Shared, cancel: &CancellationToken, deadline: Option<Instant>) -> Ending {
    let over = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancel.cancelled() => Ending::Cancelled,
        () = shared.stopping.cancelled() => Ending::Stopping,
        () = over => Ending::Deadline,
    }
}

/// Waits for the end of the run, whoever brings it about.
async fn attend(
    shared: &Shared,
    running: &mut Running,
    gateway: &Session,
    cancel: &CancellationToken,
    deadline: Option<Instant>,
) -> Ending {
    let failure = tokio::select! {
        exit = running.wait() => return Ending::Exited(exit),
        ending = interrupted(shared, cancel, deadline) => return ending,
        failure = gateway.failed() => failure,
    };
    // The gateway has told the agent; most end by themselves, and then their transcript is whole.
    let _left = timeout(LEAVE, running.wait()).await;
    Ending::Failed(failure)
}

/// Opens the gateway's record with the whole of the trace's metadata.
fn open(
    shared: &Shared,
    equipment: &Equipment,
    session: &SessionId,
    prepared: &Prepared,
    seed: Option<i64>,
    running: &Running,
    ran: &mut Ran,
) -> Result<Session, String> {
    let mut metadata = prepared.metadata.clone();
    let info = serde_json::to_value(&running.info).map_err(|error| format!("write down gsj_sandbox: {error}"))?;
    metadata.insert("gsj_sandbox".to_owned(), info);
    let text = serde_json::Value::Object(metadata).to_string();
    ran.metadata = Value::parse(text.as_bytes())
        .map_err(|error| sentence("write down the trace's metadata", &error))?
        .into_owned();
    let limits = &shared.config.limits;
    let clock = shared.clock.clone();
    let options = SessionOptions {
        metadata: ran.metadata.clone(),
        sampling: seed.map(|seed| Sampling { seed: Some(seed), ..equipment.engine.options().sampling.clone() }),
        limits: CallLimits { max_turns: Some(limits.max_turns), max_tokens: Some(limits.max_completion_tokens) },
        clock: gsj_gateway::Clock::new(move || clock.now()),
        builder: Some(equipment.builder_options(Some(&prepared.request))),
        ..SessionOptions::new(session.as_str(), prepared.artifacts.join("session.log"))
    };
    Session::open(Arc::clone(&equipment.engine), options).map_err(|error| sentence("open the session's record", &error))
}

/// Serves the gateway on the first of the sandbox's sockets and retrieval on the second.
fn serve_sockets(
    prepared: &Prepared,
    running: &mut Running,
    gateway: &Session,
    serving: &mut JoinSet<()>,
    closing: &CancellationToken,
) -> Result<(), String> {
    let routers = [gateway.router(), prepared.retrieval.clone()];
    let listeners = std::mem::take(&mut running.listeners);
    if listeners.len() != routers.len() {
        return Err(format!("start the sandbox: {} sockets were handed out instead of 2", listeners.len()));
    }
    for (listener, router) in listeners.into_iter().zip(routers) {
        let listener =
            TcpListener::from_std(listener).map_err(|error| sentence("serve the sandbox's sockets", &error))?;
        serving.spawn(serve(listener, router, CONNECTIONS, IDLE, closing.clone()));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Out,
    Err,
}

/// What is to be run, within which walls, and where its output goes.
fn specify(
    shared: &Shared,
    equipment: &Equipment,
    session: &SessionId,
    prepared: &Prepared,
) -> Result<(Spec, [(Stream, Copy); 2]), String> {
    let config = &shared.config;
    let out = prepared.artifacts.join("pi_transcript.jsonl");
    let err = prepared.artifacts.join("agent_stderr.log");
    let open =
        |path: &PathBuf, limit| Copy::to(path, limit).map_err(|error| format!("write `{}`: {error}", path.display()));
    let (stdout, out) = open(&out, config.limits.transcript_bytes)?;
    let (stderr, err) = open(&err, STDERR_LIMIT)?;
    let rendered = &prepared.dressed.rendered;
    let label = Label { run: equipment.run.clone(), session: session.as_str().to_owned() };
    let mut spec = Spec::new(label, rendered.command.clone(), equipment.init.clone(), stdout, stderr);
    walls(config, &mut spec);
    spec.env.extend(rendered.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>());
    spec.cwd = PathBuf::from(WORKSPACE);
    spec.mounts = vec![Mount { source: prepared.workspace.clone(), target: PathBuf::from(WORKSPACE), writable: true }];
    spec.mounts.extend(rendered.mounts.iter().map(|mount| Mount {
        source: mount.source.clone(),
        target: mount.target.clone(),
        writable: mount.writable,
    }));
    if spec.backend == Backend::None {
        // There are no mounts to show these through, and their ports are only known to the launcher.
        spec.files.extend(rendered.files.iter().map(|file| SmallFile {
            target: inside_home(&file.path),
            content: file.bytes.clone(),
            mode: 0o600,
        }));
    }
    spec.ports = PORTS.to_vec();
    spec.stdin = rendered.stdin.clone();
    Ok((spec, [(Stream::Out, out), (Stream::Err, err)]))
}

/// The walls and limits of the configuration.
fn walls(config: &Config, spec: &mut Spec) {
    let limits = &config.sandbox.limits;
    spec.backend = match config.sandbox.backend {
        SandboxBackendName::Bwrap => Backend::Bwrap,
        SandboxBackendName::None => Backend::None,
    };
    spec.uid = config.sandbox.uid;
    spec.hostname = "gsj".to_owned();
    spec.limits = Limits {
        processes: Some(limits.processes),
        open_files: Some(limits.open_files),
        file_size: Some(limits.file_bytes),
        data: Some(limits.data_bytes),
        ..Limits::default()
    };
    spec.tmpfs = vec![
        Tmpfs { target: PathBuf::from("/tmp"), size: limits.tmp_bytes, mode: 0o1777 },
        Tmpfs { target: PathBuf::from(USER_HOME), size: limits.home_bytes, mode: 0o700 },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_count_on_and_are_never_negative() {
        assert_eq!([0, 1, 2].map(|index| seed_of(41, index)), [41, 42, 43]);
        assert_eq!([0, 1, 2].map(|index| seed_of(i64::MAX - 1, index)), [i64::MAX - 1, i64::MAX, 0]);
        assert!(seed_of(-7, 0) >= 0 && seed_of(i64::MIN, 3) == 3);
    }
}
