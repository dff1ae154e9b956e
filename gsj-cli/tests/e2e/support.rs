//! What the end-to-end tests share: an estate in a folder of its own, and processes that don't outlive their test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

/// The secret of the tests' tokens; no output may ever hold it.
pub(crate) const SECRET: &str = "canary-secret-5b1f0c9e7d3a42868e6f-do-not-show";
/// The engine's key; no output may ever hold it either.
pub(crate) const ENGINE_KEY: &str = "canary-engine-key-c0ffee-do-not-show";

/// The project's folder.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file of the project's own fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    project().join("fixtures").join(name)
}

/// The folder beside the project with the founders' vectors and tools.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = project().join("../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there", path.display());
    None
}

/// The `gsj` binary with an environment of its own.
pub(crate) fn gsj() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gsj"));
    command.env_remove("GSJ_PINS_PATH").env_remove("GSJ_LOG").env("NO_COLOR", "1");
    command.env("GSJ_MCP_TOKEN_SECRET", SECRET).env("GSJ_TEST_ENGINE_KEY", ENGINE_KEY);
    command
}

/// Runs to the end and gives what was printed; a command that goes on for ever is killed, and the test fails.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = ended.recv_timeout(Duration::from_secs(900)).is_err_and(|e| e == RecvTimeoutError::Timeout);
        if late {
            send(id, Signal::KILL);
        }
        late
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    assert!(!watch.join().unwrap(), "{command:?} had to be killed: {}", text(&output));
    output
}

/// What a run printed on both streams.
pub(crate) fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Where agents for tests are installed; absent where only the fast tests run.
pub(crate) fn agents_state() -> Option<PathBuf> {
    let state = std::env::var_os("GSJ_TEST_STATE").map(PathBuf::from);
    if state.is_none() {
        eprintln!("SKIPPED: the real agent is not installed here; `cargo xtask test --all` does");
    }
    state
}

/// Sends a signal; false when no such process is there.
pub(crate) fn send(id: u32, signal: Signal) -> bool {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).unwrap();
    rustix::process::kill_process(id, signal).is_ok()
}

