use crate::support::{bare, build, git, json, minimal, scratch, snapshot};
use gsj_estate::{Corpus, EstateError, Recipe, ScaffoldOptions, default_recipe, scaffold, validate};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

#[test]
fn sealed_repositories_tell_nothing_of_later_pages() {
    let Some(root) = minimal() else { return };
    let base = scratch();
    let built = build(root.path(), base.path(), Recipe::Sealed);
    let made = built.repos.iter().find(|made| made.case_id == "case_demo" && !made.full).expect("made");
    assert_eq!(made.refs.keys().collect::<Vec<_>>(), ["timestep-1", "timestep-2"], "no main");
    let lock: serde_json::Value = serde_json::from_str(&built.lock).expect("JSON");
    assert_eq!(lock["corpus"]["recipe"], "sealed");
    assert_eq!(lock["cases"]["case_demo"]["full_refs"].as_object().map(|refs| refs.len()), Some(1));
    assert_eq!(default_recipe(root.path()).expect("readable"), Recipe::Sealed);

    let Some(commit) = git(bare(made), &["cat-file", "-p", "timestep-1"]) else { return };
    assert!(!commit.contains("parent"), "{commit}");
    assert!(commit.ends_with("\n\ntimestep-1\n"), "{commit}");
    assert_eq!(git(bare(made), &["symbolic-ref", "HEAD"]).expect("git").trim(), "refs/heads/timestep-2");
    let full = built.repos.iter().find(|made| made.case_id == "case_demo" && made.full).expect("made");
    assert!(bare(full).ends_with("gsj-staging/case_demo.full.git"));
    assert_eq!(git(bare(full), &["log", "-1", "--format=%B", "main"]).expect("git").trim(), "case_demo");
    let clone = base.path().join("clone");
    git(base.path(), &["clone", "-q", &bare(full).display().to_string(), "clone"]);
    assert!(clone.join("md/page_0002.md").is_file(), "a plain clone checks the document out");
}

#[test]
fn a_second_run_writes_nothing_and_a_changed_estate_is_brought_back() {
    let Some(root) = minimal() else { return };
    let base = scratch();
    assert!(build(root.path(), base.path(), Recipe::Reference).repos.iter().all(|made| made.changed));
    let (estate, corpus) = (snapshot(base.path()), snapshot(root.path()));
    let again = build(root.path(), base.path(), Recipe::Reference);
    assert!(again.repos.iter().all(|made| !made.changed));
    assert_eq!((snapshot(base.path()), snapshot(root.path())), (estate.clone(), corpus));

    let path = base.path().join("gsj-staging/case_demo.git");
    for change in [
        &["branch", "stray", "main"][..],
        &["tag", "v1", "main"],
        &["update-ref", "refs/heads/timestep-1", "main"],
        &["symbolic-ref", "HEAD", "refs/heads/timestep-1"],
        &["pack-refs", "--all"],
        &["-c", "gc.pruneExpire=now", "repack", "-a", "-d", "-q"],
    ] {
        if git(&path, change).is_none() {
            return;
        }
    }
    assert!(build(root.path(), base.path(), Recipe::Reference).repos[0].changed);
    assert_eq!(git(&path, &["for-each-ref", "--format=%(refname)"]).expect("git").lines().count(), 3);
    let refs = |root: &Path| -> Vec<_> {
        snapshot(root).into_iter().filter(|(path, _)| !path.to_string_lossy().contains("/info/")).collect()
    };
    assert_eq!(refs(base.path()), refs_of(&estate), "the same bytes as before");
}

fn refs_of(estate: &[(std::path::PathBuf, Vec<u8>)]) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    estate.iter().filter(|(path, _)| !path.to_string_lossy().contains("/info/")).cloned().collect()
}

#[test]
fn what_left_the_corpus_leaves_lock_and_objects() {
    let Some(root) = minimal() else { return };
    let base = scratch();
    build(root.path(), base.path(), Recipe::Reference);
    let size = || -> usize {
        snapshot(&base.path().join("gsj-staging/case_demo.git/objects")).iter().map(|(_, bytes)| bytes.len()).sum()
    };
    let before = size();
    fs::remove_dir_all(root.path().join("eval")).expect("removes");
    fs::remove_dir_all(root.path().join("train/cases/case_demo/timestep-2")).expect("removes");
    let built = build(root.path(), base.path(), Recipe::Reference);
    let lock: serde_json::Value = serde_json::from_str(&built.lock).expect("JSON");
    assert_eq!(lock["cases"].as_object().expect("cases").keys().collect::<Vec<_>>(), ["case_demo"]);
    assert!(size() < before, "the later page is in no object any more");
    assert_eq!(built.forgotten.len(), 1);
    assert!(built.forgotten[0].removed && !base.path().join("gsj-staging/case_holdout.git").exists());
}

