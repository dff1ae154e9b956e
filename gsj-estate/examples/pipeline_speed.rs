//! CPU time and memory of the pipeline's phases over a corpus, as `cargo run --release --example pipeline_speed -- CORPUS`.
//!
//! The corpus is that of `gen_corpus.py` or any other; repositories go into a temporary folder, and the lock into the
//! corpus.
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use gsj_estate::{Corpus, EstateError, Host, Recipe, ScaffoldOptions, VerifyOptions, scaffold, verify};
use std::path::Path;
use std::time::Instant;

/// CPU seconds of all threads of this process so far; the kernel counts in hundredths.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().to_owned()
}

fn timed<T>(name: &str, work: impl FnOnce() -> Result<T, EstateError>) -> Result<T, EstateError> {
    let (wall, before) = (Instant::now(), cpu());
    let result = work()?;
    println!("{name:<28} {:>6.2} CPU s  {:>6.2} s  peak {}", cpu() - before, wall.elapsed().as_secs_f64(), peak());
    Ok(result)
}

fn main() -> Result<(), EstateError> {
    let root = std::env::args().nth(1).unwrap_or_else(|| "corpus".to_owned());
    let root = Path::new(&root);
    for recipe in [Recipe::Reference, Recipe::Sealed] {
        let base = std::env::temp_dir().join(format!("gsj-pipeline-{}-{}", std::process::id(), recipe.as_str()));
        let options = ScaffoldOptions::folder(&base, recipe);
        let name = recipe.as_str();
        timed("validate", || Corpus::read(root))?;
        timed(&format!("scaffold new, {name}"), || scaffold(&Corpus::read(root)?, &options))?;
        timed(&format!("scaffold unchanged, {name}"), || scaffold(&Corpus::read(root)?, &options))?;
        let report = timed(&format!("verify, {name}"), || {
            verify(&Corpus::read(root)?, &VerifyOptions::new(Host::Folder(base.clone())))
        })?;
        println!("{} findings, {} fail", report.findings.len(), report.failures().count());
        std::fs::remove_dir_all(&base).map_err(|source| EstateError::File {
            action: "remove",
            path: base.clone(),
            source,
        })?;
    }
    Ok(())
}
