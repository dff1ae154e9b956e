//! A folder, a launcher and a spec for each test; reading the process table from outside.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gsj_sandbox::{
    Backend, DEFAULT_UID, Exit, InitProgram, Label, Launcher, LauncherOptions, Mount, ProbeOptions, Running, Spec,
    probe,
};

pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Longer than anything here takes on a loaded machine: a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One test's ground: a folder that the sandbox's user can reach, with the run folder and outputs in it.
pub(crate) struct Ground {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) launcher: Launcher,
    /// Found in the environment of every process of this test's sandboxes.
    pub(crate) mark: String,
}

/// Returns whether sandboxes work here; says loudly when a test is left out because they do not.
pub(crate) fn works(backend: Backend) -> bool {
    match probe(backend, &ProbeOptions::default()) {
        Ok(_) => true,
        Err(error) => {
            eprintln!("SKIPPED: {error}; {}", error.hint().unwrap_or_default());
            false
        }
    }
}

pub(crate) fn init_program() -> InitProgram {
    InitProgram { path: PathBuf::from(env!("CARGO_BIN_EXE_gsj-sandbox-init")), args: Vec::new() }
}

/// The user that sandboxes of this test run as.
pub(crate) fn sandbox_uid() -> u32 {
    if rustix::process::geteuid().is_root() { DEFAULT_UID } else { rustix::process::geteuid().as_raw() }
}

impl Ground {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it can be opened");
        let launcher = Launcher::new(LauncherOptions::new(folder.path().join("run"))).expect("a launcher");
        let mark = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
        Self { folder, launcher, mark }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A spec that runs `command` and writes to `stdout` and `stderr` in the folder.
    pub(crate) fn spec(&self, session: &str, command: &[&str]) -> Spec {
        let create = |name: &str| File::create(self.path(&format!("{session}.{name}"))).expect("an output file");
        let mut spec = Spec::new(
            Label { run: "test".to_owned(), session: session.to_owned() },
            command.iter().map(|word| (*word).to_owned()).collect(),
            init_program(),
            create("stdout"),
            create("stderr"),
        );
        spec.env.insert("GSJ_TEST_MARK".to_owned(), self.mark.clone());
        spec
    }

    pub(crate) fn shell(&self, session: &str, script: &str) -> Spec {
        self.spec(session, &["/bin/sh", "-c", script])
    }

    pub(crate) fn python(&self, session: &str, program: &str) -> Spec {
        self.spec(session, &[PYTHON, "-c", program])
    }

    /// A writable folder of the host, owned by the sandbox's user, mounted at `/workspace`.
    pub(crate) fn workspace(&self, spec: &mut Spec) -> PathBuf {
        let path = self.path(&format!("{}.workspace", spec.label.session));
        fs::create_dir(&path).expect("a workspace");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(sandbox_uid()), Some(sandbox_uid())).expect("given away");
        }
        spec.mounts.push(Mount { source: path.clone(), target: "/workspace".into(), writable: true });
        path
    }

    pub(crate) fn stdout(&self, session: &str) -> String {
        fs::read_to_string(self.path(&format!("{session}.stdout"))).expect("the output was written")
    }

    pub(crate) fn stderr(&self, session: &str) -> String {
        fs::read_to_string(self.path(&format!("{session}.stderr"))).expect("the errors were written")
    }

    /// Runs a spec to its end; returns what it wrote.
    pub(crate) async fn output(&self, spec: Spec) -> (Exit, String) {
        let session = spec.label.session.clone();
        let mut running = self.launcher.start(spec).await.expect("the sandbox starts");
        let exit = within(running.wait()).await;
        (exit, self.stdout(&session))
    }

    /// Waits until the command has written a line that holds `text`.
    pub(crate) async fn wrote(&self, session: &str, text: &str) {
        eventually(&format!("`{text}` in the output of {session}"), || self.stdout(session).contains(text)).await;
    }

    /// Asserts that no process of this test's sandboxes is left, no mount and no intent.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(marked(&self.mark), Vec::<String>::new(), "every process of the sandbox has ended");
        let mounts = fs::read_to_string("/proc/mounts").expect("the mount table");
        assert!(!mounts.contains(&self.mark), "no mount of the sandbox is left on the host");
        assert_eq!(self.intents(), Vec::<String>::new(), "no intent and no scratch folder is left");
    }

    pub(crate) fn intents(&self) -> Vec<String> {
        let folder = fs::read_dir(self.path("run")).expect("the run folder");
        folder.flatten().map(|item| item.file_name().to_string_lossy().into_owned()).collect()
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens within a minute")
}

/// Asks again and again, leaving the processor to others in between.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Processes whose environment holds the mark, as `pid name state`; zombies have none and are not found.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    pids()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&format!("GSJ_TEST_MARK={mark}"))
        })
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok())
        .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect()
}

/// The processes below one, itself included, each by number and start time.
pub(crate) fn family(root: u32) -> BTreeSet<(u32, String)> {
    let table: Vec<(u32, u32, String)> = pids().into_iter().filter_map(line).collect();
    let mut family = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = table
            .iter()
            .filter(|(pid, parent, _)| family.contains(parent) && !family.contains(pid))
            .map(|(pid, ..)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        family.extend(more);
    }
    table.into_iter().filter(|(pid, ..)| family.contains(pid)).map(|(pid, _, started)| (pid, started)).collect()
}

/// Those of a family that still run; zombies do not.
pub(crate) fn alive(family: &BTreeSet<(u32, String)>) -> Vec<u32> {
    family
        .iter()
        .filter(|(pid, started)| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = text.rsplit(')').next().and_then(|rest| rest.split_ascii_whitespace().next());
            line(*pid).is_some_and(|(_, _, now)| now == *started) && state != Some("Z")
        })
        .map(|(pid, _)| *pid)
        .collect()
}

fn pids() -> Vec<u32> {
    let folder = fs::read_dir("/proc").expect("the process table");
    folder.flatten().filter_map(|item| item.file_name().to_str()?.parse().ok()).collect()
}

fn line(pid: u32) -> Option<(u32, u32, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit(')').next()?.split_ascii_whitespace().collect();
    Some((pid, fields.get(1)?.parse().ok()?, (*fields.get(19)?).to_owned()))
}

/// Answers every connection on the sandbox's first listener with its own name, until dropped.
pub(crate) fn serve(running: &mut Running) -> Vec<tokio::task::JoinHandle<()>> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listeners = std::mem::take(&mut running.listeners).into_iter().enumerate();
    listeners
        .map(|(number, listener)| {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is non-blocking");
            tokio::spawn(async move {
                while let Ok((mut client, _)) = listener.accept().await {
                    let mut question = [0; 5];
                    if client.read_exact(&mut question).await.is_ok() {
                        let name = String::from_utf8_lossy(&question).into_owned();
                        let _ = client.write_all(format!("{name} from socket {number}\n").as_bytes()).await;
                    }
                }
            })
        })
        .collect()
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
