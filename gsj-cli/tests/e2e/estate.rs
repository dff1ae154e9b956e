//! `gsj estate`: the phases as an operator runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{fixture, gsj, output, shared, text};

fn copied(corpus: &Path) -> TempDir {
    let home = TempDir::new().unwrap();
    let status = Command::new("cp").arg("-r").arg(corpus).arg(home.path().join("corpus")).status().unwrap();
    assert!(status.success());
    assert!(Command::new("chmod").args(["-R", "u+w"]).arg(home.path()).status().unwrap().success());
    home
}

/// A phase over the copied corpus, into the folder beside it.
fn phase(name: &str, home: &Path) -> Command {
    let mut command = gsj();
    command.env_remove("GSJ_FORGEJO_TOKEN_GSJ_STAGING").args(["estate", name, "--format", "json", "--corpus"]);
    command.arg(home.join("corpus"));
    command
}

fn in_folder(name: &str, home: &Path) -> Command {
    let mut command = phase(name, home);
    command.arg("--base-url").arg(format!("file://{}", home.join("repos").display()));
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { pending.push(path) } else { files.push((path.clone(), fs::read(path).unwrap())) }
        }
    }
    files.sort();
    files
}

/// The files of an estate by their path below `home`.
fn estate(home: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let below = |(path, content): (PathBuf, Vec<u8>)| (path.strip_prefix(home).unwrap().to_owned(), content);
    snapshot(home).into_iter().map(below).collect()
}

#[test]
fn the_staging_corpus_becomes_the_expected_estate() {
    let (Some(corpus), Some(expected)) =
        (shared("data/staging-corpus"), shared("vectors/corpus/expected-lock-staging.json"))
    else {
        return;
    };
    let home = copied(&corpus);
    let ran = output(in_folder("all", home.path()).arg("--skip-ingest"));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let (mut lock, mut wanted) = (json(&home.path().join("corpus/corpus.lock.json")), json(&expected));
    for document in [&mut lock, &mut wanted] {
        let document = document.as_object_mut().unwrap();
        document.remove("_comment");
        document["taskbank"].as_object_mut().unwrap().remove("sha256");
    }
    assert_eq!(lock, wanted);
    for case in wanted["cases"].as_object().unwrap().keys() {
        let repository = home.path().join(format!("repos/gsj-staging/{case}.git"));
        let clone = home.path().join(case);
        let cloned = Command::new("git").args(["clone", "-q"]).arg(&repository).arg(&clone).status();
        if cloned.is_err() {
            eprintln!("SKIPPED: no git command here to clone with");
            return;
        }
        let branch = fs::read_to_string(clone.join(".git/HEAD")).unwrap();
        assert!(branch.trim().ends_with("refs/heads/main") && clone.join("md/page_0001.md").is_file(), "{branch}");
    }
    let before = estate(&home.path().join("repos"));
    let again = output(in_folder("all", home.path()).arg("--skip-ingest"));
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    assert!(estate(&home.path().join("repos")) == before, "an unchanged corpus writes nothing");
}

#[test]
fn exit_codes_tell_who_is_at_fault() {
    let home = copied(&fixture("corpus"));
    let refused = |command: &mut Command, code: i32, words: &[&str]| {
        let ran = output(command);
        let shown = text(&ran);
        assert_eq!(ran.status.code(), Some(code), "{shown}");
        for word in words {
            assert!(shown.contains(word), "`{word}` in: {shown}");
        }
    };
    let lock = home.path().join("corpus/corpus.lock.json");
    drop(fs::remove_file(&lock));
    refused(&mut in_folder("verify", home.path()), 2, &["corpus.lock.json", "scaffold"]);
    refused(in_folder("scaffold", home.path()).args(["--only", "nobody"]), 2, &["nobody"]);
    let owner = "--owner-override";
    refused(in_folder("scaffold", home.path()).args([owner, "../../x"]), 2, &["../../x"]);
    refused(phase("scaffold", home.path()).args(["--base-url", "http://127.0.0.1:1"]), 2, &["GSJ_FORGEJO_TOKEN_"]);
    let mut gone = phase("verify", home.path());
    gone.args(["--base-url", "http://u:hunter2@127.0.0.1:1"]);
    let ran = output(&mut gone);
    assert!(ran.status.code() == Some(2) && !text(&ran).contains("hunter2"), "{}", text(&ran));
    let beside = home.path().join("repos");
    let asked = format!("--base-url file://{}", beside.display());
    refused(phase("scaffold", home.path()).arg("--base-url").arg(&beside), 2, &["none of file:///FOLDER", &asked]);
    refused(phase("scaffold", home.path()).args(["--base-url", "u:hunter@h"]), 2, &["`...` is none of"]);
    let git = ["--host", "git", "--base-url", "http://127.0.0.1:1"];
    refused(phase("scaffold", home.path()).args(git), 2, &["GSJ_FORGEJO_TOKEN_", "password"]);

    // The service's secret: nothing is pushed without it, and what asks nothing needs none.
    let service = ["--mcp-url", "http://127.0.0.1:1"];
    let secret = "GSJ_MCP_TOKEN_SECRET";
    let mut all = in_folder("all", home.path());
    refused(all.args(service).env_remove(secret), 2, &[secret, "http://127.0.0.1:1: --skip-ingest"]);
    assert!(!beside.exists() && !lock.exists(), "nothing is made before");
    let mut dry = phase("ingest", home.path());
    refused(dry.args(service).arg("--dry-run").env_remove(secret), 0, &["would tell http://127.0.0.1:1"]);

    let dry = output(in_folder("all", home.path()).args(["--dry-run", "--skip-ingest"]));
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry));
    assert!(!home.path().join("repos").exists() && !lock.exists(), "a dry run touches nothing");

    let ran = output(in_folder("all", home.path()).arg("--skip-ingest"));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let bank = fs::read(home.path().join("corpus/taskbank.parquet")).unwrap();
    let case = json(&lock)["cases"].as_object().unwrap().keys().next().unwrap().clone();
    let ran = output(in_folder("all", home.path()).args(["--skip-ingest", "--only", &case]));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert_eq!(fs::read(home.path().join("corpus/taskbank.parquet")).unwrap(), bank);

    fs::write(home.path().join("corpus/stray.txt"), "x").unwrap();
    refused(&mut in_folder("verify", home.path()), 1, &["root.stray"]);
}

