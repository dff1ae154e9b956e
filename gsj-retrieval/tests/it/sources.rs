//! Libraries from a corpus folder and from bare repositories.

use gsj_retrieval::{Library, RepoSource, RetrievalError};
use std::fs;
use std::path::Path;
use std::process::Command;

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
    fs::write(path, bytes).expect("written");
}

fn page(root: &Path, case: &str, timestep: u32, number: u32, text: &[u8]) {
    write(&root.join(format!("{case}/timestep-{timestep}/pages/page_{number:04}.md")), text);
}

fn texts(library: &Library, case: &str, timestep: u32) -> Vec<String> {
    let hits = library.search_case(case, timestep, "word", 20).expect("in range");
    let mut hits: Vec<_> = hits.into_iter().map(|hit| (hit.page, hit.text)).collect();
    hits.sort_unstable();
    hits.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_case_is_read_at_its_largest_timestep_with_its_own_bytes() {
    let root = tempfile::tempdir().expect("a folder");
    let cases = root.path().join("train/cases");
    for (timestep, numbers) in [(2, 1..=2), (10, 1..=10)] {
        for number in numbers {
            page(&cases, "c1", timestep, number, format!("word {timestep}\r\n").as_bytes());
        }
    }
    page(&root.path().join("eval/cases"), "c2", 1, 1, "word für c2".as_bytes());
    let library = Library::from_corpus_dir(root.path()).expect("valid");
    assert_eq!(texts(&library, "c1", 3), vec!["word 10\r\n"; 3]);
    assert_eq!(texts(&library, "c2", 1), ["word für c2"]);
    let summary = library.summary();
    assert_eq!((summary["c1"].pages, &summary["c1"].timesteps[..]), (10, &[2, 10][..]));
    for (case, timestep) in [("c1", 0), ("c1", 11), ("c1", u32::MAX)] {
        assert!(matches!(library.view(case, timestep), Err(RetrievalError::TimestepRange { .. })));
    }
    assert!(matches!(library.view("c3", 1), Err(RetrievalError::UnknownCase { .. })));
}

#[test]
fn a_scope_that_is_not_there_is_answered_with_what_there_is() {
    let of = |count: usize| {
        let cases = (1..=count).map(|n| (format!("c{n:02}"), vec!["word".to_owned(); 24]));
        Library::from_pages(cases.collect()).expect("valid")
    };
    let says =
        |library: &Library, case: &str, timestep| library.view(case, timestep).expect_err("not there").to_string();
    assert_eq!(says(&of(1), "c01", 30), "timestep 30 lies outside 1..24, the pages of case `c01`");
    assert_eq!(says(&of(0), "x", 1), "unknown case `x`; there is none");
    assert_eq!(says(&of(2), "x", 1), "unknown case `x`; there are c01, c02");
    assert_eq!(
        says(&of(12), "x", 1),
        "unknown case `x`; there are c01, c02, c03, c04, c05, c06, c07, c08, c09, c10 and 2 more"
    );
}

#[test]
fn an_unusable_folder_is_named() {
    let fails = |make: &dyn Fn(&Path), word: &str| {
        let root = tempfile::tempdir().expect("a folder");
        make(root.path());
        let error = Library::from_corpus_dir(root.path()).expect_err(word);
        assert!(error.to_string().contains(word), "{error} lacks {word}");
    };
    fails(&|_| {}, "holds no case");
    fails(&|root| fs::create_dir_all(root.join("train/cases/c1")).expect("made"), "no folder named timestep-T");
    fails(
        &|root| fs::create_dir_all(root.join("train/cases/c1/timestep-1/pages")).expect("made"),
        "there are no pages",
    );
    fails(&|root| page(&root.join("train/cases"), "c1", 1, 2, b"x"), "page 1 is missing");
    fails(&|root| page(&root.join("train/cases"), "c1", 2, 1, b"x"), "timestep-2 holds 1 pages");
    fails(&|root| page(&root.join("train/cases"), "c1", 1, 1, b"\xff"), "page 1 is not valid UTF-8");
    fails(
        &|root| ["train", "eval"].iter().for_each(|split| page(&root.join(split).join("cases"), "c1", 1, 1, b"x")),
        "given twice",
    );
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// A bare repository with branch `main` as the closure fills the work tree, and a branch `timestep-2`.
fn repository(fill: &dyn Fn(&Path)) -> (tempfile::TempDir, RepoSource, String) {
    let root = tempfile::tempdir().expect("a folder");
    let work = root.path().join("work");
    fs::create_dir_all(&work).expect("made");
    git(&work, &["init", "-q", "-b", "main"]);
    fill(&work);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&work, &["branch", "timestep-2"]);
    let commit = git(&work, &["rev-parse", "HEAD"]);
    git(root.path(), &["clone", "-q", "--bare", "work", "c1.git"]);
    let source = RepoSource::new("c1", root.path().join("c1.git"));
    (root, source, commit)
}

#[test]
fn a_repository_is_read_by_object_with_its_own_bytes() {
    let (_root, source, commit) = repository(&|work| {
        write(&work.join("md/page_0001.md"), b"word one\r\n");
        write(&work.join("md/page_0002.md"), b"word two\r");
        write(&work.join("md/notes.md"), b"word not a page");
        write(&work.join("page_0003.md"), b"word not here");
    });
    let library = Library::from_repos(std::slice::from_ref(&source)).expect("valid");
    assert_eq!(texts(&library, "c1", 2), ["word one\r\n", "word two\r"]);
    let summary = library.summary();
    assert_eq!((summary["c1"].pages, &summary["c1"].timesteps[..]), (2, &[2][..]));
    assert_eq!(summary["c1"].commit.as_deref(), Some(commit.as_str()));
}

#[test]
fn timesteps_may_be_branches_of_another_repository_under_another_name() {
    let page = |work: &Path| write(&work.join("md/page_0001.md"), b"word");
    let (_full, mut source, _) = repository(&page);
    let (cuts, beside, _) = repository(&page);
    let bare = cuts.path().join("c1.git");
    for name in ["cut-7-a", "cut-8-a", "cut-9", "x-cut-7-a", "cut-07-a"] {
        git(&bare, &["branch", name, "main"]);
    }
    let told = |source: &RepoSource| {
        Library::from_repos(std::slice::from_ref(source)).expect("valid").summary()["c1"].timesteps.clone()
    };
    assert_eq!(told(&source), [2], "its own branches");
    git(&source.path, &["branch", "-D", "timestep-2"]);
    assert_eq!(told(&source), [0; 0]);
    source.timesteps_from = Some(beside.path);
    assert_eq!(told(&source), [2]);
    source.ref_pattern = "cut-{T}-a".into();
    assert_eq!(told(&source), [7, 8]);
}

#[test]
fn an_unusable_repository_is_named() {
    let fails = |source: RepoSource, words: &[&str]| {
        let error = Library::from_repos(&[source]).expect_err("unusable").to_string();
        for word in words {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    };
    let (_root, source, _) = repository(&|work| write(&work.join("md/page_0002.md"), b"x"));
    fails(source.clone(), &["c1", "page 1 is missing", "branch `main`"]);
    let mut on_other = source.clone();
    on_other.ref_main = "other".into();
    fails(on_other, &["c1", "find branch `other`"]);
    let mut nowhere = source;
    nowhere.path.push("nowhere");
    fails(nowhere, &["c1", "open", "nowhere"]);
    let (_root, source, _) = repository(&|_| {});
    fails(source, &["there are no pages"]);
    let (_root, source, _) = repository(&|work| write(&work.join("md/page_0001.md"), b"\xff"));
    fails(source, &["page 1 is not valid UTF-8"]);
    let (_root, source, _) = repository(&|work| {
        fs::create_dir_all(work.join("md")).expect("made");
        std::os::unix::fs::symlink("/etc/passwd", work.join("md/page_0001.md")).expect("linked");
    });
    fails(source, &["there are no pages"]);
}
