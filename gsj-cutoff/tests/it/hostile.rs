//! Repositories made to run something, to fill memory or disk, or to write outside.

use crate::git::{Apart, Case, apart, feed, git, handed, loose_path, request, tell, there, write};
use gsj_cutoff::{Cut, CutRequest, CutoffError, checkout, cut};
use std::path::{Path, PathBuf};

/// What the peak of memory may be, in KiB.
const MOST_MEMORY: u64 = 256 * 1024;

/// What it may take of a core, in seconds.
const MOST_SECONDS: f64 = 30.0;

/// Cuts `timestep-4` of a repository in a process of its own; gives the error, if any.
fn cut_apart(source: &Path, dest: &Path) -> Option<String> {
    bounded(apart("hostile::child", source, dest))
}

/// Asserts that memory and time are bounded, and gives what was said.
pub(crate) fn bounded(apart: Apart) -> Option<String> {
    assert!(apart.peak < MOST_MEMORY, "{} KiB", apart.peak);
    assert!(apart.seconds < MOST_SECONDS, "{} s", apart.seconds);
    Some(apart.said).filter(|said| !said.is_empty())
}

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn child() {
    let result = checkout(&request(&handed("GSJ_TEST_SOURCE"), "timestep-4", 4, &handed("GSJ_TEST_DEST")));
    tell(&result.err().map(|error| error.to_string()).unwrap_or_default());
}

/// Asserts that the cut fails with all these parts in its message, in bounds, and leaves nothing behind.
pub(crate) fn refused(case: &Case, parts: &[&str]) {
    let dest = case.root.path().join("cut");
    let error = cut_apart(&case.bare(), &dest).expect("refused");
    for part in parts {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    assert!(!dest.exists(), "nothing is left behind");
}

/// Puts a tree on top of `timestep-4`: its own entries and one more.
pub(crate) fn plant(case: &Case, mode: &str, name: &[u8], id: &str) {
    let bare = case.bare();
    let mut tree: Vec<(Vec<u8>, Vec<u8>)> = git(&bare, &["ls-tree", "timestep-4"])
        .lines()
        .map(|line| {
            let (meta, name) = line.split_once('\t').expect("a tab");
            let parts: Vec<&str> = meta.split(' ').collect();
            (name.as_bytes().to_vec(), entry(parts[0], name.as_bytes(), parts[2]))
        })
        .filter(|(other, _)| other != name)
        .collect();
    tree.push((name.to_vec(), entry(mode, name, id)));
    tree.sort();
    let bytes: Vec<u8> = tree.into_iter().flat_map(|(_, entry)| entry).collect();
    let tree = feed(&bare, &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], &bytes);
    let commit = git(&bare, &["commit-tree", "-m", "planted", tree.trim()]);
    git(&bare, &["update-ref", "refs/heads/timestep-4", commit.trim()]);
}

pub(crate) fn entry(mode: &str, name: &[u8], id: &str) -> Vec<u8> {
    let mode = mode.trim_start_matches('0');
    [mode.as_bytes(), b" ", name, b"\0", &hex::decode(id).expect("hex")].concat()
}

pub(crate) fn blob(case: &Case, content: &[u8]) -> String {
    feed(&case.bare(), &["hash-object", "-w", "--stdin"], content).trim().to_owned()
}

#[test]
fn names_that_climb_or_stand_for_dot_git_are_refused_with_the_name() {
    if !there() {
        return;
    }
    for (name, part) in [
        (&b".."[..], ".."),
        (b"../escape", "../escape"),
        (b".git", ".git"),
        (b".GIT", ".GIT"),
        (b"git~1", "git~1"),
        (b".git::$INDEX_ALLOCATION", "INDEX_ALLOCATION"),
        (".g\u{200c}it".as_bytes(), "it`"),
        (b"bell\x07", "bell"),
        (b"aGENTS.md", "only by case"),
    ] {
        let case = Case::new();
        let id = blob(&case, b"planted");
        plant(&case, "100644", name, &id);
        refused(&case, &["tree entry `", part]);
        assert!(!case.root.path().join("escape").exists());
    }
}

#[test]
fn links_that_leave_and_a_link_in_place_of_the_pages_are_refused_with_the_name() {
    if !there() {
        return;
    }
    for (name, target) in [(&b"out.txt"[..], &b"/etc/passwd"[..]), (b"up.txt", b"../../x"), (b"in.txt", b".git/config")]
    {
        let case = Case::new();
        let id = blob(&case, target);
        plant(&case, "120000", name, &id);
        refused(&case, &[std::str::from_utf8(name).expect("text"), "symbolic link"]);
    }
    let case = Case::new();
    let id = blob(&case, b"out");
    plant(&case, "120000", b"md", &id);
    refused(&case, &["`md`"]);
}

#[test]
fn a_bomb_is_refused_with_its_name_before_it_is_inflated() {
    if !there() {
        return;
    }
    // Loose and honest about its size; the same in a pack; then one whose header lies.
    let zeros = vec![0_u8; 100 << 20];
    for packed in [false, true] {
        let case = Case::new();
        let id = blob(&case, &zeros);
        plant(&case, "100644", b"bomb.bin", &id);
        if packed {
            git(&case.bare(), &["-c", "core.bigFileThreshold=1g", "repack", "-a", "-d", "-q"]);
        }
        refused(&case, &["bomb.bin", "104857600 bytes"]);
    }
    let case = Case::new();
    let id = blob(&case, b"to be replaced");
    plant(&case, "100644", b"bomb.bin", &id);
    let path = loose_path(&case.bare(), &id);
    let mut stream = gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::DEFAULT);
    use std::io::Write as _;
    stream.write_all(b"blob 10\0").expect("writes");
    stream.write_all(&zeros).expect("writes");
    stream.flush().expect("writes");
    std::fs::remove_file(&path).expect("removes");
    std::fs::write(&path, stream.into_inner()).expect("writes");
    refused(&case, &["bomb.bin", "does not inflate"]);
}

