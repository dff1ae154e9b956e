//! Nothing of the caller's surroundings reaches an id, and nothing outside the target is written.

use crate::support::{build, child, git, json, snapshot, synthetic};
use gsj_estate::{Corpus, Recipe, ScaffoldOptions, scaffold};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const ROOT: &str = "GSJ_ESTATE_TEST_ROOT";
const BASE: &str = "GSJ_ESTATE_TEST_BASE";
const LOCKS: &str = "GSJ_ESTATE_TEST_LOCKS";

#[test]
#[ignore = "a process that the test below starts in hostile surroundings"]
fn scaffolds_both_recipes() {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    if let (Some(root), Some(base), Some(locks)) = (path(ROOT), path(BASE), path(LOCKS)) {
        for recipe in [Recipe::Reference, Recipe::Sealed] {
            let corpus = Corpus::read(&root).expect("passes").with_lock_dir(locks.clone());
            scaffold(&corpus, &ScaffoldOptions::folder(&base.join(recipe.as_str()), recipe)).expect("scaffolds");
        }
    }
}

/// Takes away the right to write in a folder and below it, root's aside.
fn read_only(folder: &Path) {
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("entry").path();
        let directory = path.is_dir();
        if directory {
            read_only(&path);
        }
        let mode = if directory { 0o555 } else { 0o400 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("sets");
    }
}

fn writable(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("sets");
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            writable(&path);
        }
    }
}

#[test]
fn hostile_surroundings_move_no_id_and_are_not_written_to() {
    let (root, base, home) = (synthetic(2), TempDir::new().expect("folder"), TempDir::new().expect("folder"));
    let (calm, locks) = (TempDir::new().expect("folder"), TempDir::new().expect("folder"));
    for recipe in [Recipe::Reference, Recipe::Sealed] {
        build(root.path(), &calm.path().join(recipe.as_str()), recipe);
    }
    fs::remove_file(root.path().join("corpus.lock.json")).expect("removes");

    fs::write(
        home.path().join(".gitconfig"),
        "[core]\n\tautocrlf = true\n\texcludesFile = ~/ignore\n\tattributesFile = ~/attributes\n[init]\n\tdefaultBranch = \
         x\n[commit]\n\tgpgSign = true\n[user]\n\tname = someone\n[extensions]\n\tobjectFormat = sha256\n",
    )
    .expect("writes");
    fs::create_dir_all(home.path().join(".config/git")).expect("creates");
    fs::write(home.path().join("ignore"), "AGENTS.md\n").expect("writes");
    fs::write(home.path().join(".config/git/ignore"), "AGENTS.md\nmd\n").expect("writes");
    fs::write(home.path().join(".config/git/attributes"), "* text=auto eol=crlf\n").expect("writes");
    if git(home.path(), &["init", "-q", "mine"]).is_none() {
        return;
    }
    fs::write(home.path().join("mine/thesis.txt"), "mine").expect("writes");
    let (source, before) = (snapshot(root.path()), snapshot(home.path()));
    read_only(root.path());

    let program = child("surroundings::scaffolds_both_recipes");
    let mut command = Command::new("sh");
    command.arg("-c").arg("umask 0077; exec \"$@\"").arg("sh").arg(program.get_program()).args(program.get_args());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mine = home.path().join("mine");
    for (name, value) in [
        ("HOME", home.path().to_owned()),
        ("XDG_CONFIG_HOME", home.path().join(".config")),
        ("GIT_DIR", mine.join(".git")),
        ("GIT_WORK_TREE", mine.clone()),
        ("GIT_INDEX_FILE", mine.join(".git/index")),
        ("GIT_OBJECT_DIRECTORY", mine.join(".git/objects")),
        ("GIT_CONFIG_GLOBAL", home.path().join(".gitconfig")),
        (ROOT, root.path().to_owned()),
        (BASE, base.path().to_owned()),
        (LOCKS, locks.path().to_owned()),
    ] {
        command.env(name, value);
    }
    for (name, value) in [
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "core.autocrlf"),
        ("GIT_CONFIG_VALUE_0", "true"),
        ("GIT_CONFIG_KEY_1", "init.defaultObjectFormat"),
        ("GIT_CONFIG_VALUE_1", "sha256"),
        ("GIT_DEFAULT_HASH", "sha256"),
        ("GIT_AUTHOR_NAME", "someone"),
        ("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z"),
        ("GIT_COMMITTER_EMAIL", "x@x"),
        ("TZ", "Asia/Tokyo"),
        ("LC_ALL", "tr_TR.UTF-8"),
    ] {
        command.env(name, value);
    }
    let ended = command.current_dir(&mine).output().expect("starts");
    writable(root.path());
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(snapshot(base.path()) == snapshot(calm.path()), "another estate");
    assert!(snapshot(home.path()) == before, "the caller's own files were written");
    assert_eq!(json(&locks.path().join("corpus.lock.json"))["corpus"]["recipe"], "sealed");
    assert!(snapshot(root.path()) == source, "the corpus was written");
}
