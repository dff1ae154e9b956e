//! The project's own chores. Free of dependencies unless a chore needs one, so that the first command is quick.
#![expect(clippy::print_stderr, reason = "a command line tool talks to its user")]

mod bench;
mod demo;
mod docs;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <chore>

  demo [OPTIONS]      install what is needed, run one real episode, show the trajectory
  test [--all]        run the tests; --all with node, the real agent and a real model
  bench [cutoff] [retrieval] [--all]
                      measure, and print the reference's figures beside ours; --all with the gateway, the cuts and
                      retrieval; cutoff and retrieval those alone: the cuts against git clone and the leak scanner,
                      the retrieval service with queries from gsj-retrieval/benches/queries.txt
  fixtures            write fixtures/ anew from seeds
  fuzz [TARGET..] [--minutes N]
                      run the fuzz targets, N minutes each
  docs                write the generated pages of docs/";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let chore = args.next();
    let rest: Vec<String> = args.collect();
    let done = match chore.as_deref() {
        Some("demo") => demo::run(&rest),
        Some("test") => test::run(&rest),
        Some("bench") => bench::run(&rest),
        Some("docs") => docs::run(),
        Some("fixtures") => fixtures(&rest),
        Some("fuzz") => fuzz(&rest),
        Some("help" | "--help" | "-h") => {
            eprintln!("{HELP}");
            Ok(())
        }
        _ => {
            eprintln!("{HELP}");
            Err(ExitCode::from(2))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

fn fixtures(rest: &[String]) -> Result<(), ExitCode> {
    let mut again = tools::cargo();
    // Running the agents takes the whole server; writing files doesn't.
    let features = if rest.iter().any(|arg| arg == "--capture-agent") { "capture" } else { "fixtures" };
    again.args(["run", "--quiet", "--package", "xtask", "--features", features, "--bin", "xtask-fixtures", "--"]);
    again.args(rest);
    tools::run(again)
}

fn fuzz(rest: &[String]) -> Result<(), ExitCode> {
    let mut again = tools::cargo();
    again.args(["run", "--quiet", "--package", "xtask", "--features", "fuzz", "--bin", "xtask-fuzz", "--"]);
    again.args(rest);
    tools::run(again)
}
