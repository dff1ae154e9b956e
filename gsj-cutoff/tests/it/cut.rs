//! Cuts of ordinary repositories, with git as the oracle of what is reached.

use crate::git::{command, feed, git, git_at, imported, pack_index, repository, snapshot, there, write};
use gsj_cutoff::{Cut, CutRequest, CutoffError, Deny, Expectation, History, Submodules, audit, cut};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Seconds of the first commit of [`Repository`]; each that follows is a minute later.
const START: i64 = 1_700_000_000;

/// A repository with 40 commits on `main`, a merged side branch in it, and a branch that goes on elsewhere.
struct Repository {
    root: TempDir,
    work: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let (root, work) = repository();
        let mut script = String::new();
        for number in 0..40_i64 {
            let file = number % 7;
            let text: String =
                (0..60).map(|line| format!("line {line} of {file}, at {}\n", number / 7 * (line % 9))).collect();
            let from = match number {
                0 => String::new(),
                // Commit 21 merges a side branch that starts at 10 and says of itself that it is a day late.
                21 => "from :21\nmerge :100\n".to_owned(),
                _ => format!("from :{number}\n"),
            };
            script += &imported(
                "main",
                number + 1,
                START + number * 60,
                &(number + 1).to_string(),
                &from,
                &format!("d{}/f{file}.txt", file % 3),
                &text,
            );
            if number == 20 {
                script += &imported("side", 100, START + 86_400, "100", "from :10\n", "side.txt", "side\n");
            }
        }
        script +=
            &imported("future", 200, START + 90_000, "200", "from :40\n", "later.txt", "the sentence of the future\n");
        feed(&work, &["fast-import", "--quiet"], script.as_bytes());
        git(&work, &["reset", "-q", "--hard", "main"]);
        Self { root, work }
    }

    fn work(&self) -> &Path {
        &self.work
    }

    fn dest(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn id(&self, revision: &str) -> String {
        git(self.work(), &["rev-parse", revision]).trim().to_owned()
    }
}

