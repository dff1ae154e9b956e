//! Every leak known from the field, in one repository made by git and copied as it is, and hostile repositories.

use crate::git::{command, commit, copy, fed, git, pack_index, repository, there, write, write_loose};
use gsj_cutoff::{Audit, Cut, CutRequest, Expectation, History, Leak, audit, cut};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// An honest past of three commits on `main`, then the future: a fix, its revert, and everything that was left behind.
struct Field {
    root: TempDir,
    /// The last honest commit.
    honest: String,
}

impl Field {
    fn new() -> Self {
        let (root, work) = repository();
        git(&work, &["config", "core.logAllRefUpdates", "true"]);
        for step in 1..=3 {
            commit(&work, &format!("file-{step}.txt"), &format!("step {step}\n"));
        }
        let honest = git(&work, &["rev-parse", "HEAD"]).trim().to_owned();
        Self { root, honest }
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The checkout as a benchmark's image would hold it: back at the honest commit, the future all around it.
    fn with_everything() -> Self {
        let field = Self::new();
        let work = field.work();
        git(&work, &["branch", "base"]);
        let fix = commit(&work, "fix.txt", "the gold fix\n");
        git(&work, &["tag", "-a", "-m", "release", "v2.0"]);
        git(&work, &["tag", "light"]);
        git(&work, &["notes", "add", "-m", "fixed by the gold fix"]);
        commit(&work, "later.txt", "much later\n");
        git(&work, &["revert", "--no-edit", &fix]);
        git(&work, &["branch", "future"]);
        git(&work, &["bundle", "create", "-q", "../all.bundle", "--all"]);
        git(&work, &["clone", "-q", "--bare", ".", "../upstream.git"]);
        git(&work, &["pack-refs", "--all"]);
        git(&work, &["checkout", "-q", "base"]);
        git(&work, &["branch", "-q", "-D", "main"]);
        git(&work, &["branch", "-q", "-m", "base", "main"]);
        git(&work, &["remote", "add", "origin", "https://user:hunter2@host.invalid/x.git"]);
        let upstream = format!("file://{}", field.root.path().join("upstream.git").display());
        git(&work, &["fetch", "-q", &upstream, "refs/heads/future:refs/remotes/origin/future"]);
        git(&work, &["reset", "-q", "--hard", "HEAD"]);
        write(&work.join("file-1.txt"), "a thought about the fix\n");
        git(&work, &["stash", "-q"]);
        write(&work.join(".git/ORIG_HEAD"), &format!("{fix}\n"));
        git(&work, &["replace", &field.honest, &fix]);
        git(&work, &["worktree", "add", "-q", "../second", "future"]);
        git(&work, &["repack", "-q", "-a", "-d"]);
        git(&work, &["multi-pack-index", "write"]);
        git(&work, &["commit-graph", "write", "--reachable"]);
        fed(&work, &["hash-object", "-w", "--stdin"], b"nobody refers to me\n");
        write(&work.join(".git/info/grafts"), &format!("{}\n", field.honest));
        write(&work.join(".git/hooks/post-checkout"), "#!/bin/sh\ntouch /tmp/gsj-hook-ran\n");
        write(&work.join(".git/objects/info/alternates"), "/srv/elsewhere/objects\n");
        write(&work.join(".git/modules/sub/HEAD"), "ref: refs/heads/main\n");
        git(&work, &["config", "core.fsmonitor", "touch /tmp/gsj-monitor-ran"]);
        git(&work, &["config", "core.hooksPath", "/tmp/hooks"]);
        git(&work, &["config", "filter.x.smudge", "touch /tmp/gsj-filter-ran"]);
        git(&work, &["config", "include.path", "/nonexistent"]);
        std::fs::copy(field.root.path().join("all.bundle"), work.join("notes.dat")).expect("copies");
        let loose = write_loose(&work, "an unfinished thought\n");
        std::fs::rename(loose, work.join(".git/objects/pack/../aa_tmp")).expect("renames");
        std::fs::create_dir_all(work.join(".git/objects/aa")).expect("creates");
        std::fs::rename(work.join(".git/objects/aa_tmp"), work.join(".git/objects/aa/tmp_obj_x1")).expect("renames");
        field
    }

    /// Copies as an image is made.
    fn copy(&self) -> PathBuf {
        let to = self.root.path().join("copy");
        copy(&self.work(), &to);
        to
    }
}

#[track_caller]
fn named(leaks: &[Leak], where_: &str, what: &str) {
    assert!(
        leaks.iter().any(|leak| leak.where_.contains(where_) && leak.what.contains(what)),
        "{where_:?} / {what:?} is not among {leaks:#?}"
    );
}

#[test]
fn each_leak_is_named_in_a_copy_and_none_is_left_after_our_cut() {
    if !there() {
        return;
    }
    let field = Field::with_everything();
    let copy = field.copy();
    let found = audit(&copy, &Expectation::default()).expect("audits");
    assert_eq!(found.evidence.commit, field.honest);
    for (where_, what) in [
        ("refs/heads/future", "branch"),
        ("refs/tags/v2.0", "tag"),
        ("refs/tags/light", "tag"),
        ("refs/remotes/origin/future", "branch of a remote"),
        ("refs/stash", "stash"),
        ("refs/notes/commits", "notes"),
        ("refs/replace/", "replacement"),
        (".git/logs/HEAD", "reflog"),
        (".git/config", "remote"),
        (".git/config", "credentials"),
        (".git/config", "`core.fsmonitor` that starts a program"),
        (".git/config", "`core.hooksPath` that starts a program"),
        (".git/config", "`filter.smudge` that starts a program"),
        (".git/config", "`include.path` that reads another file"),
        (".git/FETCH_HEAD", "another command"),
        (".git/ORIG_HEAD", "another command"),
        (".git/worktrees/", "second working tree"),
        (".git/hooks/post-checkout", "hook"),
        (".git/modules/sub/HEAD", "submodule"),
        (".git/info/grafts", "graft"),
        ("objects/info/alternates", "alternate object store"),
        ("objects/info/commit-graph", "commit graph"),
        ("objects/pack/multi-pack-index", "multi-pack index"),
        ("notes.dat", "bundle"),
        ("notes.dat", "that HEAD does not reach"),
        ("objects/aa/tmp_obj_x1", "unfinished object"),
        ("objects/aa/tmp_obj_x1", "that HEAD does not reach"),
    ] {
        named(&found.leaks, where_, what);
    }
    // The fix, its tag and the unreferenced file are there as objects.
    for id in [
        git(&field.work(), &["rev-parse", "v2.0"]),
        git(&field.work(), &["rev-parse", "v2.0^{commit}"]),
        fed(&field.work(), &["hash-object", "--stdin"], b"nobody refers to me\n"),
    ] {
        named(&found.leaks, id.trim(), "does not reach");
    }
    let text = serde_json::to_string(&found).expect("serializes");
    assert!(!text.contains("hunter2"), "no report repeats a credential");
    for ran in ["/tmp/gsj-hook-ran", "/tmp/gsj-monitor-ran", "/tmp/gsj-filter-ran"] {
        assert!(!Path::new(ran).exists(), "nothing was executed: {ran}");
    }

    let upstream = field.root.path().join("upstream.git");
    let dest = field.root.path().join("cut");
    let report = cut(&CutRequest::new(&upstream, Cut::Commit(field.honest.clone()), &dest)).expect("cuts");
    assert_eq!(report.evidence.commits, 3, "the honest past is kept");
    let expectation = Expectation {
        commit: Some(field.honest.clone()),
        history: Some(History::Full),
        forbid_from: Some(upstream),
        ..Expectation::default()
    };
    assert_eq!(audit(&dest, &expectation).expect("audits").leaks, []);
}

#[test]
fn an_object_of_the_source_is_found_wherever_it_was_put() {
    if !there() {
        return;
    }
    let field = Field::with_everything();
    let upstream = field.root.path().join("upstream.git");
    let expectation = Expectation { forbid_from: Some(upstream.clone()), ..Expectation::default() };
    let cut_again = |name: &str| {
        let dest = field.root.path().join(name);
        cut(&CutRequest::new(&upstream, Cut::Commit(field.honest.clone()), &dest)).expect("cuts");
        dest
    };
    let fix = git(&upstream, &["rev-parse", "v2.0^{commit}"]).trim().to_owned();
    let leaks = |dest: &Path| audit(dest, &expectation).expect("audits").leaks;

    // The whole source as a pack that no index names, whole and thin.
    let objects = git(&upstream, &["rev-list", "--objects", "--all"]);
    let ids: String = objects.lines().map(|line| format!("{}\n", line.split(' ').next().expect("an id"))).collect();
    let mut packing = command(&upstream, &["pack-objects", "--stdout", "-q", "--depth=50", "--window=50"]);
    let mut child = packing.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
    child.stdin.take().expect("piped").write_all(ids.as_bytes()).expect("takes it");
    let pack = child.wait_with_output().expect("ends").stdout;
    for name in
        [".git/objects/pack/pack-0000000000000000000000000000000000000000.pack", ".git/objects/pack/tmp_pack_1", "x"]
    {
        let dest = cut_again(&format!("cut-{}", name.len()));
        std::fs::write(dest.join(name), &pack).expect("writes");
        named(&leaks(&dest), name, &format!("{fix} of the source from outside the cut"));
    }
    // A thin bundle: its deltas stand on what the checkout has.
    let dest = cut_again("thin");
    let bundle = dest.join(".git/bundle");
    git(&upstream, &["bundle", "create", "-q", &bundle.display().to_string(), &format!("{}..future", field.honest)]);
    named(&leaks(&dest), ".git/bundle", &format!("{fix} of the source from outside the cut"));
    // A pack with an index that does not name everything in it.
    let dest = cut_again("short-index");
    let folder = dest.join(".git/objects/pack");
    let name = folder.join("pack-1111111111111111111111111111111111111111");
    std::fs::write(name.with_extension("pack"), &pack).expect("writes");
    let own = pack_index(&dest);
    std::fs::copy(own, name.with_extension("idx")).expect("copies");
    named(&leaks(&dest), "pack-1111", &format!("{fix} of the source from outside the cut"));
    // A loose object as a file of the working tree.
    let dest = cut_again("loose");
    let loose = write_loose(&dest, "the gold fix\n");
    std::fs::rename(loose, dest.join("thumbnail")).expect("renames");
    named(&leaks(&dest), "thumbnail", "of the source from outside the cut");
}

#[test]
fn a_kept_history_is_compared_with_what_was_to_be_kept() {
    if !there() {
        return;
    }
    let field = Field::new();
    let two = History::Depth(NonZeroU32::new(2).expect("not zero"));
    let made = |history, name: &str| {
        let dest = field.root.path().join(name);
        let source = field.work();
        cut(&CutRequest { history, ..CutRequest::new(&source, Cut::Branch("main".into()), &dest) }).expect("cuts");
        dest
    };
    let judged = |dest: &Path, history| {
        audit(dest, &Expectation { history: Some(history), ..Expectation::default() }).expect("audits").leaks
    };
    let (full, depth, none) = (made(History::Full, "full"), made(two, "depth"), made(History::None, "none"));
    assert_eq!(judged(&full, History::Full), []);
    assert_eq!(judged(&depth, two), []);
    assert_eq!(judged(&none, History::None), []);
    named(&judged(&depth, History::Full), ".git/shallow", "all of it belongs here");
    named(&judged(&none, two), ".git/shallow", "after 1 of 2 commits");
    named(&judged(&full, two), "", "goes on after 2 commits");
    named(&judged(&full, History::None), "", "goes on after 1 commits");

    let other = Expectation { commit: Some("0".repeat(40)), not_after: Some(0), ..Expectation::default() };
    let found = audit(&full, &other).expect("audits");
    named(&found.leaks, ".git/HEAD", "is not at commit 0000");
    assert_eq!(found.later_dated.len(), 3, "every commit is later than 1970");
}

#[test]
fn ten_thousand_refs_do_not_hide_a_hook() {
    if !there() {
        return;
    }
    let field = Field::new();
    let work = field.work();
    let refs: String = (0..10_000).map(|at| format!("create refs/tags/t{at} {}\n", field.honest)).collect();
    fed(&work, &["update-ref", "--stdin"], refs.as_bytes());
    write(&work.join(".git/hooks/pre-commit"), "#!/bin/sh\n");
    let found = audit(&work, &Expectation::default()).expect("audits");
    named(&found.leaks, "pre-commit", "hook");
    named(&found.leaks, "...", "9900 more of: ref beside");
    git(&work, &["pack-refs", "--all"]);
    named(&audit(&work, &Expectation::default()).expect("audits").leaks, "...", "9900 more of: ref beside");
}

/// A loose object of `size` zeros, made without ever holding them.
fn bomb(work: &Path, size: usize) -> String {
    let mut command = command(work, &["hash-object", "-w", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
    let mut input = child.stdin.take().expect("piped");
    let piece = vec![0_u8; 1 << 20];
    for _ in 0..size >> 20 {
        input.write_all(&piece).expect("takes it");
    }
    drop(input);
    String::from_utf8(child.wait_with_output().expect("ends").stdout).expect("text").trim().to_owned()
}

#[test]
fn a_bomb_is_named_and_never_inflated() {
    if !there() {
        return;
    }
    let field = Field::new();
    let work = field.work();
    let id = bomb(&work, 160 << 20);
    named(&audit(&work, &Expectation::default()).expect("audits").leaks, &id, "more than the");
    // In a pack, with an index and without.
    let tree = fed(&work, &["mktree"], format!("100644 blob {id}\tbomb\n").as_bytes());
    git(&work, &["update-ref", "refs/heads/bomb", &fed(&work, &["commit-tree", "-m", "x", &tree], b"")]);
    git(&work, &["repack", "-q", "-a", "-d"]);
    named(&audit(&work, &Expectation::default()).expect("audits").leaks, &id, "more than the");
    for entry in std::fs::read_dir(work.join(".git/objects/pack")).expect("lists") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|kind| kind == "pack") {
            std::fs::rename(&path, work.join("stray")).expect("renames");
        } else {
            std::fs::remove_file(&path).expect("removes");
        }
    }
    assert!(audit(&work, &Expectation::default()).is_err(), "nothing is left of the tip");
}

fn clean(dest: &Path) -> Audit {
    audit(dest, &Expectation::default()).expect("audits")
}

#[test]
fn packs_that_lie_are_told_and_end() {
    if !there() {
        return;
    }
    let field = Field::new();
    let dest = field.root.path().join("cut");
    cut(&CutRequest::new(&field.work(), Cut::Branch("main".into()), &dest)).expect("cuts");
    let head = |count: u32| [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat();
    let empty = [0x78, 0x9c, 3, 0, 0, 0, 0, 1];
    // Two deltas that name each other; one on itself; a count without objects; bytes after the end; nothing at all.
    let delta = |base: u8| [&[0x70][..], &[base; 20], &empty].concat();
    for (content, what) in [
        ([head(2), delta(1), delta(2), vec![0; 20]].concat(), "2 deltas whose base is not here"),
        ([head(1), vec![0x60, 0], empty.to_vec(), vec![0; 20]].concat(), "no object"),
        ([head(u32::MAX)].concat(), "more than the"),
        ([head(3)].concat(), "ends in the middle"),
        ([head(0), vec![0; 40]].concat(), "20 bytes after its last object"),
        ([head(1), vec![0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat(), "impossible size"),
        (b"PACK".to_vec(), "ends in the middle"),
        (b"# v2 git bundle\nx".to_vec(), "does not end"),
    ] {
        std::fs::write(dest.join("stray"), &content).expect("writes");
        named(&clean(&dest).leaks, "stray", what);
    }
}