#[test]
fn blocks_of_other_phases_stay_in_the_lock() {
    let Some(root) = minimal() else { return };
    let lock = root.path().join("corpus.lock.json");
    fs::write(
        &lock,
        r#"{"taskbank": {"rows": 4, "path": "taskbank.parquet"}, "_comment": ["kept"], "cases": {"old": {}}}"#,
    )
    .expect("writes");
    let base = scratch();
    build(root.path(), base.path(), Recipe::Reference);
    let after = json(&lock);
    assert_eq!((&after["taskbank"]["rows"], &after["_comment"][0]), (&4.into(), &"kept".into()));
    assert!(after["cases"].get("old").is_none());
    fs::write(&lock, "{").expect("writes");
    assert!(matches!(default_recipe(root.path()), Err(EstateError::Lock { .. })));
}

#[test]
fn a_dry_run_and_a_foreign_folder_write_nothing() {
    let Some(root) = minimal() else { return };
    let base = scratch();
    let corpus = Corpus::read(root.path()).expect("passes");
    let before = snapshot(root.path());
    let mut options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
    options.dry_run = true;
    assert!(scaffold(&corpus, &options).expect("builds").repos.iter().all(|made| made.changed));
    assert_eq!((snapshot(base.path()), snapshot(root.path())), (Vec::new(), before));

    options.dry_run = false;
    options.owner_override = Some("../../x".into());
    assert!(matches!(scaffold(&corpus, &options), Err(EstateError::Owner { .. })));
    options.owner_override = None;
    let foreign = base.path().join("gsj-staging/case_demo.git/thesis.txt");
    fs::create_dir_all(foreign.parent().expect("below")).expect("creates");
    fs::write(&foreign, "mine").expect("writes");
    assert!(matches!(scaffold(&corpus, &options), Err(EstateError::Repository { .. })));
    assert_eq!(fs::read_to_string(&foreign).expect("still there"), "mine");
}

#[test]
fn a_page_that_changes_after_validation_is_told() {
    let Some(root) = minimal() else { return };
    let corpus = Corpus::read(root.path()).expect("passes");
    fs::write(root.path().join("eval/cases/case_holdout/timestep-2/pages/page_0002.md"), "other\n").expect("writes");
    let base = scratch();
    let options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
    assert!(matches!(scaffold(&corpus, &options), Err(EstateError::Changed { .. })));
    assert!(!root.path().join("corpus.lock.json").exists(), "no lock for what was not built");
}

#[test]
fn huge_numbers_and_bombs_give_short_findings() {
    let Some(root) = minimal() else { return };
    let case = root.path().join("train/cases/case_demo");
    fs::create_dir_all(case.join("timestep-3000000/pages")).expect("creates");
    fs::create_dir_all(case.join("timestep-99999999999999999999999/pages")).expect("creates");
    let bomb: String = (1..9).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
        format!("{text}a{level}: &a{level} [{}]\n", format!("*a{},", level - 1).repeat(9))
    });
    fs::write(case.join("timestep-1/prompts.yaml"), bomb).expect("writes");
    let report = validate(root.path());
    let text: usize = report.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(text < 2000, "{text} bytes");
    assert_eq!(report.failures().filter(|finding| finding.rule == "page.census").count(), 2);
    assert!(report.failures().any(|finding| finding.rule == "prompts.syntax"));
}

#[test]
fn secrets_in_the_address_are_not_repeated() {
    let Some(root) = minimal() else { return };
    let path = root.path().join("corpus.yaml");
    let text = fs::read_to_string(&path).expect("reads").replace("http://", "http://u:hunter2@");
    fs::write(&path, text).expect("writes");
    let report = validate(root.path());
    assert!(!report.passed());
    assert!(report.findings.iter().all(|finding| !finding.to_string().contains("hunter2")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_the_validator_panic(yaml in "[a-z:\\-\\[\\]{}&*!|>'\"# \n\t0-9.~?%@\u{e9}]{0,60}") {
        let Some(root) = minimal() else { return Ok(()) };
        for file in ["corpus.yaml", "train/cases/case_demo/timestep-1/prompts.yaml", "train/cases/case_demo/case.yaml"] {
            let Some(root) = Some(&root) else { return Ok(()) };
            let path = root.path().join(file);
            let before = fs::read(&path).ok();
            fs::write(&path, &yaml).expect("writes");
            let _ = validate(root.path());
            match before { Some(before) => fs::write(&path, before).expect("writes"), None => fs::remove_file(&path).expect("removes") }
        }
    }
}
