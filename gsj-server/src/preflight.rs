//! Everything that a session will need, checked before anything starts.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    num::NonZeroU32,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gsj_cutoff::{Credential, tokens::Secret};
use gsj_gateway::{ApiKey, Engine, EngineKind, EngineOptions, Sampling};
use gsj_pins::{Key, Pins};
use gsj_retrieval::{EmbedKey, Embedder, Library, Mirrors, Options, Progress, Service, Tools};
use gsj_sandbox::{Backend, DEFAULT_UID, InitProgram, Launcher, LauncherOptions, ProbeOptions, SandboxError};
use gsj_trace::{reconstruct, tokenizer::Tokenizer, tokens::TokenText as _};

use crate::{
    agent::{self, Agents, Depth, Installed},
    clock::Clock,
    config::{Config, EmbeddingsConfig, EngineKindName, ProfileName, RetrievalConfig, SandboxBackendName},
    error::ServerError,
    pipeline::{Cases, Equipment, Estate, LeakScan, Places, Reading},
    server::Context,
    split_wall::SplitWall,
};

/// Where a secret may come from when its variable is not set.
const SECRET_CURE: &str = "set it to at least 32 random bytes, for example: export NAME=$(openssl rand -hex 32)";
const EMBEDDINGS_CURE: &str = "set it to the endpoint's API key, or remove the key from the configuration";
const CREDENTIAL_CURE: &str = "set it to what the git host asks for, or remove the key from the configuration";
const KEY_CURE: &str = "set it to the engine's API key, or remove the key from the configuration";

/// What the start hands on.
pub(crate) struct Ready {
    pub(crate) equipment: Equipment,
    /// Reads the cases anew.
    pub(crate) reading: Reading,
    pub(crate) agents: Agents,
    pub(crate) installed: BTreeMap<String, Installed>,
    pub(crate) split_wall: Option<SplitWall>,
    /// Held for as long as the server runs: one server in one state folder.
    pub(crate) lock: File,
}

/// What is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A server, whose traces are delivered.
    Serve,
    /// One episode before there are pins; nothing of it is delivered.
    BringUp,
}

/// Checks everything, in the order in which a person would set it up. Blocks.
pub(crate) fn check(config: &mut Config, context: &Context, purpose: Purpose) -> Result<Ready, ServerError> {
    let places = places(config, purpose)?;
    let pins = match purpose {
        Purpose::Serve => pins(config)?,
        Purpose::BringUp => Pins::from_fault("bring-up", "there are none yet"),
    };
    let builder = builder(config, &pins)?;
    let secret = secret(&config.estate.token_secret_env, context)?;
    let engine = engine(config, context)?;
    let mut agents = context.agents.clone();
    if let Some(folder) = &config.harness.agents_dir {
        agents.add_folder(folder).map_err(ServerError::Agents)?;
    }
    let installed_in = config.harness.installed_in.as_deref().unwrap_or(&places.state);
    let installed = installed(&agents, &config.harness.agent, installed_in)?;
    let backend = match config.sandbox.backend {
        SandboxBackendName::Bwrap => Backend::Bwrap,
        SandboxBackendName::None => Backend::None,
    };
    let sandbox = |source: SandboxError| ServerError::Sandbox {
        cure: source.hint().unwrap_or_else(|| "see the reason below".to_owned()),
        source,
    };
    gsj_sandbox::probe(backend, &ProbeOptions { uid: config.sandbox.uid, ..ProbeOptions::default() })
        .map_err(sandbox)?;
    let root = rustix::process::geteuid().is_root();
    let owner = root.then(|| config.sandbox.uid.unwrap_or(DEFAULT_UID));
    if root {
        reachable(&places.state)?;
    }
    let split_wall = SplitWall::open(&config.estate)?;
    // Before the index, which only the one who holds it may write.
    let lock = lock(&places.state)?;
    let index = config.retrieval.index_dir.get_or_insert_with(|| places.state.join("index")).clone();
    make(&index, 0o700)?;
    let embedder = embedder(&config.retrieval.embeddings, context)?;
    let mirrors = mirrors(config, &places, context)?;
    let mut reading = Reading::new(&config.estate, &config.retrieval, mirrors, embedder);
    let (library, estate, decisions) = reading.read(&Progress::default())?;
    let retrieval = retrieval(&config.retrieval, library, secret.clone(), &context.clock)?;
    let leak_scan = if purpose == Purpose::Serve { leak_scan(config, &estate, decisions) } else { None };
    let leak_scan = leak_scan.map(Arc::new);
    let cases = Arc::new(Cases::new(estate));
    reading.serve(Arc::clone(&cases), leak_scan.clone());
    let launcher = Launcher::new(LauncherOptions::new(&places.run)).map_err(sandbox)?;
    let equipment = Equipment {
        cases,
        engine: Arc::new(engine),
        retrieval,
        secret,
        launcher,
        init: InitProgram { path: context.init.clone(), args: context.init_args.clone() },
        owner,
        policy: config.checks.policy(),
        leak_scan,
        builder,
        pins,
        run: format!("run-{}-{}", std::process::id(), context.clock.whole_seconds()),
        places,
    };
    Ok(Ready { equipment, reading, agents, installed, split_wall, lock })
}

