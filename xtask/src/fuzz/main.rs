//! `cargo xtask fuzz [TARGET..] [--minutes N]`: the laws of `gsj-laws` under libFuzzer, with the vectors as seeds.
#![expect(clippy::print_stderr, reason = "a command line tool talks to its user")]

mod libfuzzer;
mod seeds;
#[path = "../tools.rs"]
#[expect(dead_code, reason = "shared with the other chores")]
mod tools;

use std::process::ExitCode;

/// The targets, as files in `fuzz/targets` and laws are named.
const TARGETS: [&str; 4] = ["reader", "validators", "reconstruct", "pins"];
const USAGE: &str = "\
cargo xtask fuzz [TARGET..] [--minutes N]

Runs each target (reader, validators, reconstruct, pins; default all) for N minutes (default 2), beginning with the
shared vectors and the fixtures. What was found stays in the target folder; a failing input is named at the end.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

fn run() -> Result<(), ExitCode> {
    let (targets, minutes) = arguments()?;
    let folder = tools::target_dir().join("xtask/fuzz");
    let fuzzer = libfuzzer::install()?;
    let mut summary = Vec::new();
    let mut failed = false;
    for target in targets {
        let written = seeds::write(target, &folder).map_err(|error| {
            eprintln!("xtask: write the seeds of {target}: {error}");
            ExitCode::from(2)
        })?;
        eprintln!("xtask: {target}: {written} seeds, {minutes} minutes");
        let run = libfuzzer::run(&fuzzer, target, &folder, minutes)?;
        failed |= !run.passed;
        summary.push(run);
    }
    eprintln!("\n{:<12} {:<7} last line of libFuzzer", "target", "");
    for run in summary {
        eprintln!("{:<12} {:<7} {}", run.target, if run.passed { "ok" } else { "FAILED" }, run.last);
        for input in run.failing {
            eprintln!("             {}", input.display());
            eprintln!("             keep it: copy it to fuzz/regressions/{}/, where the tests replay it", run.target);
        }
    }
    if failed { Err(ExitCode::from(1)) } else { Ok(()) }
}

fn arguments() -> Result<(Vec<&'static str>, u32), ExitCode> {
    let usage = || {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    };
    let (mut targets, mut minutes) = (Vec::new(), 2);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--minutes" {
            minutes = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0).ok_or_else(usage)?;
        } else {
            targets.push(*TARGETS.iter().find(|target| **target == arg).ok_or_else(usage)?);
        }
    }
    Ok((if targets.is_empty() { TARGETS.to_vec() } else { targets }, minutes))
}
