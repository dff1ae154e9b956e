//! Validates a corpus and says what it found: `cargo run -p gsj-estate --example validate -- CORPUS`.
#![expect(clippy::print_stdout, reason = "a tool talks to its user")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1) else {
        println!("usage: validate CORPUS");
        return ExitCode::from(2);
    };
    let report = gsj_estate::validate(Path::new(&root));
    for finding in report.failures() {
        println!("{finding}");
    }
    let (passed, failed) = report.counts();
    println!("{passed} passed, {failed} failed");
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