#[test]
fn a_disk_that_takes_no_more_is_told_by_its_own_words() {
    let home = copied(&fixture("corpus"));
    let scaffold = in_folder("scaffold", home.path());
    // No file may grow, and the signal that says so is ignored as git and cron do it.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]).arg(scaffold.get_program());
    limited.args(scaffold.get_args()).env("GSJ_MCP_TOKEN_SECRET", "0".repeat(32));
    let ran = output(&mut limited);
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(text(&ran).contains("caused by: File too large"), "{}", text(&ran));
    let ran = output(&mut in_folder("scaffold", home.path()));
    assert_eq!(ran.status.code(), Some(0), "with room it goes on: {}", text(&ran));
}

/// A case's folder, in whichever split it stands.
fn case_folder(corpus: &Path, case: &str) -> PathBuf {
    let found =
        ["train", "eval"].map(|split| corpus.join(split).join("cases").join(case)).into_iter().find(|p| p.is_dir());
    found.unwrap()
}

#[test]
fn every_change_of_the_corpus_followed_by_all_ends_in_a_clean_verify() {
    for recipe in ["sealed", "reference"] {
        let home = copied(&fixture("corpus"));
        let corpus = home.path().join("corpus");
        let all = |what: &str| {
            let ran = output(in_folder("all", home.path()).args(["--skip-ingest", "--recipe", recipe]));
            assert_eq!(ran.status.code(), Some(0), "{recipe}, {what}: {}", text(&ran));
            let lock = json(&corpus.join("corpus.lock.json"));
            let cases = lock["cases"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            let rows =
                output(gsj().args(["estate", "bank", "show", "--format", "json"]).arg(corpus.join("taskbank.parquet")));
            let rows: Value = serde_json::from_slice(&rows.stdout).unwrap();
            assert_eq!(rows["rows"], lock["taskbank"]["rows"], "{recipe}, {what}");
            cases
        };
        let first = all("new");
        let folders = |cases: &[String]| -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(home.path().join("repos"))
                .unwrap()
                .flat_map(|owner| fs::read_dir(owner.unwrap().path()).unwrap())
                .map(|repo| repo.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.ends_with(".git") && !name.ends_with(".full.git"))
                .map(|name| name.trim_end_matches(".git").to_owned())
                .collect();
            names.sort();
            assert_eq!(names, cases, "the host has the lock's cases and no others");
            names
        };
        folders(&first);

        let from = case_folder(&corpus, &first[0]);
        let split = if from.starts_with(corpus.join("train")) { "eval" } else { "train" };
        fs::create_dir_all(corpus.join(split).join("cases")).unwrap();
        fs::rename(&from, corpus.join(split).join("cases").join(&first[0])).unwrap();
        assert_eq!(all("a case moved to the other split"), first);

        let from = case_folder(&corpus, &first[0]);
        fs::rename(&from, from.with_file_name("another-name")).unwrap();
        let renamed = all("a case renamed");
        assert!(renamed.contains(&"another-name".to_owned()) && !renamed.contains(&first[0]), "{renamed:?}");
        folders(&renamed);

        for timestep in fs::read_dir(case_folder(&corpus, "another-name")).unwrap() {
            let page = timestep.unwrap().path().join("pages/page_0001.md");
            if page.is_file() {
                fs::write(page, "edited in every timestep\n").unwrap();
            }
        }
        assert_eq!(all("a page edited in every timestep"), renamed);

        fs::remove_dir_all(case_folder(&corpus, "another-name")).unwrap();
        for split in ["train", "eval"] {
            // A split that is there holds a case.
            if fs::read_dir(corpus.join(split).join("cases")).is_ok_and(|mut cases| cases.next().is_none()) {
                fs::remove_dir_all(corpus.join(split)).unwrap();
            }
        }
        let deleted = all("a case deleted");
        assert_eq!(deleted.len(), first.len() - 1);
        folders(&deleted);
    }
}

