use crate::git::{Case, command, git, request, sentence, there, write};
use gsj_cutoff::{Audit, Expectation, audit, checkout};
use std::path::{Path, PathBuf};

struct Cut {
    case: Case,
    dest: PathBuf,
}

impl Cut {
    /// A clean checkout of timestep 2.
    fn new() -> Self {
        let case = Case::new();
        let dest = case.root.path().join("cut");
        checkout(&request(&case.bare(), "timestep-2", 2, &dest)).expect("checks out");
        Self { case, dest }
    }

    fn audit(&self) -> Audit {
        audit(&self.dest, &Expectation { timestep: Some(2), forbid_from: Some(self.case.bare()), ..Default::default() })
            .expect("audits")
    }
}

/// Asserts that one change of a clean checkout is found, where and what it is.
fn found(change: impl Fn(&Cut), where_: &str, what: &str) {
    let cut = Cut::new();
    let clean = cut.audit();
    assert_eq!(clean.leaks, [], "our own cut is clean, against its source too");
    change(&cut);
    let leaks = cut.audit().leaks;
    assert!(
        leaks.iter().any(|leak| leak.where_.contains(where_) && leak.what.contains(what)),
        "{where_} / {what} is not among {leaks:#?}"
    );
}

fn later_blob(cut: &Cut) -> String {
    git(&cut.case.bare(), &["rev-parse", "main:md/page_0003.md"]).trim().to_owned()
}

#[test]
fn every_leak_known_from_the_field_is_named() {
    if !there() {
        return;
    }
    let fetch = |cut: &Cut, what: &str| {
        let source = format!("file://{}", cut.case.bare().display());
        git(&cut.dest, &["fetch", "-q", &source, what]);
    };
    found(|cut| fetch(cut, "main:refs/heads/future"), ".git/refs/heads/future", "ref beside");
    found(|cut| fetch(cut, "main:refs/heads/future"), "FETCH_HEAD", "another command");
    found(|cut| fetch(cut, "main:refs/heads/future"), "", "outside the cut");
    found(|cut| drop(git(&cut.dest, &["tag", "v1"])), ".git/refs/tags/v1", "ref beside");
    found(
        |cut| {
            git(&cut.dest, &["tag", "v1"]);
            git(&cut.dest, &["pack-refs", "--all"]);
        },
        "refs/tags/v1",
        "ref beside",
    );
    found(|cut| drop(git(&cut.dest, &["remote", "add", "origin", "https://u:p@h.invalid/x"])), ".git/config", "remote");
    found(
        |cut| {
            write(&cut.dest.join("md/page_0001.md"), "changed\n");
            git(&cut.dest, &["stash", "-q"]);
        },
        "refs/stash",
        "ref beside",
    );
    found(|cut| drop(git(&cut.dest, &["notes", "add", "-m", "x"])), "refs/notes/commits", "ref beside");
    found(
        |cut| drop(git(&cut.dest, &["-c", "core.logAllRefUpdates=true", "commit", "-q", "--allow-empty", "-m", "x"])),
        ".git/logs/HEAD",
        "reflog",
    );
    found(
        |cut| {
            let page = cut.case.work().join("md/page_0003.md");
            git(&cut.dest, &["hash-object", "-w", &page.display().to_string()]);
        },
        "",
        "does not reach",
    );
    found(
        |cut| {
            let objects = cut.case.bare().join("objects");
            write(&cut.dest.join(".git/objects/info/alternates"), &format!("{}\n", objects.display()));
        },
        "alternates",
        "alternate object store",
    );
    found(|cut| write(&cut.dest.join(".git/hooks/post-checkout"), "#!/bin/sh\n"), "post-checkout", "hook");
    found(
        |cut| drop(git(&cut.dest, &["worktree", "add", "-q", "../second", "HEAD"])),
        ".git/worktrees/",
        "second working tree",
    );
    found(
        |cut| {
            let head = git(&cut.dest, &["rev-parse", "HEAD"]);
            let other = git(&cut.dest, &["commit-tree", "-m", "other", "HEAD^{tree}"]);
            git(&cut.dest, &["replace", head.trim(), other.trim()]);
        },
        "refs/replace/",
        "ref beside",
    );
    found(
        |cut| {
            let bundle = cut.dest.join(".git/all.bundle");
            git(&cut.case.bare(), &["bundle", "create", "-q", &bundle.display().to_string(), "--all"]);
        },
        ".git/all.bundle",
        "no checkout needs",
    );
    found(|cut| write(&cut.dest.join(".git/info/grafts"), "x\n"), "grafts", "graft");
    found(
        |cut| {
            git(&cut.dest, &["config", "core.fsmonitor", "/bin/true"]);
        },
        ".git/config",
        "core.fsmonitor",
    );
    found(
        |cut| {
            let id = later_blob(cut);
            git(&cut.dest, &["update-index", "--add", "--cacheinfo", &format!("100644,{id},md/page_0003.md")]);
        },
        ".git/index",
        "md/page_0003.md",
    );
    found(|cut| std::fs::remove_file(cut.dest.join(".git/shallow")).expect("removes"), "shallow", "not marked");
}

#[test]
fn later_pages_in_the_working_tree_are_named_whatever_they_are_called() {
    if !there() {
        return;
    }
    found(|cut| write(&cut.dest.join("md/page_0003.md"), "later\n"), "md", "page 3");
    found(|cut| write(&cut.dest.join("out/page_3.txt"), "later\n"), "out/page_3.txt", "page 3");
    found(|cut| write(&cut.dest.join("out/notes"), &sentence(3)), "out/notes", "outside the cut");
    found(|cut| write(&cut.dest.join(".git/description"), &sentence(3)), "description", "outside the cut");
}

