//! Every leak known from the field, in one repository: told in a copy of it, and gone in a cut of it.

use crate::git::{copy, feed, git, imported, inflated, repository, snapshot, there, write};
use gsj_cutoff::{Cut, CutRequest, Expectation, audit, cut};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Commits before the cut.
const HONEST: i64 = 500;
/// Seconds of the first commit; each that follows is a minute later.
const START: i64 = 1_600_000_000;
/// Stands in every later object and nowhere before.
const SECRET: &str = "the fix that nobody may see yet";

struct Field {
    root: TempDir,
}

impl Field {
    fn new() -> Self {
        let (root, work) = repository();
        let mut script = String::new();
        for number in 0..HONEST + 3 {
            let later = number >= HONEST;
            let text = match number - HONEST {
                0 => format!("{SECRET}\n"),
                // The later commit that reverts: the tree is the honest one again, the fix is in the past.
                1 => format!("state {}\n", HONEST - 1),
                _ => format!("state {number}\n"),
            };
            let message = if later { format!("later {number}: {SECRET}") } else { format!("honest {number}") };
            let from = if number == 0 { String::new() } else { format!("from :{number}\n") };
            let seconds = START + number * 60;
            script += &imported("main", number + 1, seconds, &message, &from, "src/code.txt", &text);
        }
        feed(&work, &["fast-import", "--quiet"], script.as_bytes());
        let field = Self { root };
        field.plant();
        field
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Leaves behind what working on a repository leaves behind. HEAD ends up at the last honest commit.
    fn plant(&self) {
        let work = self.work();
        let run = |arguments: &[&str]| git(&work, arguments).trim().to_owned();
        run(&["reset", "-q", "--hard", "main"]);
        run(&["branch", "future", "main"]);
        run(&["tag", "v2", "main"]);
        run(&["tag", "-a", "v2-annotated", "-m", SECRET, "main"]);
        run(&["notes", "add", "-m", SECRET, "main"]);
        run(&["update-ref", "refs/remotes/origin/main", "main"]);
        run(&["remote", "add", "origin", "https://user:hunter2@h.invalid/x.git"]);
        write(&work.join("src/code.txt"), SECRET);
        run(&["stash", "-q"]);
        run(&["tag", "packed-tag", "main"]);
        run(&["pack-refs", "--all"]);
        run(&["branch", "loose-later", "main"]);
        let honest = run(&["rev-parse", "main~3"]);
        run(&["replace", &honest, "main"]);
        run(&["bundle", "create", "-q", ".git/all.bundle", "main"]);
        run(&["worktree", "add", "-q", "../second", "future"]);
        feed(&work, &["hash-object", "-w", "--stdin"], format!("unreachable: {SECRET}\n").as_bytes());
        write(&self.root.path().join("elsewhere/objects/x"), "");
        write(
            &work.join(".git/objects/info/alternates"),
            &format!("{}\n", self.root.path().join("elsewhere/objects").display()),
        );
        write(&work.join(".git/info/grafts"), "");
        write(&work.join(".git/FETCH_HEAD"), &format!("{}\t\tbranch 'main'\n", run(&["rev-parse", "main"])));
        write(&work.join(".git/hooks/post-checkout"), "#!/bin/sh\n");
        run(&["commit-graph", "write", "--reachable"]);
        run(&["multi-pack-index", "write"]);
        run(&["checkout", "-q", "-B", "main", &honest]);
    }
}

#[test]
fn each_leak_is_named_in_a_copy_and_gone_in_a_cut() {
    if !there() {
        return;
    }
    let field = Field::new();
    let image = field.root.path().join("copy");
    copy(&field.work(), &image);
    let leaks = audit(&image, &Expectation::default()).expect("audits").leaks;
    for (what, where_) in [
        ("future branch", "refs/heads/future"),
        ("loose branch", "refs/heads/loose-later"),
        ("tag", "refs/tags/v2"),
        ("annotated tag", "refs/tags/v2-annotated"),
        ("packed ref", "refs/tags/packed-tag"),
        ("remote branch", "refs/remotes/origin/main"),
        ("remote", ".git/config"),
        ("stash", "refs/stash"),
        ("notes", "refs/notes/commits"),
        ("reflog", ".git/logs/HEAD"),
        ("reflog of the stash", ".git/logs/refs/stash"),
        ("alternates", ".git/objects/info/alternates"),
        ("replace ref", "refs/replace/"),
        ("second working tree", ".git/worktrees/"),
        ("bundle", ".git/all.bundle"),
        ("graft", ".git/info/grafts"),
        ("fetch head", ".git/FETCH_HEAD"),
        ("original head", ".git/ORIG_HEAD"),
        ("hook", ".git/hooks/post-checkout"),
        ("commit graph", "commit-graph"),
        ("multi-pack index", "multi-pack-index"),
    ] {
        assert!(leaks.iter().any(|leak| leak.where_.contains(where_)), "{what} is not named in {leaks:#?}");
    }
    let unreachable = |leak: &&gsj_cutoff::Leak| leak.what.contains("does not reach");
    assert!(leaks.iter().filter(unreachable).count() >= 6, "the later commits and the loose object: {leaks:#?}");

    let dest = field.root.path().join("cut");
    let seconds = START + (HONEST - 1) * 60;
    let report = cut(&CutRequest::new(&field.work(), Cut::Date { seconds, branch: Some("future".into()) }, &dest))
        .expect("cuts");
    assert_eq!(report.evidence.commits, u64::try_from(HONEST).expect("positive"), "the honest past is kept");
    assert_eq!(report.later_dated, []);
    let expectation = Expectation { forbid_from: Some(field.work()), ..Expectation::default() };
    assert_eq!(audit(&dest, &expectation).expect("audits").leaks, []);

    assert_eq!(git(&dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    assert_eq!(git(&dest, &["log", "--all", "--format=%s"]).lines().count(), 500);
    assert_nowhere(&dest, SECRET);
    assert_nowhere(&dest, "hunter2");
}

/// Asserts that a text is in no object and in no file, inflated or as it stands.
fn assert_nowhere(dest: &Path, text: &str) {
    let all = git(dest, &["cat-file", "--batch-all-objects", "--batch", "--unordered"]);
    assert!(all.contains("state 7"), "the objects are looked at");
    assert!(!all.contains(text), "in an object");
    for (path, _, content) in snapshot(dest) {
        assert!(!String::from_utf8_lossy(&content).contains(text), "in {}", path.display());
        if path.extension().is_some_and(|extension| extension == "pack") {
            assert!(!inflated(&content).contains(text), "in {}", path.display());
        }
    }
}
