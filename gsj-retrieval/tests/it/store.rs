//! The index on disk: what is reused, what is built, and what a stopped build leaves.

use gsj_retrieval::{Library, Opened, Rebuild, RetrievalError, Sources};
use std::fs;
use std::path::Path;

pub(crate) fn corpus(root: &Path, case: &str, pages: &[&str]) {
    let folder = root.join(format!("train/cases/{case}/timestep-{}/pages", pages.len()));
    fs::create_dir_all(&folder).expect("a folder");
    for (number, page) in (1..).zip(pages) {
        fs::write(folder.join(format!("page_{number:04}.md")), page).expect("a page");
    }
}

pub(crate) fn open(root: &Path, rebuild: Rebuild) -> Result<(Library, Opened), RetrievalError> {
    Library::stored(&root.join("index"), Sources::Corpus(&root.join("corpus")), rebuild)
}

fn two_cases() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    corpus(&root.path().join("corpus"), "alpha", &["A heron.", "A kestrel."]);
    corpus(&root.path().join("corpus"), "beta", &["A ferry."]);
    root
}

pub(crate) fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root.join("index"))
        .expect("the index")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_unchanged_is_reused_and_answers_the_same() {
    let root = two_cases();
    let (built, opened) = open(root.path(), Rebuild::IfStale).expect("built");
    assert_eq!((opened.built, opened.reused, opened.stale), (2, 0, None));
    let (mapped, again) = open(root.path(), Rebuild::Never).expect("there");
    assert_eq!((again.built, again.reused, &again.fingerprint), (0, 2, &opened.fingerprint));
    let plain = Library::from_corpus_dir(&root.path().join("corpus")).expect("valid");
    for library in [&built, &mapped] {
        let hits = library.search_case("alpha", 2, "kestrels", 5).expect("served");
        assert_eq!(hits, plain.search_case("alpha", 2, "kestrels", 5).expect("served"));
        assert_eq!(hits.len(), 1);
        assert_eq!(library.summary(), plain.summary());
    }
}

#[test]
fn only_the_case_that_changed_is_built_and_its_old_file_goes() {
    let root = two_cases();
    open(root.path(), Rebuild::IfStale).expect("built");
    let before = names(root.path());
    corpus(&root.path().join("corpus"), "beta", &["A ferry, repainted."]);
    let (library, opened) = open(root.path(), Rebuild::IfStale).expect("built");
    assert_eq!((opened.built, opened.reused), (1, 1));
    assert!(opened.stale.expect("said").contains("fingerprint"));
    assert_eq!(library.search_case("beta", 1, "repainted", 5).expect("served").len(), 1);
    let after = names(root.path());
    assert_eq!(after.len(), before.len());
    assert_eq!(after.iter().filter(|name| before.contains(name)).count(), 3, "alpha, the manifest and the lock");
    let (_, opened) = open(root.path(), Rebuild::Always).expect("built");
    assert_eq!((opened.built, opened.reused), (2, 0));
}

#[test]
fn a_damaged_file_is_noticed_and_built_anew() {
    let root = two_cases();
    open(root.path(), Rebuild::IfStale).expect("built");
    let name = names(root.path()).into_iter().find(|name| name.starts_with("alpha.")).expect("its file");
    let path = root.path().join("index").join(name);
    let whole = fs::read(&path).expect("its bytes");
    for damaged in [whole[..whole.len() - 1].to_vec(), Vec::new(), {
        let mut bytes = whole.clone();
        bytes[100] ^= 1;
        bytes
    }] {
        fs::write(&path, damaged).expect("written");
        let error = open(root.path(), Rebuild::Never).expect_err("it is no more what was built");
        assert!(matches!(&error, RetrievalError::NotRebuilt { problem, .. } if problem.contains("alpha.")), "{error}");
        let (_, opened) = open(root.path(), Rebuild::IfStale).expect("built");
        assert_eq!((opened.built, opened.reused), (1, 1));
        assert_eq!(fs::read(&path).expect("its bytes"), whole);
    }
}

#[test]
fn an_index_that_is_not_there_is_an_error_where_none_may_be_built() {
    let root = two_cases();
    let error = open(root.path(), Rebuild::Never).expect_err("nothing is there");
    assert!(error.to_string().contains("isn't there"), "{error}");
    assert!(!root.path().join("index").exists(), "nothing is written");
}

#[test]
fn a_manifest_cannot_name_a_file_elsewhere() {
    let root = two_cases();
    open(root.path(), Rebuild::IfStale).expect("built");
    let path = root.path().join("index/index.json");
    let name = names(root.path()).into_iter().find(|name| name.starts_with("alpha.")).expect("its file");
    let text = fs::read_to_string(&path).expect("the manifest");
    fs::copy(root.path().join("index").join(&name), root.path().join(&name)).expect("a copy outside");
    fs::write(&path, text.replace(&name, &format!("../{name}"))).expect("written");
    open(root.path(), Rebuild::Never).expect_err("it leads out of the store");
    open(root.path(), Rebuild::IfStale).expect("built anew");
}

#[test]
fn a_file_of_another_case_is_not_taken_for_this_ones() {
    let root = two_cases();
    open(root.path(), Rebuild::IfStale).expect("built");
    let path = root.path().join("index/index.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).expect("there")).expect("JSON");
    for member in ["file", "sha256"] {
        manifest["cases"]["alpha"][member] = manifest["cases"]["beta"][member].clone();
    }
    fs::write(&path, manifest.to_string()).expect("written");
    assert!(open(root.path(), Rebuild::Never).is_err());
    let (library, opened) = open(root.path(), Rebuild::IfStale).expect("built");
    assert_eq!((opened.built, opened.reused), (1, 1));
    assert_eq!(library.search_case("alpha", 2, "kestrels", 5).expect("served").len(), 1);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let root = two_cases();
    open(root.path(), Rebuild::IfStale).expect("built");
    let pipe = |path: &Path| {
        fs::remove_file(path).expect("removed");
        assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
    };
    for name in names(root.path()).iter().filter(|name| *name != "lock") {
        pipe(&root.path().join("index").join(name));
        let (library, opened) = open(root.path(), Rebuild::IfStale).expect("built");
        assert_eq!(library.search_case("alpha", 2, "kestrels", 5).expect("served").len(), 1);
        assert!(opened.built > 0, "{name}");
    }
    pipe(&root.path().join("index/lock"));
    assert!(matches!(open(root.path(), Rebuild::Always), Err(RetrievalError::Write { .. })));
    pipe(&root.path().join("corpus/train/cases/beta/timestep-1/pages/page_0001.md"));
    assert!(matches!(open(root.path(), Rebuild::IfStale), Err(RetrievalError::Read { .. })));
}
