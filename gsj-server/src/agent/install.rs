use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::catalog::{Agent, Agents};
use super::error::AgentError;
use super::manifest::{AgentManifest, NpmRule, WireApi};
use super::placeholder::Values;
use super::program;
use super::tree;
pub use super::tree::Depth;

/// The listing of an installed folder; written last, so that a folder without one is not installed.
const LISTING: &str = ".gsj-installed";
const RUNTIME_DEADLINE: Duration = Duration::from_secs(30);

/// What installing may differ in.
#[derive(Debug, Clone)]
pub struct InstallOptions {
    /// The npm to run, a path or a name on PATH. Registry, proxy and credentials are npm's own
    /// configuration.
    pub npm: PathBuf,
    /// How long npm may take.
    pub deadline: Duration,
}

impl Default for InstallOptions {
    fn default() -> Self {
        Self { npm: PathBuf::from("npm"), deadline: Duration::from_secs(900) }
    }
}

/// What ran, as trace metadata states it: `gsj_agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentIdentity {
    /// The agent's name.
    pub name: String,
    /// Its version; of an agent from npm, read in the installed tree.
    pub version: String,
    /// SHA-256 of the lock; of an agent without one, over its own files.
    pub lock_sha256: String,
    /// The version of what runs it, measured, under its name: `node`, `python`.
    #[serde(flatten)]
    pub runtime: BTreeMap<String, String>,
    /// SHA-256 of the manifest.
    pub manifest_sha256: String,
    /// How it speaks to its model.
    pub wire_api: WireApi,
}

/// An agent in the state folder, checked and ready to be rendered.
#[derive(Debug, Clone)]
pub struct Installed {
    pub(super) agent: Agent,
    pub(super) npm_dir: Option<PathBuf>,
    pub(super) files_dir: PathBuf,
    identity: AgentIdentity,
}

impl Installed {
    /// The agent's manifest.
    #[must_use]
    pub fn manifest(&self) -> &AgentManifest {
        self.agent.manifest()
    }

    /// What trace metadata states.
    #[must_use]
    pub fn identity(&self) -> &AgentIdentity {
        &self.identity
    }

    /// Where it is: the npm tree where it has one, else its own files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.npm_dir.as_deref().unwrap_or(&self.files_dir)
    }

    /// The host path that `from` of a mount names.
    pub(super) fn host_path(&self, from: &str) -> Option<PathBuf> {
        let from = from.replace("{arch}", arch());
        let (root, rest) = from.split_once('/').unwrap_or((&from, ""));
        let dir = if root == "npm" { self.npm_dir.as_deref()? } else { &self.files_dir };
        Some(if rest.is_empty() { dir.to_path_buf() } else { dir.join(rest) })
    }
}

/// Node's name of this machine's architecture.
pub(super) fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Where the two parts of an agent lie: `<state>/agents/<name>/<lock>` and `.../files-<digest>`.
struct Places {
    root: PathBuf,
    npm: Option<PathBuf>,
    files: PathBuf,
}

impl Places {
    fn of(agent: &Agent, state: &Path) -> Self {
        let root = state.join("agents").join(&agent.manifest().name);
        let npm = agent.manifest().install.npm.as_ref().map(|_| root.join(agent.lock_sha256()));
        let files = root.join(format!("files-{}", agent.files_sha256()));
        Self { root, npm, files }
    }

    fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.npm.iter().chain([&self.files])
    }
}

/// Installs an agent into the state folder; what is there and whole is left alone. Blocks.
///
/// Content-addressed, and written aside and renamed: at any moment a folder there is whole or absent. A
/// file lock keeps two installs apart.
///
/// # Errors
/// A missing program or npm with the line that cures it, npm's own words where `npm ci` fails, a
/// version that is not the stated one.
pub fn install(agent: &Agent, state: &Path, options: &InstallOptions) -> Result<Installed, AgentError> {
    check_programs(agent.manifest())?;
    let places = Places::of(agent, state);
    make_dir(&places.root)?;
    let lock_path = places.root.join(".lock");
    let lock = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&lock_path)
        .map_err(AgentError::io("open lock", &lock_path))?;
    // Whoever holds it has deadlines of its own, and its death lets go of it.
    lock.lock().map_err(AgentError::io("take lock", &lock_path))?;
    remove_leftovers(&places.root)?;
    if let (Some(dir), Some(rule)) = (&places.npm, &agent.manifest().install.npm)
        && check(agent, state, dir, Depth::Quick).is_err()
    {
        place(dir, &places.root, |aside| npm_ci(agent, rule, aside, options))?;
    }
    if check(agent, state, &places.files, Depth::Full).is_err() {
        place(&places.files, &places.root, |aside| write_files(agent, aside))?;
    }
    drop(lock);
    open(agent, state, Depth::Quick)
}