fn places(config: &Config, purpose: Purpose) -> Result<Places, ServerError> {
    let set = |path: &Option<PathBuf>, key| path.clone().ok_or(ServerError::Unset { key });
    let state = set(&config.server.state_dir, "server.state_dir")?;
    make(&state, 0o755)?;
    // Everything below is given to sandboxes and launchers, which want absolute paths.
    let state = fs::canonicalize(&state).map_err(|source| ServerError::Io {
        doing: "find the state folder",
        path: state.clone(),
        source,
    })?;
    let places = Places {
        sessions: state.join("sessions"),
        run: state.join("run"),
        artifacts: set(&config.harness.artifacts_dir, "harness.artifacts_dir")?,
        traces: set(&config.receiver.traces_dir, "receiver.traces_dir")?,
        quarantine: set(&config.receiver.quarantine_dir, "receiver.quarantine_dir")?,
        state,
    };
    // Prompts and answers stand in these; nobody but this user needs them.
    let folders = [&places.artifacts, &places.traces, &places.quarantine];
    // The first; the others are for what is delivered.
    let made = if purpose == Purpose::Serve { folders.len() } else { 1 };
    for folder in folders.into_iter().take(made) {
        if let Some(parent) = folder.parent() {
            make(parent, 0o755)?;
        }
        make(folder, 0o700)?;
    }
    // Others may pass through, to their own session's folder, and list nothing.
    for folder in [&places.sessions, &places.run] {
        make(folder, 0o711)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).map_err(|source| ServerError::Io {
            doing: "set the mode of",
            path: folder.clone(),
            source,
        })?;
    }
    Ok(places)
}

fn make(path: &Path, mode: u32) -> Result<(), ServerError> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(path).map_err(|source| ServerError::Io {
        doing: "make the folder",
        path: path.to_owned(),
        source,
    })
}

/// As root one sees every path; the sandbox's user must get through every folder on the way.
fn reachable(state: &Path) -> Result<(), ServerError> {
    for folder in state.ancestors() {
        let mode = fs::metadata(folder)
            .map_err(|source| ServerError::Io { doing: "look at", path: folder.to_owned(), source })?
            .permissions()
            .mode();
        if mode & 0o001 == 0 {
            return Err(ServerError::Unreachable { path: state.to_owned(), blocked_at: folder.to_owned() });
        }
    }
    Ok(())
}

