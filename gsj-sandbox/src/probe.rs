//! Whether a backend works on this machine, and if not, what would make it work.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::bwrap::{self, Plan};
use crate::error::SandboxError;
use crate::info::BackendInfo;
use crate::orphans;
use crate::processes;
use crate::spec::{Backend, DEFAULT_UID};

/// The first version of bubblewrap with everything that is used here.
const OLDEST: [u32; 2] = [0, 8];

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(15);

/// What is to be looked at.
#[derive(Debug, Clone, Default)]
pub struct ProbeOptions {
    /// The bubblewrap program; absent: looked for in `/usr/bin`, `/usr/local/bin` and `/bin`.
    pub bwrap: Option<PathBuf>,
    /// The user that sandboxes will run as; as in [`crate::Spec::uid`].
    pub uid: Option<u32>,
}

/// Tries a backend: for bubblewrap, that it is there, new enough, and can build an empty sandbox as the user that
/// sandboxes will have. Blocks for some 20 ms. The error's [`SandboxError::hint`] is the command that cures it.
pub fn probe(backend: Backend, options: &ProbeOptions) -> Result<BackendInfo, SandboxError> {
    if backend == Backend::None {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        return Ok(BackendInfo { backend, version, program: None });
    }
    let (program, version) = version(options.bwrap.as_deref())?;
    let mut command = Command::new(&program);
    command.args(Plan::bare().into_arguments()).args(["--", "/usr/bin/true"]);
    if rustix::process::geteuid().is_root() {
        let uid = options.uid.unwrap_or(DEFAULT_UID);
        command.uid(uid).gid(uid);
    }
    let (success, said) = run(&mut command, "try bubblewrap")?;
    if success {
        Ok(BackendInfo { backend, version, program: Some(program) })
    } else {
        Err(Facts::read().diagnose(said.trim()))
    }
}

/// Returns where bubblewrap is, and its version.
pub(crate) fn version(wanted: Option<&Path>) -> Result<(PathBuf, String), SandboxError> {
    let program = match wanted {
        Some(path) if path.is_file() => path.to_path_buf(),
        Some(path) => return Err(missing(format!("bubblewrap is not at `{}`", path.display()))),
        None => bwrap::find().ok_or_else(|| {
            missing("bubblewrap is not installed (no bwrap in /usr/bin, /usr/local/bin or /bin)".to_owned())
        })?,
    };
    let (_, output) = run(Command::new(&program).arg("--version"), "ask bubblewrap for its version")?;
    match bwrap::version_of(output.as_bytes()) {
        Some((version, numbers)) if numbers >= OLDEST => Ok((program, version)),
        Some((version, _)) => Err(missing(format!(
            "`{}` is bubblewrap {version}, and 0.8.0 is the oldest that can forbid namespaces inside",
            program.display()
        ))),
        None => Err(missing(format!("`{}` is not bubblewrap", program.display()))),
    }
}

fn missing(what: String) -> SandboxError {
    SandboxError::BackendMissing { what, cure: as_root("apt-get install -y bubblewrap") }
}

fn as_root(command: &str) -> String {
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    format!("run: {sudo}{command}")
}

/// Runs a command with an end in sight; returns whether it succeeded, and what it wrote.
fn run(command: &mut Command, doing: &str) -> Result<(bool, String), SandboxError> {
    let (mut reader, writer) = io::pipe().map_err(SandboxError::io(doing))?;
    let errors = writer.try_clone().map_err(SandboxError::io(doing))?;
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(writer).stderr(errors);
    let mut child = orphans::spawn(command).map_err(SandboxError::io(doing))?;
    // The command holds the writing ends until others take their place.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let handle = Pid::from_raw(child.id().cast_signed())
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let in_time = handle.is_ok_and(|handle| processes::ended_by(handle.as_fd(), Instant::now() + TRIAL));
    if !in_time {
        let _ = child.kill();
    }
    let status = child.wait();
    orphans::forget(child.id());
    orphans::sweep();
    let status = status.map_err(SandboxError::io(doing))?;
    let mut output = Vec::new();
    // What is left behind may hold the pipe open: one read gives all that so short a program wrote.
    let mut buffer = [0; 4096];
    let length = reader.read(&mut buffer).map_err(SandboxError::io(doing))?;
    output.extend_from_slice(&buffer[..length]);
    Ok((in_time && status.success(), String::from_utf8_lossy(&output).into_owned()))
}

/// What the kernel's settings say about user namespaces.
#[derive(Debug, Default)]
struct Facts {
    max_user_namespaces: Option<u64>,
    unprivileged_clone: Option<u64>,
    apparmor_restricts: Option<u64>,
    in_container: bool,
}

impl Facts {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        Self {
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            in_container: Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists(),
        }
    }

    /// Finds the setting to blame, the most specific one first.
    fn diagnose(&self, said: &str) -> SandboxError {
        let (why, cure) = if self.unprivileged_clone == Some(0) {
            ("kernel.unprivileged_userns_clone is 0", as_root("sysctl -w kernel.unprivileged_userns_clone=1"))
        } else if self.max_user_namespaces == Some(0) {
            ("user.max_user_namespaces is 0", as_root("sysctl -w user.max_user_namespaces=15000"))
        } else if self.apparmor_restricts == Some(1) {
            (
                "kernel.apparmor_restrict_unprivileged_userns is 1",
                as_root("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
            )
        } else if self.in_container {
            (
                "this is a container, whose profile may forbid them",
                "start the container with: --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                 --security-opt systempaths=unconfined"
                    .to_owned(),
            )
        } else {
            (
                "no setting of the kernel says why",
                "see what is refused with: bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / true"
                    .to_owned(),
            )
        };
        let said = if said.is_empty() { "bubblewrap ended without a word" } else { said };
        SandboxError::UserNamespaces { reason: format!("{said} ({why})"), cure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_forbids_namespaces_is_named_with_its_cure() {
        let zero = Facts { max_user_namespaces: Some(0), ..Facts::default() };
        let debian = Facts { unprivileged_clone: Some(0), ..Facts::default() };
        let ubuntu = Facts { apparmor_restricts: Some(1), max_user_namespaces: Some(9000), ..Facts::default() };
        for (facts, setting) in [
            (zero, "user.max_user_namespaces"),
            (debian, "kernel.unprivileged_userns_clone"),
            (ubuntu, "kernel.apparmor_restrict_unprivileged_userns"),
        ] {
            let error = facts.diagnose("bwrap: No permissions to create a new namespace");
            assert!(error.to_string().contains(setting), "`{error}` names {setting}");
            let hint = error.hint().expect("there is a cure");
            assert!(hint.contains(&format!("sysctl -w {setting}=")), "`{hint}` sets {setting}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_command_that_installs_it() {
        let error = version(Some(Path::new("/nonexistent/bwrap"))).expect_err("there is none");
        assert_eq!(error.to_string(), "bubblewrap is not at `/nonexistent/bwrap`");
        assert!(error.hint().is_some_and(|hint| hint.ends_with("apt-get install -y bubblewrap")));
    }

    #[test]
    fn a_program_that_is_something_else_is_refused() {
        let error = version(Some(Path::new("/bin/true"))).expect_err("true prints no version of bubblewrap");
        assert_eq!(error.to_string(), "`/bin/true` is not bubblewrap");
    }
}
