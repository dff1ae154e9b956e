use crate::support::{apply, json, minimal, shared, snapshot};
use gsj_estate::{
    BANK_FILE, Corpus, EstateError, LOCK_FILE, Lock, Recipe, ScaffoldOptions, Split, scaffold, split_bank, taskbank,
};
use gsj_tables::{Bank, RawRow};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn scaffolded(root: &Path, recipe: Recipe) -> Corpus {
    let corpus = Corpus::read(root).expect("valid");
    let base = TempDir::new().expect("temporary folder");
    let options = ScaffoldOptions::folder(base.path(), recipe);
    scaffold(&corpus, &options).expect("scaffolds");
    corpus
}

fn rows(bank: &Path) -> Value {
    let bank = Bank::open(bank).expect("a bank");
    bank.raw_rows(0..bank.len()).map(|row| row_of(&row.expect("a row"))).collect()
}

fn row_of(row: &RawRow) -> Value {
    json!({
        "case_id": row.case_id, "timestep": row.timestep, "prompt_id": row.prompt_id, "split": row.split,
        "prompt_source": row.prompt_source, "prompt_text": row.prompt_text,
        "skill_card_text": row.skill_card_text.as_deref(), "sandbox_image": row.sandbox_image.as_deref(),
    })
}

/// Makes lock and bank anew and compares both with the reference's.
fn compared(root: &Path, name: &str) {
    let corpus = scaffolded(root, Recipe::Reference);
    let made = taskbank(&corpus, false).expect("makes the bank");
    let expected = json(&shared("vectors/corpus/expected-taskbank.json").expect("beside the locks"));
    assert_eq!(rows(&root.join(BANK_FILE)), expected[name], "{name}");
    let mut wanted = json(&shared(&format!("vectors/corpus/expected-lock-{name}.json")).expect("beside the rows"));
    wanted["taskbank"]["sha256"] = made.sha256.clone().into();
    let mut found = json(&root.join(LOCK_FILE));
    found.as_object_mut().expect("object").remove("_comment");
    wanted.as_object_mut().expect("object").remove("_comment");
    assert_eq!(found, wanted, "{name}");
    // Byte for byte too, but for the block that is another writer's.
    let text = serde_json::to_string_pretty(&found).expect("JSON") + "\n";
    let lock = fs::read_to_string(root.join(LOCK_FILE)).expect("lock");
    assert!(lock.contains("_comment") || lock == text, "sorted, indented by two, a line feed at the end");
    let scaffolded_again = scaffolded(root, Recipe::Reference);
    assert_eq!(fs::read_to_string(root.join(LOCK_FILE)).expect("lock"), lock, "scaffold keeps the bank's block");
    assert!(!taskbank(&scaffolded_again, false).expect("makes the bank").changed);
}

#[test]
fn the_staging_corpus_gives_the_references_lock_and_rows() {
    let Some(corpus) = shared("data/staging-corpus") else { return };
    for keeps_its_lock in [true, false] {
        let home = TempDir::new().expect("temporary folder");
        let root = home.path().join("corpus");
        assert!(Command::new("cp").arg("-r").arg(&corpus).arg(&root).status().expect("cp").success());
        assert!(Command::new("chmod").args(["-R", "u+w"]).arg(&root).status().expect("chmod").success());
        if !keeps_its_lock {
            fs::remove_file(root.join(LOCK_FILE)).expect("there");
            fs::remove_file(root.join(BANK_FILE)).expect("there");
        }
        compared(&root, "staging");
    }
}

#[test]
fn the_minimal_corpus_gives_the_references_lock_and_rows() {
    let Some(root) = minimal() else { return };
    compared(root.path(), "minimal");
}

#[test]
fn a_bank_needs_a_lock_of_the_same_corpus() {
    let Some(root) = minimal() else { return };
    let corpus = Corpus::read(root.path()).expect("valid");
    let said = taskbank(&corpus, false).expect_err("no lock").to_string();
    assert!(said.ends_with("has no corpus.lock.json; `gsj estate scaffold` writes it"), "{said}");
    let before = snapshot(root.path());
    let dry = taskbank(&corpus, true).expect("needs no lock");
    assert_eq!((dry.counts.rows, dry.counts.train, dry.counts.eval, dry.sha256), (4, 3, 1, None));
    assert_eq!(snapshot(root.path()), before, "a dry run writes nothing");

    scaffolded(root.path(), Recipe::Sealed);
    fs::rename(root.path().join("eval/cases/case_holdout"), root.path().join("train/cases/case_holdout"))
        .expect("moves");
    fs::remove_dir_all(root.path().join("eval")).expect("removes");
    apply(
        root.path(),
        &json!([
            {"op": "write", "path": "train/cases/new/timestep-1/pages/page_0001.md", "text": "x\n"},
            {"op": "write", "path": "train/cases/new/timestep-1/prompts.yaml", "text": ""},
        ]),
    );
    let corpus = Corpus::read(root.path()).expect("valid");
    let said = taskbank(&corpus, false).expect_err("behind").to_string();
    let wanted = "of another state of the corpus: case_holdout is in split \"eval\" there, in train here; new is not in \
                  it; `gsj estate scaffold` brings it up to date";
    assert!(said.ends_with(wanted), "{said}");
    assert!(!root.path().join(BANK_FILE).exists());
    scaffolded(root.path(), Recipe::Sealed);
    assert_eq!(taskbank(&corpus, false).expect("up to date").counts.rows, 4, "a case without prompts has no rows");
}