/// A process that ends with its owner.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts a command and waits for the line that says where it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap().keep().unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.0).spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        let url =
            line.split("http://").nth(1).map(|rest| rest.split(['"', ' ', '\n']).next().unwrap_or(rest).to_owned());
        let Some(url) = url else {
            drop(child.kill());
            drop(child.wait());
            panic!("no address in {line:?}; stderr: {}", std::fs::read_to_string(&log.1).unwrap_or_default());
        };
        drop(std::fs::remove_file(log.1));
        // The pipe is read on, so that the process never blocks on it.
        std::thread::spawn(move || drop(reader.read_to_end(&mut Vec::new())));
        Self { child, url: format!("http://{}", url.trim()) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        assert!(send(self.child.id(), signal), "the process is there to be signalled");
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An estate of the fixture corpus in a folder that the sandbox's user can reach.
pub(crate) struct Estate {
    pub(crate) home: tempfile::TempDir,
}

impl Estate {
    /// An estate of the project's own corpus.
    pub(crate) fn new() -> Self {
        Self::of(&fixture("corpus"))
    }

    /// An estate of any corpus.
    pub(crate) fn of(corpus: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("gsj-e2e-").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let estate = Self { home };
        // Scaffolding writes the lock into the corpus folder.
        let copied = Command::new("cp").arg("-r").arg(corpus).arg(estate.path("corpus")).status().unwrap();
        assert!(copied.success());
        assert!(Command::new("chmod").args(["-R", "u+w"]).arg(estate.path("corpus")).status().unwrap().success());
        let made = output(
            gsj()
                .args(["estate", "scaffold", "--recipe", "sealed", "--format", "json", "--corpus"])
                .arg(estate.path("corpus"))
                .arg("--base-url")
                .arg(format!("file://{}", estate.path("repos").display())),
        );
        assert!(made.status.success(), "{}", text(&made));
        estate
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The bare repository of a case.
    pub(crate) fn clone_url(&self) -> String {
        let owner = std::fs::read_dir(self.path("repos")).unwrap().next().unwrap().unwrap().path();
        format!("file://{}/{{case_id}}.git", owner.display())
    }

    /// Writes a configuration; `edit` changes the document before it is written.
    pub(crate) fn configure(&self, engine: &str, agent: &str, edit: impl FnOnce(&mut Value)) -> PathBuf {
        let mut config = serde_json::json!({
            "estate": {"clone_url_for": self.clone_url()},
            "engine": {"base_url": engine, "model": "gsj-scripted", "api_key_env": "GSJ_TEST_ENGINE_KEY"},
            "harness": {"agent": agent, "agents_dir": project().join("gsj-cli/tests/agents")},
            "checks": {"pins": fixture("pins/light.thinking-off.json")},
            "server": {"listen": "127.0.0.1:0", "state_dir": self.path("state")},
        });
        edit(&mut config);
        // JSON is YAML.
        let path = self.path("rollout.yaml");
        std::fs::write(&path, serde_json::to_vec_pretty(&config).unwrap()).unwrap();
        path
    }

    /// Installs an agent that needs no npm into the estate's state folder.
    pub(crate) fn install(&self, agent: &str) {
        let installed = output(
            gsj()
                .args(["agent", "install", agent, "--state"])
                .arg(self.path("state"))
                .arg("--agents-dir")
                .arg(project().join("gsj-cli/tests/agents")),
        );
        assert!(installed.status.success(), "{}", text(&installed));
    }

    pub(crate) fn serve(&self, config: &Path) -> Process {
        Process::start(gsj().args(["serve", "--config"]).arg(config))
    }
}

/// The scripted engine as a process of its own, which wants the tests' key.
pub(crate) fn scripted_engine(script: &Path, more: &[&str]) -> Process {
    open_engine(script, &[&["--api-key-env", "GSJ_TEST_ENGINE_KEY"], more].concat())
}

/// The scripted engine without a key.
pub(crate) fn open_engine(script: &Path, more: &[&str]) -> Process {
    Process::start(
        gsj()
            .args(["engine", "--port", "0", "--script"])
            .arg(script)
            .arg("--tokenizer")
            .arg(fixture("tokenizer/tokenizer.json"))
            .arg("--template")
            .arg(fixture("template/chat_template.jinja"))
            .args(more),
    )
}

/// The small real model's engine; absent where only the fast tests run.
pub(crate) fn real_engine(script: &Path, more: &[&str]) -> Option<Process> {
    let (Some(python), Some(engine)) =
        (std::env::var_os("GSJ_TEST_ENGINE_PYTHON"), std::env::var_os("GSJ_TEST_ENGINE"))
    else {
        eprintln!("SKIPPED: no real model here; `cargo xtask test --all` installs one");
        return None;
    };
    let mut command = Command::new(python);
    command.arg(engine).args(["--port", "0", "--script"]).arg(script).args(more);
    Some(Process::start(&mut command))
}

/// A JSON answer of a local server, by the machine's own curl-free means.
pub(crate) fn get(url: &str) -> Value {
    http(url, "GET", None).1
}

/// Status and JSON body of one HTTP call to a local server.
pub(crate) fn http(url: &str, method: &str, body: Option<&Value>) -> (u16, Value) {
    use std::io::Write as _;
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    let body = body.map(|b| serde_json::to_vec(b).unwrap()).unwrap_or_default();
    write!(
        stream,
        "{method} /{path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let split = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..split]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_slice(&answer[split + 4..]).unwrap_or(Value::Null))
}

/// Asks until the answer is there, or the time is up.
pub(crate) fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes whose command line or environment holds `mark`.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if id == std::process::id() {
            continue;
        }
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let hay = [read("cmdline"), read("environ")].concat();
        if hay.windows(mark.len()).any(|w| w == mark.as_bytes()) {
            found.push(format!("{id}: {}", String::from_utf8_lossy(&read("cmdline")).replace('\0', " ")));
        }
    }
    found
}

/// Whether any file below a folder holds `needle`; gives the first.
pub(crate) fn file_with(folder: &Path, needle: &[u8]) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            if let Some(found) = file_with(&path, needle) {
                return Some(found);
            }
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(needle.len()).any(|w| w == needle) {
                return Some(path);
            }
        }
    }
    None
}