/// Opens an installed agent: checks it, and measures the version of its runtime. Blocks.
///
/// # Errors
/// [`AgentError::NotInstalled`], [`AgentError::Damaged`], [`AgentError::MissingProgram`],
/// [`AgentError::Runtime`], [`AgentError::Version`].
pub fn open(agent: &Agent, state: &Path, depth: Depth) -> Result<Installed, AgentError> {
    let manifest = agent.manifest();
    let places = Places::of(agent, state);
    for dir in places.dirs() {
        check(agent, state, dir, depth)?;
    }
    check_programs(manifest)?;
    let identity = AgentIdentity {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        lock_sha256: agent.lock_sha256(),
        runtime: BTreeMap::new(),
        manifest_sha256: agent.manifest_sha256().to_owned(),
        wire_api: manifest.wire_api,
    };
    let mut installed = Installed { agent: agent.clone(), npm_dir: places.npm, files_dir: places.files, identity };
    for mount in manifest.mounts.values() {
        let path = installed.host_path(&mount.from).filter(|path| path.exists());
        path.ok_or_else(|| AgentError::Damaged {
            agent: manifest.name.clone(),
            dir: installed.dir().to_path_buf(),
            state: state.to_path_buf(),
            reason: format!("`{}` is not there (this machine is {})", mount.from, arch()),
        })?;
    }
    if let Some((name, version)) = runtime_version(&installed)? {
        installed.identity.runtime.insert(name, version);
    }
    Ok(installed)
}

/// Whether an agent's installation is what was installed, byte by byte. Blocks.
///
/// # Errors
/// As [`open`].
pub fn verify(agent: &Agent, state: &Path) -> Result<AgentIdentity, AgentError> {
    open(agent, state, Depth::Full).map(|installed| installed.identity)
}

/// One agent as `gsj agent list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its version, as stated.
    pub version: String,
    /// One line about it.
    pub about: String,
    /// Its lock's digest.
    pub lock_sha256: String,
    /// Where it is, or would be.
    pub dir: PathBuf,
    /// Whether it is there.
    pub presence: Presence,
}

/// Whether an agent is in the state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// Installed; its files have the recorded names, modes and sizes.
    Installed,
    /// Not installed.
    Absent,
    /// Installed once, and not usable now; the reason.
    Damaged(String),
}

/// Lists the agents and whether they are installed. Reads no file's content.
#[must_use]
pub fn list(agents: &Agents, state: &Path) -> Vec<Listed> {
    let row = |agent: &Agent| {
        let places = Places::of(agent, state);
        let presence = match places.dirs().try_for_each(|dir| check(agent, state, dir, Depth::Quick)) {
            Ok(()) => Presence::Installed,
            Err(AgentError::NotInstalled { .. }) => Presence::Absent,
            Err(AgentError::Damaged { reason, .. }) => Presence::Damaged(reason),
            Err(error) => Presence::Damaged(error.to_string()),
        };
        let manifest = agent.manifest();
        Listed {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            about: manifest.about.clone(),
            lock_sha256: agent.lock_sha256(),
            dir: places.npm.unwrap_or(places.files),
            presence,
        }
    };
    agents.iter().map(row).collect()
}

fn make_dir(path: &Path) -> Result<(), AgentError> {
    DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(AgentError::io("make folder", path))
}

fn check_programs(manifest: &AgentManifest) -> Result<(), AgentError> {
    for program in &manifest.install.programs {
        if !program.any_of.iter().any(|path| Path::new(path).exists()) {
            return Err(AgentError::MissingProgram {
                agent: manifest.name.clone(),
                program: program.any_of.join(" or "),
                apt: program.apt.clone(),
            });
        }
    }
    Ok(())
}

/// Removes what an install that was killed left behind. Called under the lock.
fn remove_leftovers(root: &Path) -> Result<(), AgentError> {
    for entry in fs::read_dir(root).map_err(AgentError::io("read folder", root))? {
        let entry = entry.map_err(AgentError::io("read folder", root))?;
        if entry.file_name().to_string_lossy().starts_with(".new-") {
            fs::remove_dir_all(entry.path()).map_err(AgentError::io("remove folder", entry.path()))?;
        }
    }
    Ok(())
}

/// Fills a folder aside, records what it holds, and puts it into its place.
fn place(dir: &Path, root: &Path, fill: impl FnOnce(&Path) -> Result<(), AgentError>) -> Result<(), AgentError> {
    let aside = root.join(format!(".new-{}", std::process::id()));
    make_dir(&aside)?;
    let filled = fill(&aside).and_then(|()| {
        tree::open_to_readers(&aside).map_err(AgentError::io("set modes below", &aside))?;
        let entries = tree::walk(&aside, Depth::Full).map_err(AgentError::io("read back", &aside))?;
        let listing = aside.join(LISTING);
        let mut file = File::create(&listing).map_err(AgentError::io("write", &listing))?;
        std::io::Write::write_all(&mut file, tree::to_text(&entries).as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(AgentError::io("write", &listing))?;
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(AgentError::io("remove damaged", dir))?;
        }
        fs::rename(&aside, dir).map_err(AgentError::io("put into place", dir))
    });
    if filled.is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    filled
}

