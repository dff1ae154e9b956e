//! Installing cargo-fuzz and running one target.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::tools;

const VERSION: &str = "0.13.2";
/// Longest input in bytes; longer seeds are cut, and most of what a rule does shows in far shorter ones.
const LONGEST: u32 = 40_000;
/// An input that takes longer than this many seconds is a failure.
const SLOWEST: u32 = 20;
/// More memory than this many MiB is a failure.
const MEMORY: u32 = 3_000;

/// How one target went.
pub(crate) struct Run {
    pub(crate) target: &'static str,
    pub(crate) passed: bool,
    /// libFuzzer's last line with its count of executions and covered edges.
    pub(crate) last: String,
    pub(crate) failing: Vec<PathBuf>,
}

/// The cargo-fuzz of our version, installed when it is not there yet.
pub(crate) fn install() -> Result<PathBuf, ExitCode> {
    let root = tools::target_dir().join("xtask/tools");
    let program = root.join("bin/cargo-fuzz");
    let version = Command::new(&program).args(["fuzz", "--version"]).output();
    let there = version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim_end().ends_with(VERSION));
    if !there {
        eprintln!("xtask: installing cargo-fuzz {VERSION}");
        let mut install = tools::cargo();
        install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&root);
        tools::run({
            install.arg(format!("cargo-fuzz@{VERSION}"));
            install
        })?;
    }
    Ok(program)
}

/// Runs a target over its corpus below a folder.
pub(crate) fn run(fuzzer: &Path, target: &'static str, folder: &Path, minutes: u32) -> Result<Run, ExitCode> {
    let artifacts = folder.join(target).join("artifacts");
    let known = listed(&artifacts);
    let mut command = Command::new(fuzzer);
    // Without a sanitizer the stable compiler will do; this code has no unsafe for one to watch.
    command.args(["fuzz", "run", "--sanitizer", "none", "--target-dir"]).arg(folder.join("build"));
    command.args(["--fuzz-dir", "fuzz", target]).arg(folder.join(target).join("corpus")).arg("--");
    command.arg(format!("-max_total_time={}", u64::from(minutes) * 60));
    command.arg(format!("-dict={}", folder.join(target).join("words").display()));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args([
        format!("-max_len={LONGEST}"),
        format!("-timeout={SLOWEST}"),
        format!("-rss_limit_mb={MEMORY}"),
        "-use_value_profile=1".to_owned(),
    ]);
    command.current_dir(tools::root()).env("CARGO", tools::cargo().get_program()).stderr(Stdio::piped());
    let fault = |error: std::io::Error| {
        eprintln!("xtask: run {}: {error}", fuzzer.display());
        ExitCode::from(2)
    };
    let mut child = command.spawn().map_err(fault)?;
    let mut last = String::new();
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        let line = line.map_err(fault)?;
        eprintln!("{line}");
        if line.starts_with('#') && line.contains("cov:") {
            last = line;
        }
    }
    let passed = child.wait().map_err(fault)?.success();
    let failing = listed(&artifacts).into_iter().filter(|path| !known.contains(path)).collect();
    Ok(Run { target, passed, last, failing })
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