#[test]
fn a_page_taken_out_of_the_working_tree_shows_in_the_evidence() {
    if !there() {
        return;
    }
    let cut = Cut::new();
    std::fs::remove_file(cut.dest.join("md/page_0002.md")).expect("removes");
    let found = cut.audit();
    assert_eq!((found.evidence.pages.count, found.evidence.pages.max), (1, Some(1)));
    assert!(found.leaks.iter().any(|leak| leak.what.contains("the first is 2")), "{:?}", found.leaks);
    assert!(found.leaks.iter().any(|leak| leak.where_ == "md/page_0002.md"), "{:?}", found.leaks);
}

#[test]
fn git_itself_may_refresh_the_checkout_and_pack_it() {
    if !there() {
        return;
    }
    let cut = Cut::new();
    git(&cut.dest, &["status"]);
    git(&cut.dest, &["repack", "-a", "-d", "-q"]);
    git(&cut.dest, &["prune-packed"]);
    // `repack` leaves two lists for dumb servers, and they are the only things to be told.
    let lists = [".git/info/refs", ".git/objects/info/packs"];
    let found = cut.audit();
    assert!(found.leaks.iter().all(|leak| lists.contains(&leak.where_.as_str())), "{:?}", found.leaks);
    assert_eq!(found.evidence.objects, Cut::new().audit().evidence.objects, "packed or loose, the same objects");
}

#[test]
fn a_full_clone_is_told_apart_from_a_cut() {
    if !there() {
        return;
    }
    let case = Case::new();
    let clone = case.root.path().join("clone");
    let source = format!("file://{}", case.bare().display());
    git(case.root.path(), &["clone", "-q", "--branch", "timestep-2", &source, "clone"]);
    let found = audit(&clone, &Expectation { timestep: Some(2), ..Default::default() }).expect("audits");
    assert_eq!((found.evidence.commits, found.evidence.remotes, found.evidence.shallow), (2, 1, false));
    for what in ["2 commits", "remote", "reflog", "ref beside"] {
        assert!(found.leaks.iter().any(|leak| leak.what.contains(what)), "{what}: {:?}", found.leaks);
    }
}

#[test]
fn nothing_is_followed_out_of_a_hostile_folder() {
    if !there() {
        return;
    }
    let cut = Cut::new();
    let outside = cut.case.root.path().join("outside");
    write(&outside.join("secret"), "secret");
    std::os::unix::fs::symlink(&outside, cut.dest.join("out/escape")).expect("links");
    std::os::unix::fs::symlink(&outside, cut.dest.join(".git/refs/escape")).expect("links");
    let leaks = cut.audit().leaks;
    assert!(leaks.iter().any(|leak| leak.where_ == ".git/refs/escape" && leak.what == "symbolic link"), "{leaks:?}");
    assert!(leaks.iter().any(|leak| leak.where_ == "out/escape"), "{leaks:?}");
    assert!(leaks.iter().all(|leak| !leak.where_.contains("secret")), "{leaks:?}");

    for hostile in [hostile_file, hostile_link] {
        let cut = Cut::new();
        std::fs::rename(cut.dest.join(".git"), cut.case.root.path().join("moved")).expect("renames");
        hostile(&cut.dest.join(".git"), &cut.case.root.path().join("moved"));
        assert!(audit(&cut.dest, &Expectation::default()).is_err(), "`.git` elsewhere is refused");
    }
}

fn hostile_file(dot_git: &Path, moved: &Path) {
    write(dot_git, &format!("gitdir: {}\n", moved.display()));
}

fn hostile_link(dot_git: &Path, moved: &Path) {
    std::os::unix::fs::symlink(moved, dot_git).expect("links");
}

/// Replaces the pack of a checkout by loose objects.
fn unpack(dest: &Path) {
    let packs = dest.join(".git/objects/pack");
    let away = dest.with_extension("packs");
    std::fs::rename(&packs, &away).expect("renames");
    std::fs::create_dir(&packs).expect("creates");
    let pack = std::fs::read_dir(&away)
        .expect("lists")
        .map(|entry| entry.expect("entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "pack"))
        .expect("one pack");
    let status = command(dest, &["unpack-objects", "-q"])
        .stdin(std::fs::File::open(pack).expect("opens"))
        .status()
        .expect("git runs");
    assert!(status.success());
}

#[test]
fn damaged_objects_and_a_tip_from_elsewhere_are_told() {
    if !there() {
        return;
    }
    found(
        |cut| {
            // The content of one object under the name of another.
            let objects = cut.dest.join(".git/objects");
            unpack(&cut.dest);
            let (page, agents) = (
                git(&cut.dest, &["rev-parse", "HEAD:md/page_0001.md"]),
                git(&cut.dest, &["rev-parse", "HEAD:AGENTS.md"]),
            );
            let path = |id: &str| objects.join(&id[..2]).join(&id.trim()[2..]);
            std::fs::remove_file(path(&page)).expect("removes");
            std::fs::copy(path(&agents), path(&page)).expect("copies");
        },
        "",
        "holds the content of",
    );
    // The source's whole document under the name of timestep 2.
    let cut = Cut::new();
    let source = format!("file://{}", cut.case.bare().display());
    let other = cut.case.root.path().join("other");
    git(cut.case.root.path(), &["clone", "-q", "--depth", "1", "--branch", "main", &source, "other"]);
    git(&other, &["checkout", "-q", "-b", "timestep-2"]);
    let found =
        audit(&other, &Expectation { timestep: Some(2), forbid_from: Some(cut.case.bare()), ..Default::default() })
            .expect("audits");
    assert!(found.leaks.iter().any(|leak| leak.what.contains("outside the cut")), "{:?}", found.leaks);
    assert!(found.leaks.iter().any(|leak| leak.what.contains("page 3 is not one of")), "{:?}", found.leaks);
}
