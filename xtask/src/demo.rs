//! `cargo xtask demo`: install, build, run one real episode.

use std::process::{Command, ExitCode};

use crate::tools;

pub(crate) fn run(args: &[String]) -> Result<(), ExitCode> {
    tools::ensure(false)?;
    let mut build = tools::cargo();
    build.args(["build", "--package", "gsj-cli", "--bin", "gsj"]);
    tools::run(build)?;
    let gsj = tools::target_dir().join("debug/gsj");
    let mut install = Command::new(&gsj);
    install.args(["agent", "install", "pi"]).current_dir(tools::root());
    tools::run(install)?;
    let mut demo = Command::new(&gsj);
    demo.arg("demo").args(args).current_dir(tools::root());
    // It is there to be looked at, also where its output is kept in a file.
    if !args.iter().any(|arg| arg.starts_with("--format")) {
        demo.args(["--format", "human"]);
    }
    tools::run(demo)
}
