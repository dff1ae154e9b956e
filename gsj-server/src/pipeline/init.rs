//! The first stage: everything that an episode needs, made before its agent starts.

use std::{
    error::Error,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::Router;
use gsj_cutoff::{CheckoutRequest, tokens};
use gsj_retrieval::Scope;
use serde_json::{Map, Value};

use super::equipment::Equipment;
use crate::{
    agent::{self, Installed, Layout, RenderContext, Rendered, SecretText},
    config::SandboxBackendName,
    id::SessionId,
    request::{TaskRequest, TaskSettings, substitutions},
    shared::Shared,
};

/// Longest time that the preparation may take.
const DEADLINE: Duration = Duration::from_secs(120);
/// Longest wait for the engine to say what it is; unanswered fields stay null.
const IDENTITY_DEADLINE: Duration = Duration::from_secs(10);

/// How old a token may be when its agent starts.
const FRESH: Duration = Duration::from_secs(20);

/// Where things are inside the sandbox.
pub(super) const WORKSPACE: &str = "/workspace";
pub(super) const USER_HOME: &str = "/home/agent";
const AGENT_HOME: &str = "/home/agent/pi";
/// The ports inside: the model's endpoints, the retrieval service.
pub(super) const PORTS: [u16; 2] = [8080, 8790];

/// An episode that is ready to run.
pub(super) struct Prepared {
    pub(super) request: TaskRequest,
    pub(super) dressed: Dressed,
    pub(super) installed: Installed,
    /// Serves retrieval to this session alone, from the library that it began with.
    pub(super) retrieval: Router,
    pub(super) workspace: PathBuf,
    home: PathBuf,
    pub(super) artifacts: PathBuf,
    /// The trace's metadata but for the sandbox, which is not there yet.
    pub(super) metadata: Map<String, Value>,
}

/// An agent rendered with a token that is valid from now on.
pub(super) struct Dressed {
    pub(super) rendered: Rendered,
    /// The session's retrieval token, to be kept out of messages.
    pub(super) token: String,
    at: Instant,
}

/// Makes the checkout, the token, the agent's files and the evidence; the error is the sentence for the user.
///
/// `cut` only shortens the wait for the engine. What is written is always waited for: whoever removes the
/// session's folder must not be overtaken by it.
pub(super) async fn prepare(
    shared: &Arc<Shared>,
    equipment: &Arc<Equipment>,
    session: &SessionId,
    request: TaskRequest,
    cut: impl Future<Output = ()>,
) -> Result<Prepared, String> {
    let identity = async {
        tokio::select! {
            biased;
            () = cut => None,
            identity = tokio::time::timeout(IDENTITY_DEADLINE, equipment.engine.identity()) => identity.ok(),
        }
    };
    let blocking = {
        let (shared, equipment, session) = (Arc::clone(shared), Arc::clone(equipment), session.clone());
        tokio::task::spawn_blocking(move || on_disk(&shared, &equipment, &session, request))
    };
    let (identity, prepared) = tokio::join!(identity, tokio::time::timeout(DEADLINE, blocking));
    let mut prepared = match prepared {
        Ok(Ok(prepared)) => prepared?,
        Ok(Err(panic)) => return Err(format!("prepare the session: {panic}")),
        Err(_elapsed) => return Err(format!("prepare the session: not done within {} s", DEADLINE.as_secs())),
    };
    let identity = identity.and_then(|identity| serde_json::to_value(identity).ok()).unwrap_or(Value::Null);
    prepared.metadata.insert("gsj_engine".to_owned(), identity);
    Ok(prepared)
}

fn on_disk(
    shared: &Shared,
    equipment: &Equipment,
    session: &SessionId,
    request: TaskRequest,
) -> Result<Prepared, String> {
    let settings = &request.settings;
    let scope = Scope {
        case_id: settings.case_id.clone(),
        timestep: settings.timestep,
        episode_id: session.as_str().to_owned(),
    };
    let (estate, retrieval) = equipment.cases.begin(&equipment.retrieval, scope);
    let case = estate.cases.get(&settings.case_id).ok_or_else(|| {
        let known = estate.cases.keys().take(20).cloned().collect::<Vec<_>>().join(", ");
        format!("case `{}` is not served here; there are: {known}", settings.case_id)
    })?;
    let installed =
        shared.installed.get(&request.harness).cloned().ok_or_else(|| shared.not_installed(&request.harness))?;

    let folder = equipment.places.sessions.join(session.as_str());
    let workspace = folder.join("workspace");
    let home = folder.join("agent");
    let artifacts = equipment.places.artifacts.join(session.as_str());
    make_dir(&folder, 0o711)?;
    make_dir(&artifacts, 0o700)?;

    let evidence = gsj_cutoff::checkout(&CheckoutRequest {
        source: &case.repository,
        branch: &format!("timestep-{}", settings.timestep),
        case_id: &settings.case_id,
        timestep: settings.timestep,
        clone_url: &case.clone_url,
        recipe: &estate.recipe,
        dest: &workspace,
    })
    .map_err(|error| sentence("make the truncated checkout", &error))?;

    make_dir(&workspace, 0o700)?;
    if let Some(scan) = &equipment.leak_scan {
        scan.begin(session, &settings.case_id, settings.timestep);
    }

    let dressed = dress(shared, equipment, session, &installed, &request, &home)?;
    if let Some(uid) = equipment.owner {
        give(&workspace, uid).map_err(|error| format!("give `{}` to uid {uid}: {error}", workspace.display()))?;
    }

    let mut metadata = request.metadata.clone();
    metadata.insert("gsj_settings".to_owned(), dressed.rendered.settings.clone());
    metadata.insert("gsj_workspace".to_owned(), document("gsj_workspace", &evidence)?);
    metadata.insert("session_id".to_owned(), Value::from(session.as_str()));
    metadata.insert("task_id".to_owned(), Value::from(request.task.as_str()));
    metadata.insert("gsj_agent".to_owned(), document("gsj_agent", installed.identity())?);
    metadata.insert("gsj_substituted".to_owned(), substitutions(&request.substituted));
    Ok(Prepared { request, dressed, installed, retrieval, workspace, home, artifacts, metadata })
}

/// Mints the token anew when the session has waited so long that its life would be shortened by it.
pub(super) async fn refresh(
    shared: &Arc<Shared>,
    equipment: &Arc<Equipment>,
    session: &SessionId,
    mut prepared: Prepared,
) -> Result<Prepared, String> {
    if prepared.dressed.at.elapsed() < FRESH {
        return Ok(prepared);
    }
    let (shared, equipment, session) = (Arc::clone(shared), Arc::clone(equipment), session.clone());
    let again = move || {
        let Prepared { installed, request, home, .. } = &prepared;
        prepared.dressed = dress(&shared, &equipment, &session, installed, request, home)?;
        Ok(prepared)
    };
    tokio::task::spawn_blocking(again).await.map_err(|panic| format!("prepare the session: {panic}"))?
}

/// Mints the session's token, renders the agent with it and writes the agent's files.
fn dress(
    shared: &Shared,
    equipment: &Equipment,
    session: &SessionId,
    installed: &Installed,
    request: &TaskRequest,
    home: &Path,
) -> Result<Dressed, String> {
    let settings = &request.settings;
    let claims = tokens::Claims {
        case_id: settings.case_id.clone(),
        timestep: settings.timestep,
        episode_id: session.as_str().to_owned(),
        exp: shared.clock.whole_seconds().saturating_add(i64::from(settings.token_ttl_s)),
    };
    let token = tokens::mint(&claims, &equipment.secret)
        .map_err(|error| sentence("mint the session's retrieval token", &error))?;
    let rendered = render(shared, installed, request, home, &token)?;
    make_dir(home, 0o700)?;
    if shared.config.sandbox.backend != SandboxBackendName::None {
        for file in &rendered.files {
            write_private(home, &file.path, &file.bytes)
                .map_err(|error| format!("write the agent's `{}`: {error}", file.path))?;
        }
    }
    if let Some(uid) = equipment.owner {
        give(home, uid).map_err(|error| format!("give `{}` to uid {uid}: {error}", home.display()))?;
    }
    Ok(Dressed { rendered, token, at: Instant::now() })
}

fn render(
    shared: &Shared,
    installed: &Installed,
    request: &TaskRequest,
    home: &Path,
    token: &str,
) -> Result<Rendered, String> {
    let TaskSettings { tools, context_window, max_tokens, thinking, .. } = &request.settings;
    let harness = &shared.config.harness;
    let roster = if tools.is_empty() { installed.manifest().roster() } else { tools.clone() };
    // Without walls nothing is mounted and the ports are known only when they are bound, so the launcher
    // fills both in: in the environment, and in the files that it writes itself.
    let walled = shared.config.sandbox.backend != SandboxBackendName::None;
    let (layout, workdir, model_url, mcp_url) = if walled {
        let [model, retrieval] = PORTS;
        (
            Layout::Sandbox,
            WORKSPACE.to_owned(),
            format!("http://127.0.0.1:{model}/v1"),
            format!("http://127.0.0.1:{retrieval}/mcp/{token}"),
        )
    } else {
        (
            Layout::Host,
            format!("{{path:{WORKSPACE}}}"),
            "http://127.0.0.1:{port:0}/v1".to_owned(),
            format!("http://127.0.0.1:{{port:1}}/mcp/{token}"),
        )
    };
    let virtual_home = PathBuf::from(format!("{{path:{AGENT_HOME}}}"));
    let model = shared.config.engine.model.as_deref().unwrap_or_default();
    let mut rendered = agent::render(
        installed,
        &RenderContext {
            model,
            model_url: &model_url,
            mcp_url: &SecretText::new(mcp_url),
            tools: &roster,
            context_window: *context_window,
            max_tokens: *max_tokens,
            thinking: *thinking,
            settings: Some(&harness.settings),
            prompt: &request.instruction,
            workdir: &workdir,
            home_dir: if walled { home } else { &virtual_home },
            layout,
        },
    )
    .map_err(|error| sentence("render the agent", &error))?;
    // What the manifest sets is what the pins approve; a request adds to it and replaces nothing.
    for (name, value) in &request.env {
        rendered.env.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Ok(rendered)
}

/// Where a rendered file lies inside, for a launcher that writes it itself.
pub(super) fn inside_home(file: &str) -> PathBuf {
    Path::new(AGENT_HOME).join(file)
}

fn document(name: &str, value: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| format!("write down {name}: {error}"))
}

fn make_dir(path: &Path, mode: u32) -> Result<(), String> {
    let make = || {
        fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
        // The umask may have taken bits that the sandbox's user needs.
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    make().map_err(|error: io::Error| format!("make `{}`: {error}", path.display()))
}

/// Writes a file that only its owner reads: it may hold the session's token.
fn write_private(home: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = home.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// Gives a tree that nobody else has touched yet to the sandbox's user; links themselves, not what they name.
fn give(path: &Path, uid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}

/// One sentence out of an error and its causes.
pub(super) fn sentence(doing: &str, error: &dyn Error) -> String {
    let mut text = format!("{doing}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