#[test]
fn one_splits_bank_stands_elsewhere_and_the_lock_does_not_know_it() {
    let Some(root) = minimal() else { return };
    let corpus = scaffolded(root.path(), Recipe::Sealed);
    taskbank(&corpus, false).expect("the whole bank");
    let before = snapshot(root.path());
    let other = TempDir::new().expect("temporary folder");
    let path = other.path().join("eval.parquet");
    let made = split_bank(&corpus, Split::Eval, &path).expect("a bank of one split");
    assert_eq!((made.counts.rows, made.counts.train, made.changed), (1, 0, true));
    let found = rows(&path);
    assert_eq!(found[0]["split"], "eval");
    assert_eq!(found.as_array().expect("rows").len(), 1);
    assert!(!split_bank(&corpus, Split::Eval, &path).expect("again").changed);
    for inside in ["eval.parquet", BANK_FILE, "train/x.parquet", ".git/../eval.parquet"] {
        fs::create_dir_all(root.path().join(".git")).expect("creates");
        let refused = split_bank(&corpus, Split::Eval, &root.path().join(inside)).expect_err(inside);
        assert!(matches!(refused, EstateError::PartialBank { .. }), "{refused}");
    }
    fs::remove_dir(root.path().join(".git")).expect("removes");
    assert_eq!(snapshot(root.path()), before);
}

#[test]
fn what_others_wrote_into_the_lock_stays() {
    let Some(root) = minimal() else { return };
    let corpus = scaffolded(root.path(), Recipe::Sealed);
    let path = root.path().join(LOCK_FILE);
    let mut lock = json(&path);
    lock["_comment"] = json!(["é by hand"]);
    lock["tomorrow"] = json!({"b": 1, "a": [{"z": 1, "y": 2}]});
    fs::write(&path, lock.to_string()).expect("writes");
    taskbank(&corpus, false).expect("makes the bank");
    let after = json(&path);
    assert_eq!(
        (&after["_comment"], &after["tomorrow"], &after["cases"]),
        (&lock["_comment"], &lock["tomorrow"], &lock["cases"])
    );
    let text = fs::read_to_string(&path).expect("lock");
    assert!(text.contains("\"\\u00e9 by hand\"") && text.is_ascii());

    let lock = Lock::read(root.path()).expect("reads").expect("is there");
    let claim = lock.taskbank().expect("in order").expect("claims");
    assert_eq!((claim.rows, claim.path.as_str()), (4, BANK_FILE));
    let case = lock.case("case_demo").expect("in order").expect("is there");
    assert_eq!((case.split.as_str(), case.timesteps["2"].prompt_ids.len()), ("train", 2));
    assert_eq!(lock.case_ids().collect::<Vec<_>>(), ["case_demo", "case_holdout"]);
    assert_eq!(lock.case("none").expect("in order"), None);
}

#[test]
fn a_lock_that_cannot_be_read_is_refused_and_odd_blocks_are_named() {
    let Some(root) = minimal() else { return };
    let corpus = scaffolded(root.path(), Recipe::Sealed);
    let path = root.path().join(LOCK_FILE);
    for (text, wanted) in [
        ("[]", "is no JSON object"),
        ("{", "is no JSON: "),
        ("{\"cases\": {}, \"cases\": {}}", "is no JSON: it says `cases` twice"),
        ("{\"cases\": {\"case_demo\": 5}}", "has an odd entry for case case_demo: invalid type"),
    ] {
        fs::write(&path, text).expect("writes");
        let said = taskbank(&corpus, false).expect_err(text).to_string();
        assert!(said.contains(wanted), "{said}");
        assert_eq!(fs::read_to_string(&path).expect("there"), text, "what cannot be read is left alone");
    }
    for odd in ["{\"cases\": [], \"taskbank\": 3}", "{\"taskbank\": {\"rows\": -1}}"] {
        fs::write(&path, odd).expect("writes");
        let lock = Lock::read(root.path()).expect("an object").expect("is there");
        assert!(lock.taskbank().is_err() && lock.case_ids().next().is_none());
    }
}