fn check(agent: &Agent, state: &Path, dir: &Path, depth: Depth) -> Result<(), AgentError> {
    let name = || agent.manifest().name.clone();
    let damaged = |reason: String| AgentError::Damaged {
        agent: name(),
        dir: dir.to_path_buf(),
        state: state.to_path_buf(),
        reason,
    };
    let listing = dir.join(LISTING);
    if !listing.exists() {
        return Err(AgentError::NotInstalled { agent: name(), dir: dir.to_path_buf(), state: state.to_path_buf() });
    }
    let text = fs::read_to_string(&listing).map_err(|error| damaged(format!("its listing can't be read: {error}")))?;
    let recorded = tree::from_text(&text).ok_or_else(|| damaged("its listing is broken".to_owned()))?;
    let mut found = tree::walk(dir, depth).map_err(|error| damaged(format!("it can't be read: {error}")))?;
    found.retain(|entry| !entry.is(LISTING));
    tree::difference(&recorded, &found).map_or(Ok(()), |reason| Err(damaged(reason)))
}

fn npm_ci(agent: &Agent, rule: &NpmRule, dir: &Path, options: &InstallOptions) -> Result<(), AgentError> {
    let manifest = agent.manifest();
    for (target, source) in [("package.json", &rule.package), ("package-lock.json", &rule.lock)] {
        let path = dir.join(target);
        fs::write(&path, agent.file(source)).map_err(AgentError::io("write", &path))?;
    }
    let mut command = Command::new(&options.npm);
    // Each option is one that a user's own npm configuration could have set otherwise.
    command.current_dir(dir).arg("ci").args([
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--include=optional",
        "--omit=dev",
        "--package-lock=true",
        "--engine-strict=false",
        "--install-strategy=hoisted",
        "--global=false",
        "--dry-run=false",
        "--update-notifier=false",
        "--loglevel=error",
    ]);
    let ended = program::run(&mut command, options.deadline).map_err(|source| AgentError::NoNpm {
        agent: manifest.name.clone(),
        npm: options.npm.clone(),
        source,
    })?;
    if !ended.succeeded() {
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let said = lines[lines.len().saturating_sub(20)..].join("\n");
        return Err(AgentError::Npm { agent: manifest.name.clone(), status: ended.how(), said });
    }
    let path = dir.join(&rule.version_file);
    let package = fs::read(&path).map_err(AgentError::io("read installed", &path))?;
    let found = serde_json::from_slice::<Value>(&package)
        .ok()
        .and_then(|package| package.get("version").and_then(Value::as_str).map(str::to_owned))
        .unwrap_or_else(|| "not stated".to_owned());
    same_version(manifest, &rule.version_file, &found, &manifest.version)
}

fn write_files(agent: &Agent, dir: &Path) -> Result<(), AgentError> {
    for (name, bytes) in agent.own_files() {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            make_dir(parent)?;
        }
        fs::write(&path, bytes).map_err(AgentError::io("write", &path))?;
        if bytes.starts_with(b"#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .map_err(AgentError::io("set mode of", &path))?;
        }
    }
    Ok(())
}

fn runtime_version(installed: &Installed) -> Result<Option<(String, String)>, AgentError> {
    let manifest = installed.manifest();
    let Some(rule) = &manifest.runtime else { return Ok(None) };
    let places = manifest.mounts.iter().filter_map(|(name, mount)| {
        installed.host_path(&mount.from).map(|path| (name.clone(), Value::String(path.display().to_string())))
    });
    let values = Values(places.collect());
    let command: Vec<String> = rule.command.iter().map(|part| values.text(part)).collect();
    let fail =
        |reason: String| AgentError::Runtime { agent: manifest.name.clone(), command: command.join(" "), reason };
    let (program, arguments) = command.split_first().ok_or_else(|| fail("it is empty".to_owned()))?;
    let ended = program::run(Command::new(program).args(arguments).env_clear(), RUNTIME_DEADLINE)
        .map_err(|error| fail(error.to_string()))?;
    if !ended.succeeded() {
        return Err(fail(format!("it {}: {}", ended.how(), ended.stderr.trim())));
    }
    let version = ended
        .stdout
        .split_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .ok_or_else(|| fail("it prints no version".to_owned()))?;
    if let Some(stated) = &rule.version {
        same_version(manifest, &rule.name, version, stated)?;
    }
    Ok(Some((rule.name.clone(), version.to_owned())))
}

fn same_version(manifest: &AgentManifest, what: &str, found: &str, stated: &str) -> Result<(), AgentError> {
    if found == stated {
        return Ok(());
    }
    Err(AgentError::Version {
        agent: manifest.name.clone(),
        difference: format!("{what} is version {found}, the manifest states {stated}"),
    })
}