/// A command whose corpus folder cannot be written to, whoever runs it; absent where root may not make mounts.
fn over_read_only(corpus: &Path, command: &Command) -> Option<Command> {
    let mut wrapped = if rustix::process::geteuid().is_root() {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "--propagation", "private", "sh", "-c"]);
        unshare.arg("set -e; mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"; exec \"$@\"").arg(corpus);
        if !output(Command::new(unshare.get_program()).args(unshare.get_args()).arg("true")).status.success() {
            eprintln!("SKIPPED: no read-only mount can be made here");
            return None;
        }
        unshare
    } else {
        assert!(Command::new("chmod").args(["-R", "a-w"]).arg(corpus).status().unwrap().success());
        let mut env = Command::new("env");
        env.arg("--");
        env
    };
    wrapped.arg(command.get_program()).args(command.get_args());
    Some(wrapped)
}

#[test]
fn a_corpus_that_cannot_be_written_to_has_its_lock_elsewhere() {
    let home = copied(&fixture("corpus"));
    let (corpus, state) = (home.path().join("corpus"), home.path().join("state"));
    let before = snapshot(&corpus);
    let run =
        |args: &[&str]| over_read_only(&corpus, in_folder("all", home.path()).args(args)).map(|mut c| output(&mut c));
    let Some(refused) = run(&["--skip-ingest"]) else { return };
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("corpus.lock.json") && text(&refused).contains("--lock-dir"), "{}", text(&refused));
    let repos = home.path().join("repos");
    let built = snapshot(&repos);
    assert!(!built.is_empty(), "the repositories are there, with their ids");

    let inside = corpus.join("locks");
    let ran = run(&["--skip-ingest", "--lock-dir", inside.to_str().unwrap()]).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(text(&ran).contains("inside the corpus folder"), "{}", text(&ran));
    let ran = run(&["--skip-ingest", "--dry-run", "--lock-dir", state.to_str().unwrap()]).unwrap();
    assert_eq!((ran.status.code(), state.exists()), (Some(0), false), "a dry run makes nothing: {}", text(&ran));
    let ran = run(&["--skip-ingest", "--lock-dir", state.to_str().unwrap()]).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(snapshot(&corpus) == before && snapshot(&repos) == built);
    let made: Vec<String> =
        fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(
        made.len() == 2 && made.iter().all(|n| ["corpus.lock.json", "taskbank.parquet"].contains(&&n[..])),
        "{made:?}"
    );
    assert!(Command::new("chmod").args(["-R", "u+w"]).arg(&corpus).status().unwrap().success());
    let plain = copied(&fixture("corpus"));
    assert_eq!(output(in_folder("all", plain.path()).arg("--skip-ingest")).status.code(), Some(0));
    for name in ["corpus.lock.json", "taskbank.parquet"] {
        assert!(
            fs::read(state.join(name)).unwrap() == fs::read(plain.path().join("corpus").join(name)).unwrap(),
            "{name}"
        );
    }
}

/// Kills a phase at moments spread over its whole run, and runs it again, from the state that `before` leaves.
fn killed_and_run_again(name: &str, more: &[&str], before: &[&str]) {
    let moments: u32 = if std::env::var_os("GSJ_TEST_STATE").is_some() { 100 } else { 10 };
    // The bank has no place but the corpus folder.
    let command = |name: &str, home: &Path| if name == "taskbank" { phase(name, home) } else { in_folder(name, home) };
    let prepared = || {
        let home = copied(&fixture("corpus"));
        for name in before {
            assert_eq!(output(&mut command(name, home.path())).status.code(), Some(0), "{name}");
        }
        home
    };
    let undisturbed = prepared();
    let started = Instant::now();
    assert_eq!(output(command(name, undisturbed.path()).args(more)).status.code(), Some(0));
    let whole = started.elapsed().max(Duration::from_millis(20));
    let wanted = estate(undisturbed.path());
    let mut killed = 0;
    for moment in 0..moments {
        let home = prepared();
        let mut child = command(name, home.path())
            .args(more)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * moment / moments);
        drop(child.kill());
        killed += u32::from(!child.wait().unwrap().success());
        let ran = output(command(name, home.path()).args(more));
        assert_eq!(ran.status.code(), Some(0), "moment {moment}: {}", text(&ran));
        assert!(estate(home.path()) == wanted, "moment {moment} left another estate");
    }
    assert!(killed > 0, "no run was killed before its end");
}

#[test]
fn all_killed_at_any_moment_and_run_again_gives_the_same_estate() {
    killed_and_run_again("all", &["--skip-ingest"], &[]);
}

#[test]
fn scaffold_killed_at_any_moment_and_run_again_gives_the_same_estate() {
    killed_and_run_again("scaffold", &[], &[]);
}

#[test]
fn taskbank_killed_at_any_moment_and_run_again_gives_the_same_estate() {
    killed_and_run_again("taskbank", &[], &["scaffold"]);
}