#[test]
fn a_tree_that_unfolds_without_end_is_refused() {
    if !there() {
        return;
    }
    let case = Case::new();
    let mut id = blob(&case, b"leaf");
    let mut mode = "100644";
    for _ in 0..9 {
        let bytes: Vec<u8> = (0..10_u8).flat_map(|number| entry(mode, &[b'a' + number], &id)).collect();
        id = feed(&case.bare(), &["hash-object", "-t", "tree", "-w", "--stdin"], &bytes).trim().to_owned();
        mode = "40000";
    }
    plant(&case, "40000", b"folders", &id);
    refused(&case, &["too many entries"]);
}

#[test]
fn ten_thousand_refs_tags_and_notes_change_nothing() {
    if !there() {
        return;
    }
    let case = Case::new();
    let tip = git(&case.bare(), &["rev-parse", "main"]);
    let commands: String = (0..10_000).map(|number| format!("create refs/heads/b{number} {tip}")).collect();
    feed(&case.bare(), &["update-ref", "--stdin"], commands.as_bytes());
    git(&case.bare(), &["pack-refs", "--all"]);
    git(&case.bare(), &["tag", "-a", "v1", "-m", "annotated", "main"]);
    git(&case.bare(), &["notes", "add", "-m", "a note", "main"]);
    let dest = case.root.path().join("cut");
    assert_eq!(cut_apart(&case.bare(), &dest), None);
    assert_eq!(git(&dest, &["for-each-ref", "--format=%(refname)"]).trim(), "refs/heads/timestep-4");
}

#[test]
fn nothing_that_a_configuration_names_is_run() {
    if !there() {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let case = Case::new();
    let id = blob(&case, b"* filter=x\n");
    plant(&case, "100644", b".gitattributes", &id);
    let marker = case.root.path().join("ran");
    let script = case.root.path().join("script");
    write(&script, &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("sets");
    let run = script.display();
    let hooks = case.root.path().join("hooks");
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        write(&hooks.join(hook), "");
        std::fs::copy(&script, hooks.join(hook)).expect("copies");
        std::fs::copy(&script, case.bare().join("hooks").join(hook)).expect("copies");
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = {run}\n\thooksPath = {}\n\tsshCommand = \
         {run}\n\tpager = {run}\n[filter \"x\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired = \
         true\n[include]\n\tpath = /dev/stdin\n[uploadpack]\n\tpackObjectsHook = {run}\n[alias]\n\tlog = !{run}\n",
        hooks.display()
    );
    std::fs::write(case.bare().join("config"), config).expect("writes");
    std::fs::write(case.bare().join("info/attributes"), "* filter=x\n").expect("writes");
    let dest = case.root.path().join("cut");
    checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect("cuts");
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    assert!(!marker.exists(), "nothing was run");
    let kept = std::fs::read_to_string(dest.join(".git/config")).expect("reads");
    assert!(!kept.contains("script"), "{kept}");
}

#[test]
fn a_repository_that_is_elsewhere_is_refused() {
    if !there() {
        return;
    }
    let case = Case::new();
    let dest = case.root.path().join("cut");
    let attempt = |source: &Path| match cut(&CutRequest::new(source, Cut::Timestep(4), &dest)) {
        Err(CutoffError::Source { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let pointer = case.root.path().join("pointer");
    write(&pointer.join(".git"), &format!("gitdir: {}\n", case.bare().display()));
    assert!(attempt(&pointer).contains("a file that points elsewhere"));
    let link = case.root.path().join("link");
    std::fs::create_dir(&link).expect("creates");
    std::os::unix::fs::symlink(case.bare(), link.join(".git")).expect("links");
    assert!(attempt(&link).contains("symbolic link"));
    git(&case.work(), &["worktree", "add", "-q", "../second", "timestep-4"]);
    assert!(attempt(&case.root.path().join("second")).contains("points elsewhere"));
    assert!(attempt(&case.work().join(".git/worktrees/second")).contains("no git repository"));
    git(case.root.path(), &["init", "-q", "--bare", "--object-format=sha256", "other.git"]);
    assert!(attempt(&case.root.path().join("other.git")).contains("SHA-1"));
    assert!(attempt(case.root.path()).contains("no git repository"));
    assert!(!dest.exists());
}

#[test]
fn a_pipe_in_place_of_an_object_or_pack_does_not_block() {
    if !there() {
        return;
    }
    let case = Case::new();
    let fifo = |path: PathBuf| {
        let status = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
        assert!(status.success());
    };
    fifo(case.bare().join("objects/pack/pack-1.idx"));
    fifo(case.bare().join("objects/pack/pack-1.pack"));
    std::fs::create_dir_all(case.bare().join("objects/info")).expect("creates");
    let dest = case.root.path().join("cut");
    checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect("cuts past them");
    std::fs::remove_dir_all(&dest).expect("removes");

    let id = git(&case.bare(), &["rev-parse", "timestep-4:AGENTS.md"]);
    let object = loose_path(&case.bare(), id.trim());
    if object.exists() {
        std::fs::remove_file(&object).expect("removes");
        fifo(object);
        refused(&case, &[id.trim(), "regular file"]);
    }
}
