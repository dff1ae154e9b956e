//! The programs that a machine needs, and how Debian installs them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A program and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const DEMO: &[Tool] = &[
    Tool { program: "bwrap", package: "bubblewrap" },
    Tool { program: "rg", package: "ripgrep" },
    Tool { program: "fdfind", package: "fd-find" },
    Tool { program: "git", package: "git" },
    Tool { program: "npm", package: "npm" },
];
const TEST: &[Tool] = &[Tool { program: "/usr/bin/python3", package: "python3" }];

/// Installs what is missing, when this is root on Debian; else says which line to run.
pub(crate) fn ensure(with_tests: bool) -> Result<(), ExitCode> {
    let mut missing: Vec<&str> = DEMO.iter().filter(|tool| !present(tool.program)).map(|tool| tool.package).collect();
    if with_tests {
        missing.extend(TEST.iter().filter(|tool| !present(tool.program)).map(|tool| tool.package));
        if !Path::new("/usr/bin/python3").exists() || !venv_works() {
            missing.push("python3-venv");
        }
    }
    if !Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        missing.push("ca-certificates");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !is_root() || !present("apt-get") {
        eprintln!("xtask: missing here: {}", missing.join(" "));
        eprintln!("Run this as root, then the same command again:\n\n    apt-get update && {line}\n");
        return Err(ExitCode::from(2));
    }
    eprintln!("xtask: {line}");
    let update = Command::new("apt-get").args(["update", "-qq"]).env("DEBIAN_FRONTEND", "noninteractive").status();
    if !update.is_ok_and(|status| status.success()) {
        eprintln!("xtask: apt-get update failed; going on with the package lists that are there");
    }
    let status = Command::new("apt-get")
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    eprintln!("xtask: could not install; run `apt-get update && {line}` and read what it says");
    Err(ExitCode::from(2))
}

/// Whether a program is on the PATH.
pub(crate) fn present(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

fn venv_works() -> bool {
    Command::new("/usr/bin/python3")
        .args(["-c", "import venv, ensurepip"])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// The project's top folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end and turns its status into an exit code.
pub(crate) fn run(mut command: Command) -> Result<(), ExitCode> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
        Err(error) => {
            eprintln!("xtask: start {:?}: {error}", command.get_program());
            Err(ExitCode::from(2))
        }
    }
}
