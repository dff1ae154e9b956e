//! The `git` program with surroundings of its own.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The most of what git prints that is kept, in bytes.
const MOST_PRINTED: u64 = 16 << 20;
/// The most of what git says that is kept, in bytes.
const MOST_SAID: u64 = 64 << 10;
/// How often a running git is looked at: soon after its start, then seldom.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));

/// How the `git` program is run on a repository or a remote that nobody vouches for: without the environment, the user's
/// and the system's configuration, prompts, credential helpers, hooks and proxies.
#[derive(Clone, Copy)]
pub struct GitProgram<'a> {
    /// The program; a name alone is looked for in the system's default folders.
    pub program: &'a Path,
    /// The protocols that may be spoken, as `https` or `https:http`.
    pub protocols: &'a str,
    /// A file of certificates to trust instead of the system's.
    pub certificates: Option<&'a Path>,
    /// A URL, and the header that every request below it carries; no redirect is followed then. It stands in an
    /// environment variable of the child: in no argument list and on no disk.
    pub authorization: Option<(&'a str, &'a str)>,
}

/// What became of git.
#[derive(Debug, Clone)]
pub struct GitRun {
    /// How it ended; nothing when it was given up.
    pub status: Option<ExitStatus>,
    /// What it printed, at most 16 MiB.
    pub printed: Vec<u8>,
    /// What it said of its work, at most 64 KiB. May repeat a URL or header that it was given.
    pub said: Vec<u8>,
}

impl std::fmt::Debug for GitProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitProgram").field("program", &self.program).finish_non_exhaustive()
    }
}

impl GitProgram<'_> {
    /// A command without arguments yet, in the root folder. `settings` are added to those that are the same for all.
    #[must_use]
    pub fn command(&self, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().current_dir("/").envs([
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("HOME", "/nonexistent"),
            ("XDG_CONFIG_HOME", "/nonexistent"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", self.protocols),
            ("LC_ALL", "C"),
        ]);
        if let Some(certificates) = self.certificates {
            command.env("GIT_SSL_CAINFO", certificates);
        }
        let always = [
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("credential.helper", ""),
            ("fetch.recurseSubmodules", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("transfer.bundleURI", "false"),
            // A remote that sends next to nothing for a minute is given up.
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "60"),
        ];
        let header = self.authorization.map(|(url, header)| (format!("http.{url}.extraHeader"), header));
        let authorized =
            header.iter().flat_map(|(key, header)| [("http.followRedirects", "false"), (key.as_str(), header)]);
        let mut count = 0_usize;
        for (key, value) in always.into_iter().chain(settings.iter().copied()).chain(authorized) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        command
    }

    /// Runs git to its end, or until `give_up` says so; then git and its helpers are gone.
    ///
    /// # Errors
    /// Fails when the program cannot be started or waited for.
    pub fn run(
        &self,
        settings: &[(&str, &str)],
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        give_up: &dyn Fn() -> bool,
    ) -> io::Result<GitRun> {
        let mut command = self.command(settings);
        // A group of its own, so that git's helpers end with it.
        command.args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let printed = scope.spawn(|| start_of(stdout, MOST_PRINTED));
            let said = scope.spawn(|| start_of(stderr, MOST_SAID));
            let status = wait(&mut child, give_up)?;
            let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
            Ok(GitRun { status, printed, said })
        })
    }
}

/// Waits for the end; nothing when it was given up, and then the child and its children are gone.
fn wait(child: &mut Child, give_up: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let (mut pause, longest) = LOOKS;
    loop {
        let ended = match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if give_up() => Ok(None),
            Ok(None) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(longest);
                continue;
            }
            Err(error) => Err(error),
        };
        // It may have ended by itself meanwhile.
        let _ =
            rustix::process::kill_process_group(rustix::process::Pid::from_child(child), rustix::process::Signal::KILL);
        let _ = child.kill();
        let _ = child.wait();
        return ended;
    }
}

/// The start of what comes through a pipe. The rest is read past, so that whoever writes never waits for us; a pipe that
/// breaks ends the text, and the exit status says the rest.
fn start_of(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut start = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.by_ref().take(most).read_to_end(&mut start);
        let _ = io::copy(&mut pipe, &mut io::sink());
    }
    start
}