fn lock(state: &Path) -> Result<File, ServerError> {
    let path = state.join("gsj.lock");
    let failed = |source: io::Error| ServerError::Io { doing: "take the lock", path: path.clone(), source };
    let file = File::options().create(true).append(true).mode(0o600).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ServerError::InUse { path: state.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Reads the pins; what ends a turn is taken from them where the configuration does not say.
fn pins(config: &mut Config) -> Result<Pins, ServerError> {
    let path = config.checks.pins.clone().ok_or(ServerError::Unset { key: "checks.pins" })?;
    let pins = Pins::read(&path);
    let failed = |source| ServerError::Pins { path: path.clone(), source };
    pins.check_whole().map_err(failed)?;
    if config.builder.end_of_turn_token_id.is_none()
        && let Some([id]) = pins.end_of_turn_ids().map_err(failed)?
    {
        config.builder.end_of_turn_token_id = Some(i64::from(*id));
    }
    Ok(pins)
}

/// What the reconstruction needs; a tokenizer that the pins don't approve would call contexts by wrong names.
fn builder(config: &Config, pins: &Pins) -> Result<reconstruct::Options, ServerError> {
    let mut options = config.builder.options();
    options.allow_forks = config.checks.allow_forks;
    let Some(path) = config.builder.tokenizer.clone() else { return Ok(options) };
    let bytes = fs::read(&path).map_err(|source| ServerError::Io { doing: "read", path: path.clone(), source })?;
    let tokenizer =
        Tokenizer::from_bytes(&bytes).map_err(|source| ServerError::Tokenizer { path: path.clone(), source })?;
    // No gate asks for this set, so it may be missing.
    if let Ok(approved) = pins.approved(Key::Tokenizer)
        && !approved.contains_digest(Some(tokenizer.identity()))
    {
        let pins = config.checks.pins.clone().unwrap_or_default();
        return Err(ServerError::TokenizerNotApproved { path, identity: tokenizer.identity().to_owned(), pins });
    }
    options.tokenizer = Some(Arc::new(tokenizer));
    Ok(options)
}

fn secret(name: &str, context: &Context) -> Result<Secret, ServerError> {
    const KEY: &str = "estate.token_secret_env";
    let name = name.to_owned();
    let Some(text) = (context.environment)(&name).filter(|text| !text.is_empty()) else {
        return Err(ServerError::SecretMissing { name, key: KEY, cure: SECRET_CURE });
    };
    Secret::new(text.into_bytes()).map_err(|error| ServerError::SecretUnusable {
        name,
        key: KEY,
        reason: error.to_string(),
    })
}

fn engine(config: &Config, context: &Context) -> Result<Engine, ServerError> {
    const KEY: &str = "engine.api_key_env";
    let engine = &config.engine;
    let kind = match engine.kind {
        EngineKindName::Vllm => EngineKind::Vllm,
        EngineKindName::Sglang => EngineKind::Sglang,
    };
    let base_url = engine.base_url.clone().ok_or(ServerError::Unset { key: "engine.base_url" })?;
    let model = engine.model.clone().ok_or(ServerError::Unset { key: "engine.model" })?;
    let mut options = EngineOptions::new(kind, base_url, model);
    if let Some(name) = &engine.api_key_env {
        let Some(text) = (context.environment)(name).filter(|text| !text.is_empty()) else {
            return Err(ServerError::SecretMissing { name: name.clone(), key: KEY, cure: KEY_CURE });
        };
        let key = ApiKey::new(&text).map_err(|error| ServerError::SecretUnusable {
            name: name.clone(),
            key: KEY,
            reason: error.to_string(),
        })?;
        options.api_key = Some(key);
    }
    options.stream = engine.stream;
    options.retries = engine.retries;
    options.connect_timeout = seconds(engine.connect_timeout_s);
    options.read_timeout = seconds(engine.read_timeout_s);
    let sampling = &engine.sampling;
    options.sampling = Sampling {
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        seed: sampling.seed,
        max_tokens: sampling.max_tokens,
    };
    Ok(Engine::new(options)?)
}

fn embedder(config: &EmbeddingsConfig, context: &Context) -> Result<Option<Arc<Embedder>>, ServerError> {
    const KEY: &str = "retrieval.embeddings.api_key_env";
    let mut key = None;
    if let Some(name) = &config.api_key_env {
        let Some(text) = (context.environment)(name).filter(|text| !text.is_empty()) else {
            return Err(ServerError::SecretMissing { name: name.clone(), key: KEY, cure: EMBEDDINGS_CURE });
        };
        let usable = EmbedKey::new(&text).map_err(|error| ServerError::SecretUnusable {
            name: name.clone(),
            key: KEY,
            reason: error.to_string(),
        })?;
        key = Some(usable);
    }
    let Some(options) = config.options(key) else { return Ok(None) };
    let embedder = Embedder::new(options)
        .map_err(|error| ServerError::Retrieval { what: "retrieval.embeddings".to_owned(), source: error.into() })?;
    Ok(Some(Arc::new(embedder)))
}

/// Opens the agent of the configuration, which must be there, and the others that are.
fn installed(agents: &Agents, wanted: &str, state: &Path) -> Result<BTreeMap<String, Installed>, ServerError> {
    let failed = |source| ServerError::Agent { agent: wanted.to_owned(), source };
    let wanted = agents.find(wanted).map_err(failed)?;
    let mut installed = BTreeMap::new();
    for agent in agents.iter() {
        let name = agent.manifest().name.clone();
        match agent::open(agent, state, Depth::Quick) {
            Ok(opened) => {
                installed.insert(name, opened);
            }
            Err(error) if name == wanted.manifest().name => return Err(failed(error)),
            Err(error) => tracing::debug!(agent = name, %error, "not available to tasks"),
        }
    }
    Ok(installed)
}

/// Where copies of a host's repositories are kept, and what the host asks for.
fn mirrors(config: &Config, places: &Places, context: &Context) -> Result<Mirrors, ServerError> {
    const KEY: &str = "estate.credential_env";
    let mut mirrors = Mirrors::new(places.state.join("repositories"));
    if let Some(name) = &config.estate.credential_env {
        let Some(text) = (context.environment)(name).filter(|text| !text.is_empty()) else {
            return Err(ServerError::SecretMissing { name: name.clone(), key: KEY, cure: CREDENTIAL_CURE });
        };
        let credential = Credential::new(&text).map_err(|error| ServerError::SecretUnusable {
            name: name.clone(),
            key: KEY,
            reason: error.to_string(),
        })?;
        if config.estate.clone_url_for.starts_with("http://") {
            tracing::warn!(url = config.estate.clone_url_for, "not https: the credential travels in the clear");
        }
        mirrors.credential = Some(credential);
    }
    Ok(mirrors)
}

/// The scan for text of later pages; only the strict validators ask for it.
fn leak_scan(config: &Config, estate: &Estate, decisions: Vec<u8>) -> Option<LeakScan> {
    let wanted = config.checks.leak_scan && config.checks.profile == ProfileName::Strict;
    wanted.then(|| LeakScan::new(Arc::new(estate.clone()), decisions))
}

fn retrieval(
    config: &RetrievalConfig,
    library: Library,
    secret: Secret,
    clock: &Clock,
) -> Result<Service, ServerError> {
    let failed = |what: String| move |source| ServerError::Retrieval { what, source };
    let tools = match &config.tools_file {
        Some(path) => {
            let bytes =
                fs::read(path).map_err(|source| ServerError::Io { doing: "read", path: path.to_owned(), source })?;
            Tools::from_bytes(&bytes).map_err(failed(format!("retrieval.tools_file `{}`", path.display())))?
        }
        None => Tools::builtin().map_err(failed("the built-in tools".to_owned()))?,
    };
    let clock = clock.clone();
    let mut options = Options::new(Arc::new(move || clock.whole_seconds()));
    options.leeway_s = i64::from(config.leeway_s);
    options.max_k = config.max_k;
    options.max_query_chars = usize::try_from(config.query_chars).unwrap_or(usize::MAX);
    options.calls_per_second_per_episode = NonZeroU32::new(config.calls_per_second_per_episode);
    Ok(Service::new(library, tools, vec![secret], options))
}

pub(crate) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
}
