//! Repositories of cases that left the corpus.

use crate::support::{build, git, synthetic};
use gsj_estate::{Corpus, Recipe, ScaffoldOptions, scaffold};
use std::fs;
use tempfile::TempDir;

#[test]
fn what_is_ours_is_taken_away_and_what_is_not_is_told() {
    let (root, base) = (synthetic(5), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let home = base.path().join("gsj-staging");
    for case in ["case_0000", "case_0001"] {
        fs::remove_dir_all(root.path().join("train/cases").join(case)).expect("removes");
    }
    // Somebody works in one of them.
    let foreign = home.join("case_0001.git");
    if git(&foreign, &["tag", "mine", "timestep-2"]).is_none() {
        return;
    }
    let corpus = Corpus::read(root.path()).expect("passes");
    let mut options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
    options.dry_run = true;
    let told = scaffold(&corpus, &options).expect("builds").forgotten;
    assert!(home.join("case_0000.git").exists(), "a dry run removes nothing");
    options.dry_run = false;
    let forgotten = scaffold(&corpus, &options).expect("scaffolds").forgotten;
    assert_eq!(told, forgotten, "a dry run tells what a run does");
    let fate: Vec<(&str, bool)> =
        forgotten.iter().map(|one| (one.url.rsplit('/').next().expect("a name"), one.removed)).collect();
    assert_eq!(
        fate,
        [("case_0000.git", true), ("case_0000.full.git", true), ("case_0001.git", false), ("case_0001.full.git", true)]
    );
    assert!(!home.join("case_0000.git").exists() && foreign.exists());
    assert!(
        fs::read_dir(&home).expect("lists").all(|entry| !entry
            .expect("entry")
            .file_name()
            .to_string_lossy()
            .ends_with(".removed"))
    );
    assert!(scaffold(&corpus, &options).expect("scaffolds").forgotten.is_empty(), "the lock has forgotten them");
}

#[test]
fn nothing_is_removed_for_a_lock_of_another_corpus_or_when_asked_to_keep() {
    for change in ["name", "keep", "path"] {
        let (root, base) = (synthetic(3), TempDir::new().expect("folder"));
        build(root.path(), base.path(), Recipe::Reference);
        let lock = root.path().join("corpus.lock.json");
        let text = fs::read_to_string(&lock).expect("reads");
        match change {
            "name" => fs::write(&lock, text.replace("\"synthetic\"", "\"other\"")).expect("writes"),
            "path" => {
                fs::write(&lock, text.replace("\"case_0000\": {", "\"../gsj-staging/case_0000\": {")).expect("writes");
            }
            _ => {}
        }
        fs::remove_dir_all(root.path().join("train/cases/case_0000")).expect("removes");
        let corpus = Corpus::read(root.path()).expect("passes");
        let mut options = ScaffoldOptions::folder(base.path(), Recipe::Reference);
        options.keep_forgotten = change == "keep";
        let forgotten = scaffold(&corpus, &options).expect("scaffolds").forgotten;
        assert!(forgotten.iter().all(|one| !one.removed && one.why.is_some()), "{change}: {forgotten:?}");
        assert!(base.path().join("gsj-staging/case_0000.git").exists(), "{change}");
    }
}

#[test]
fn a_part_of_an_estate_keeps_the_rest_of_the_lock() {
    let (root, base) = (synthetic(3), TempDir::new().expect("folder"));
    let whole = build(root.path(), base.path(), Recipe::Sealed).lock;
    let corpus = Corpus::read_only(root.path(), &["case_0001".into()]).expect("passes");
    let mut options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
    options.partial = true;
    let built = scaffold(&corpus, &options).expect("scaffolds");
    assert_eq!((built.lock, built.repos.len()), (whole, 2));
    assert!(base.path().join("gsj-staging/case_0000.git").exists());
    options.recipe = Recipe::Reference;
    assert!(scaffold(&corpus, &options).is_err(), "one estate has one recipe");
    options.recipe = Recipe::Sealed;
    options.owner_override = Some("gsj-prod".into());
    assert!(scaffold(&corpus, &options).is_err(), "one estate has one owner");
}

#[test]
fn repositories_of_the_owner_before_are_told_and_left() {
    for overridden in [false, true] {
        let (root, base) = (synthetic(2), TempDir::new().expect("folder"));
        build(root.path(), base.path(), Recipe::Sealed);
        let mut options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
        if overridden {
            options.owner_override = Some("second".into());
        } else {
            let settings = root.path().join("corpus.yaml");
            let text = fs::read_to_string(&settings).expect("reads");
            fs::write(&settings, text.replace("gsj-staging", "second")).expect("writes");
        }
        let corpus = Corpus::read(root.path()).expect("passes");
        options.dry_run = true;
        let told = scaffold(&corpus, &options).expect("builds").forgotten;
        options.dry_run = false;
        let forgotten = scaffold(&corpus, &options).expect("scaffolds").forgotten;
        assert_eq!(told, forgotten, "a dry run tells what a run does");
        let names: Vec<String> = forgotten
            .iter()
            .map(|one| one.url.split("/gsj-staging/").nth(1).expect("of the owner before").into())
            .collect();
        assert_eq!(names, ["case_0000.git", "case_0000.full.git", "case_0001.git", "case_0001.full.git"]);
        assert!(forgotten.iter().all(|one| !one.removed && one.why.as_ref().expect("why").contains("`gsj-staging`")));
        assert!(base.path().join("gsj-staging/case_0000.git").exists());
        assert!(base.path().join("second/case_0000.git").exists());
        assert!(scaffold(&corpus, &options).expect("scaffolds").forgotten.is_empty(), "the lock has forgotten them");
    }
}