fn ids(dest: &Path) -> BTreeSet<String> {
    let all = git(dest, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    all.lines().map(str::to_owned).collect()
}

fn reached(repository: &Path, revision: &str) -> BTreeSet<String> {
    let all = git(repository, &["rev-list", "--objects", revision]);
    all.lines().map(|line| line[..40].to_owned()).collect()
}

/// Asserts what holds for every cut.
fn sound(repository: &Repository, dest: &Path) {
    assert_eq!(git(dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
    assert_eq!(git(dest, &["status", "--porcelain", "--ignored"]), "");
    git(dest, &["log"]);
    git(dest, &["show", "HEAD"]);
    let expectation = Expectation { forbid_from: Some(repository.work.clone()), ..Expectation::default() };
    assert_eq!(audit(dest, &expectation).expect("audits").leaks, []);
}

fn plain<'a>(source: &'a Path, cut: Cut, dest: &'a Path) -> CutRequest<'a> {
    CutRequest::new(source, cut, dest)
}

#[test]
fn a_cut_holds_exactly_what_git_reaches_however_the_source_is_packed() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    let commit = repository.id("main~7");
    for (name, arguments) in [
        ("as-imported", &["status"][..]),
        ("packed", &["gc", "-q", "--aggressive"]),
        ("ref-deltas", &["-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d", "-f"]),
        ("many-packs", &["-c", "pack.packSizeLimit=1m", "repack", "-q", "-a", "-d"]),
        ("loose", &["status"]),
    ] {
        if name == "loose" {
            let packs = repository.work().join(".git/objects/pack");
            let away = repository.root.path().join("away");
            std::fs::rename(&packs, &away).expect("renames");
            std::fs::create_dir(&packs).expect("creates");
            for found in std::fs::read_dir(&away).expect("lists") {
                let path = found.expect("entry").path();
                if path.extension().is_some_and(|extension| extension == "pack") {
                    feed(repository.work(), &["unpack-objects", "-q"], &std::fs::read(path).expect("reads"));
                }
            }
        }
        git(repository.work(), arguments);
        let dest = repository.dest(name);
        let report = cut(&plain(repository.work(), Cut::Commit(commit.clone()), &dest)).expect("cuts");
        assert_eq!(ids(&dest), reached(repository.work(), &commit), "{name}");
        assert_eq!(report.evidence.commit, commit);
        assert_eq!(
            report.evidence.commits,
            git(repository.work(), &["rev-list", "--count", &commit]).trim().parse::<u64>().expect("number")
        );
        assert_eq!((report.evidence.branch, report.evidence.shallow), (None, false));
        sound(&repository, &dest);
        let pack = git(&dest, &["verify-pack", "-v", &pack_index(&dest).display().to_string()]);
        if name == "packed" || name == "ref-deltas" {
            assert!(pack.contains("chain length"), "deltas are taken over: {pack}");
        }
    }
}

#[test]
fn the_date_picks_the_first_commit_of_the_first_parent_line_that_is_not_later() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    for (offset, later) in [(0, 0), (59, 0), (60 * 20 + 59, 0), (60 * 21, 1), (60 * 39, 1), (60 * 1_000, 1)] {
        let seconds = START + offset;
        let dest = repository.dest(&format!("at-{offset}"));
        let report = cut(&plain(repository.work(), Cut::Date { seconds, branch: None }, &dest)).expect("cuts");
        let before = format!("--before=@{seconds} +0000");
        let wanted = git(repository.work(), &["rev-list", "-1", "--first-parent", &before, "main"]);
        assert_eq!(report.evidence.commit, wanted.trim(), "at {offset}");
        assert_eq!(report.evidence.branch.as_deref(), Some("main"), "HEAD's branch is the default");
        assert_eq!(ids(&dest), reached(repository.work(), wanted.trim()));
        assert_eq!(
            report.later_dated.len(),
            later,
            "the merged commit from the day after is told: {:?}",
            report.later_dated
        );
        if let Some(told) = report.later_dated.first() {
            assert_eq!((told.commit.as_str(), told.seconds), (repository.id("side").as_str(), START + 86_400));
        }
        sound(&repository, &dest);
    }
    let dest = repository.dest("none");
    let error =
        cut(&plain(repository.work(), Cut::Date { seconds: START - 1, branch: None }, &dest)).expect_err("too old");
    assert!(matches!(error, CutoffError::NothingBefore { .. }), "{error}");
    assert!(!dest.exists());
}

#[test]
fn a_depth_keeps_what_git_clone_keeps() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    let source = format!("file://{}", repository.work().display());
    for depth in [1, 2, 5, 25] {
        let oracle = repository.dest(&format!("oracle-{depth}"));
        let number = depth.to_string();
        git(
            repository.root.path(),
            &[
                "clone",
                "-q",
                "--bare",
                "--depth",
                &number,
                "--single-branch",
                "--no-tags",
                &source,
                &format!("oracle-{depth}"),
            ],
        );
        let dest = repository.dest(&format!("depth-{depth}"));
        let history = History::Depth(NonZeroU32::new(depth).expect("positive"));
        let report =
            cut(&CutRequest { history, ..plain(repository.work(), Cut::Branch("main".into()), &dest) }).expect("cuts");
        assert_eq!(ids(&dest), ids(&oracle), "depth {depth}");
        let boundary = |git_dir: PathBuf| -> BTreeSet<String> {
            std::fs::read_to_string(git_dir.join("shallow")).expect("is shallow").lines().map(str::to_owned).collect()
        };
        assert_eq!(boundary(dest.join(".git")), boundary(oracle));
        assert_eq!(report.evidence.shallow, depth == 1);
        sound(&repository, &dest);
    }
    // A source that is shallow itself stays so where its own boundary is reached.
    let dest = repository.dest("of-a-shallow-one");
    let oracle = repository.dest("oracle-5");
    cut(&plain(&oracle, Cut::Branch("main".into()), &dest)).expect("cuts");
    assert_eq!(ids(&dest), ids(&oracle));
    assert_eq!(git(&dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
}

#[test]
fn a_branch_with_a_folder_in_its_name_and_a_timestep_with_a_history() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    git(repository.work(), &["branch", "feature/a/b", "main~3"]);
    git(repository.work(), &["branch", "timestep-1", "main~3"]);
    git(repository.work(), &["pack-refs", "--all"]);
    let dest = repository.dest("feature");
    let request =
        CutRequest { history: History::None, ..plain(repository.work(), Cut::Branch("feature/a/b".into()), &dest) };
    let report = cut(&request).expect("cuts");
    assert_eq!((report.evidence.branch.as_deref(), report.evidence.commits), (Some("feature/a/b"), 1));
    assert!(report.evidence.shallow);
    sound(&repository, &dest);

    let dest = repository.dest("timestep");
    let request = CutRequest { history: History::Full, ..plain(repository.work(), Cut::Timestep(1), &dest) };
    assert!(matches!(cut(&request), Err(CutoffError::HistoryOfTimestep { timestep: 1 })));
    for name in ["../../x", "main.lock", "a b", "", "HEAD", "main/../main"] {
        let error = cut(&plain(repository.work(), Cut::Branch(name.into()), &dest)).expect_err("no such branch");
        assert!(matches!(error, CutoffError::BranchMissing { .. }), "{name}: {error}");
    }
    assert!(matches!(cut(&plain(repository.work(), Cut::Commit("abc".into()), &dest)), Err(CutoffError::Id { .. })));
    let tree = repository.id("main^{tree}");
    assert!(
        cut(&plain(repository.work(), Cut::Commit(tree), &dest))
            .expect_err("no commit")
            .to_string()
            .contains("is a tree")
    );
    assert!(!dest.exists());
}

#[test]
fn what_is_denied_is_not_reached_not_even_behind_a_boundary() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    let (fix, tip, earlier) = (repository.id("main~5"), repository.id("main~2"), repository.id("main~6"));
    let dest = repository.dest("cut");
    let deny = [Deny::Commit(fix.clone())];
    for history in [History::Full, History::None] {
        let request = CutRequest { deny: &deny, history, ..plain(repository.work(), Cut::Commit(tip.clone()), &dest) };
        match cut(&request) {
            Err(CutoffError::Denied { commit, patch: None }) => assert_eq!(commit, fix),
            other => panic!("{other:?}"),
        }
        assert!(!dest.exists());
    }
    let request = CutRequest { deny: &deny, ..plain(repository.work(), Cut::Commit(earlier), &dest) };
    cut(&request).expect("the parent of what is denied does not reach it");
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn patch_ids_are_those_of_git() {
    if !there() {
        return;
    }
    let (root, work) = repository();
    let mut numbers = Numbers(7);
    let mut files: Vec<Vec<String>> = (0..4).map(|_| Vec::new()).collect();
    let commit = |message: &str| {
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "--allow-empty", "-m", message]);
    };
    let line = |numbers: &mut Numbers| match numbers.below(6) {
        0 => "}\n".to_owned(),
        1 => "\n".to_owned(),
        2 => format!("\tif x {{ {} }}\n", numbers.below(3)),
        3 => format!("    indented {}\n", numbers.below(5)),
        _ => format!("text {} \n", numbers.below(9)),
    };
    for step in 0..60 {
        for _ in 0..=numbers.below(3) {
            let which = numbers.below(4) as usize;
            for _ in 0..=numbers.below(5) {
                let length = files[which].len() as u64;
                let at = numbers.below(length + 1) as usize;
                let gone = numbers.below(6).min(length - at as u64) as usize;
                let new: Vec<String> = (0..numbers.below(12)).map(|_| line(&mut numbers)).collect();
                files[which].splice(at..at + gone, new);
            }
            let mut text = files[which].concat();
            if numbers.below(4) == 0 {
                text.push_str("no end of line");
            }
            let name = ["a.rs", "d/b c.txt", "d/ö\".md", "z"][which];
            write(&work.join(name), &text);
        }
        commit(&format!("step {step}"));
    }
    // What is no plain change of text: modes, links, binary content, empty files, a file in place of a folder.
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    std::fs::set_permissions(work.join("z"), std::fs::Permissions::from_mode(0o755)).expect("sets");
    commit("mode");
    std::fs::set_permissions(work.join("z"), std::fs::Permissions::from_mode(0o644)).expect("sets");
    write(&work.join("a.rs"), "changed\n");
    commit("mode and text");
    std::fs::remove_file(work.join("z")).expect("removes");
    symlink("a.rs", work.join("z")).expect("links");
    commit("type");
    std::fs::write(work.join("binary"), b"\0\x01").expect("writes");
    write(&work.join("c"), "after the binary\n");
    write(&work.join("empty"), "");
    write(&work.join("follows"), "after the empty\n");
    commit("binary and empty");
    std::fs::write(work.join("binary"), b"\0\x02").expect("writes");
    commit("binary alone");
    std::fs::remove_dir_all(work.join("d")).expect("removes");
    write(&work.join("d"), "a file now\n");
    std::fs::remove_file(work.join("empty")).expect("removes");
    commit("file for folder");

    let patches = git(&work, &["log", "-p", "--full-index", "--no-renames", "--format=commit %H", "--root"]);
    let listed = feed(&work, &["patch-id", "--stable"], patches.as_bytes());
    let head = git(&work, &["rev-parse", "HEAD"]).trim().to_owned();
    let dest = root.path().join("cut");
    let mut seen = BTreeSet::new();
    let mut compared = 0;
    for line in listed.lines() {
        let (patch, commit) = line.split_once(' ').expect("two ids");
        // Newest first, as the walk goes: of two commits with one patch the newer is named.
        if !seen.insert(patch.to_owned()) {
            continue;
        }
        let deny = [Deny::PatchId(patch.to_owned())];
        let request = CutRequest { deny: &deny, ..CutRequest::new(&work, Cut::Commit(head.clone()), &dest) };
        match cut(&request) {
            Err(CutoffError::Denied { commit: named, patch: Some(by) }) => {
                assert_eq!((&named[..], &by[..]), (commit, patch));
            }
            other => {
                panic!("{commit} has another patch id than {patch}: {:?}", other.map(|report| report.evidence.commit))
            }
        }
        compared += 1;
    }
    assert!(compared > 55, "{compared} patches were compared");
}

