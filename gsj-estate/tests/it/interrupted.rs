//! Killing a scaffold at any moment, and running it again.

use crate::support::{build, child, snapshot, synthetic};
use gsj_estate::Recipe;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROOT: &str = "GSJ_ESTATE_TEST_ROOT";
const BASE: &str = "GSJ_ESTATE_TEST_BASE";

#[test]
#[ignore = "a process that the tests below start and kill"]
fn scaffolds_what_it_is_told() {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    if let (Some(root), Some(base)) = (path(ROOT), path(BASE)) {
        build(&root, &base, Recipe::Sealed);
    }
}

/// The corpus in a second state: a case gone, one moved to the other split, one renamed, and a page edited everywhere.
fn change(root: &Path) {
    let cases = root.join("train/cases");
    fs::remove_dir_all(cases.join("case_0000")).expect("removes");
    fs::rename(cases.join("case_0001"), root.join("eval/cases/case_0001")).expect("moves");
    fs::rename(cases.join("case_0002"), cases.join("case_renamed")).expect("renames");
    for timestep in [2, 4, 6] {
        fs::write(cases.join(format!("case_0003/timestep-{timestep}/pages/page_0001.md")), "edited\n").expect("writes");
    }
}

fn estate(root: &Path, base: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = snapshot(base);
    files.push(("lock".into(), fs::read(root.join("corpus.lock.json")).expect("reads")));
    files
}

#[test]
fn a_killed_run_and_another_end_as_one_undisturbed_run() {
    // The long form is for `cargo xtask test --all`.
    let moments = if std::env::var_os("GSJ_TEST_STATE").is_some() { 100 } else { 10 };
    let wanted = {
        let (root, base) = (synthetic(10), TempDir::new().expect("temporary folder"));
        build(root.path(), base.path(), Recipe::Sealed);
        change(root.path());
        build(root.path(), base.path(), Recipe::Sealed);
        estate(root.path(), base.path())
    };
    let mut longest = Duration::from_millis(20);
    let mut killed = 0;
    for moment in 0..moments {
        let (root, base) = (synthetic(10), TempDir::new().expect("temporary folder"));
        let run = |delay: Option<Duration>| -> bool {
            let mut command = child("interrupted::scaffolds_what_it_is_told");
            let mut process = command.env(ROOT, root.path()).env(BASE, base.path()).spawn().expect("starts");
            if let Some(delay) = delay {
                std::thread::sleep(delay);
                process.kill().expect("kills");
            }
            process.wait().expect("ends").success()
        };
        // Spread over the whole of a run, by steps that hit no multiple of each other.
        let at = |step: u32| longest * ((moment * step) % 97) / 97;
        killed += u32::from(!run(Some(at(31))));
        // The lock is what a later run knows of earlier ones, so a first run has to have ended once.
        assert!(run(None), "a run after a killed one");
        change(root.path());
        killed += u32::from(!run(Some(at(53))));
        let started = Instant::now();
        assert!(run(None), "a run after a killed one");
        longest = longest.max(started.elapsed());
        assert!(estate(root.path(), base.path()) == wanted, "moment {moment} left another estate");
    }
    assert!(killed > 0, "no run was killed before its end");
}