#[test]
fn submodules_pointers_tags_and_notes() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    let work = repository.work();
    let pinned = "1234567890123456789012345678901234567890";
    write(
        &work.join(".gitmodules"),
        "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = https://u:hunter2@h.invalid/lib\n",
    );
    write(&work.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    write(&work.join("model.bin"), pointer);
    git(work, &["add", "-A"]);
    git(work, &["update-index", "--add", "--cacheinfo", &format!("160000,{pinned},vendor/lib")]);
    git(work, &["commit", "-q", "-m", "submodule and pointer"]);
    git(work, &["tag", "-a", "v1", "-m", "annotated"]);
    git(work, &["notes", "add", "-m", "a note"]);

    let dest = repository.dest("cut");
    let report = cut(&plain(work, Cut::Branch("main".into()), &dest)).expect("cuts");
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    assert_eq!(git(&dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
    assert_eq!((report.submodules[0].path.as_str(), report.submodules[0].commit.as_str()), ("vendor/lib", pinned));
    assert_eq!(std::fs::read_dir(dest.join("vendor/lib")).expect("a folder").count(), 0);
    assert!(!dest.join(".git/modules").exists());
    assert!(git(&dest, &["ls-files", "-s", "vendor/lib"]).starts_with(&format!("160000 {pinned}")));
    assert_eq!(std::fs::read_to_string(dest.join("model.bin")).expect("reads"), pointer);
    assert_eq!(git(&dest, &["for-each-ref", "--format=%(refname)"]).trim(), "refs/heads/main");

    let refused = repository.dest("refused");
    let request = CutRequest { submodules: Submodules::Refuse, ..plain(work, Cut::Branch("main".into()), &refused) };
    assert!(cut(&request).expect_err("refused").to_string().contains("vendor/lib"));
    assert!(!refused.exists());
}

#[test]
fn a_source_that_borrows_its_objects_is_copied_and_lends_nothing() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    git(repository.root.path(), &["clone", "-q", "--bare", "--shared", "work", "borrower.git"]);
    let borrower = repository.dest("borrower.git");
    assert!(borrower.join("objects/info/alternates").exists());
    let dest = repository.dest("cut");
    cut(&plain(&borrower, Cut::Branch("main".into()), &dest)).expect("cuts");
    std::fs::rename(repository.work(), repository.dest("gone")).expect("renames");
    assert_eq!(git(&dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
    assert!(!dest.join(".git/objects/info/alternates").exists());
}

/// Does what the environment asks for, in a process of its own: see [`elsewhere`].
#[test]
#[ignore = "run by other tests, as a process of its own"]
fn child() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("is set"));
    let (source, dest) = (variable("GSJ_TEST_SOURCE"), variable("GSJ_TEST_DEST"));
    cut(&plain(&source, Cut::Branch("main".into()), &dest)).expect("cuts");
}

/// Cuts `main` in another process, under another umask, locale and time zone.
fn elsewhere(source: &Path, dest: &Path, umask: &str) {
    let status = std::process::Command::new("sh")
        .args(["-c", &format!("umask {umask}; exec \"$0\" --exact cut::child --ignored --quiet")])
        .arg(std::env::current_exe().expect("knows itself"))
        .env("LC_ALL", "tr_TR.UTF-8")
        .env("TZ", "Pacific/Auckland")
        .env("GIT_DIR", "/nonexistent")
        .env("GSJ_TEST_SOURCE", source)
        .env("GSJ_TEST_DEST", dest)
        .stdout(std::process::Stdio::null())
        .status()
        .expect("runs");
    assert!(status.success());
}

#[test]
fn two_cuts_are_the_same_byte_for_byte_whatever_the_umask_zone_and_clock() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    git(repository.work(), &["gc", "-q"]);
    let dests = ["one", "two", "three"].map(|name| repository.dest(name));
    cut(&plain(repository.work(), Cut::Branch("main".into()), &dests[0])).expect("cuts");
    elsewhere(repository.work(), &dests[1], "000");
    elsewhere(repository.work(), &dests[2], "277");
    let [one, two, three] = dests.each_ref().map(|dest| (snapshot(dest), times(dest)));
    assert_eq!(one, two);
    assert_eq!(one, three);
}

#[test]
fn two_cuts_are_the_same_byte_for_byte_by_however_many_threads() {
    if !there() {
        return;
    }
    let (root, work) = repository();
    let mut script = String::new();
    for number in 0..4_000_i64 {
        let from = if number == 0 { String::new() } else { format!("from :{number}\n") };
        let path = format!("d{}/e{}/f{}.txt", number % 3, number % 11, number % 101);
        let (seconds, text) = (START + number, format!("{number}\n").repeat(20));
        script += &imported("main", number + 1, seconds, "change", &from, &path, &text);
    }
    feed(&work, &["fast-import", "--quiet"], script.as_bytes());
    git(&work, &["reset", "-q", "--hard", "main"]);
    git(&work, &["gc", "-q"]);
    let dests = ["one", "many"].map(|threads| root.path().join(threads));
    // A process that may use one core starts no thread.
    let status = std::process::Command::new("taskset")
        .args(["-c", "0"])
        .arg(std::env::current_exe().expect("knows itself"))
        .args(["--exact", "cut::child", "--ignored", "--quiet"])
        .env("GSJ_TEST_SOURCE", &work)
        .env("GSJ_TEST_DEST", &dests[0])
        .stdout(std::process::Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: no taskset here, or not on the first core");
    }
    let report = cut(&plain(&work, Cut::Branch("main".into()), &dests[1])).expect("cuts");
    assert_eq!(report.evidence.commits, 4_000);
    assert!(snapshot(&dests[0]) == snapshot(&dests[1]), "the bytes depend on the number of threads");
    assert_eq!(ids(&dests[1]), reached(&work, "main"));
}

/// The modification time of everything below a folder.
fn times(root: &Path) -> BTreeSet<(PathBuf, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    let time = |path: &Path| std::fs::symlink_metadata(path).expect("metadata").mtime();
    snapshot(root).into_iter().map(|(path, ..)| (path.clone(), time(&root.join(path)))).collect()
}

#[test]
fn a_commit_from_the_future_keeps_a_usable_date() {
    if !there() {
        return;
    }
    let repository = Repository::new();
    let environment = [("GIT_COMMITTER_DATE", "@4102444800 +0000")];
    git_at(repository.work(), &["commit", "-q", "--allow-empty", "-m", "in 2100"], &environment);
    let dest = repository.dest("cut");
    cut(&plain(repository.work(), Cut::Branch("main".into()), &dest)).expect("cuts");
    let _ = command(&dest, &["status"]);
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
}
