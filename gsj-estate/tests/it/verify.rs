//! An estate is read back; whatever differs from the corpus is a finding.

use crate::support::{build, git, json, synthetic};
use gsj_estate::{Corpus, EstateError, Host, Recipe, Report, ScaffoldOptions, VerifyOptions, verify};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn look(root: &Path, base: &Path) -> Report {
    let corpus = Corpus::read(root).expect("passes");
    verify(&corpus, &VerifyOptions::new(Host::Folder(base.to_owned()))).expect("can be looked at")
}

/// The failing findings but those about the bank, which has a test of its own.
fn failing(report: &Report) -> Vec<String> {
    let of_bank = |rule: &str| rule.starts_with("verify.taskbank");
    report
        .failures()
        .filter(|finding| !of_bank(finding.rule))
        .map(|finding| format!("{} {} {}", finding.rule, finding.scope, finding.where_))
        .collect()
}

#[test]
fn what_was_scaffolded_is_clean() {
    for recipe in [Recipe::Sealed, Recipe::Reference] {
        let (root, base) = (synthetic(5), TempDir::new().expect("folder"));
        build(root.path(), base.path(), recipe);
        let report = look(root.path(), base.path());
        assert_eq!(failing(&report), Vec::<String>::new());
        let rules: std::collections::BTreeSet<&str> = report.findings.iter().map(|finding| finding.rule).collect();
        for rule in
            ["clone", "refs", "ids", "split", "branch", "prefix", "lock", "lock-case", "lock-corpus", "other-refs"]
        {
            assert!(rules.contains(format!("verify.{rule}").as_str()), "{rule} was looked at");
        }
        let first: Vec<&str> = report.findings.iter().map(|finding| finding.split).collect();
        assert!(first.windows(2).all(|pair| pair != ["eval", "train"]), "train comes first");
    }
}

#[test]
fn without_a_lock_there_is_nothing_to_verify() {
    let (root, base) = (synthetic(1), TempDir::new().expect("folder"));
    let corpus = Corpus::read(root.path()).expect("passes");
    let error = verify(&corpus, &VerifyOptions::new(Host::Folder(base.path().to_owned()))).expect_err("no lock");
    assert!(matches!(error, EstateError::NoLock { .. }), "{error}");
}

#[test]
fn runs_with_locks_in_different_folders_and_the_same_repositories_wait_for_each_other() {
    let (root, base) = (synthetic(6), TempDir::new().expect("folder"));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let corpus = Corpus::read(root.path()).expect("passes");
            let corpus = corpus.with_lock_dir(base.path().join(format!("lock-{number}")));
            scope.spawn(move || build_in(&corpus, &base_of(corpus.lock_dir.parent().expect("below the base"))));
        }
    });
    let corpus = Corpus::read(root.path()).expect("passes").with_lock_dir(base.path().join("lock-0"));
    let host = Host::Folder(base_of(base.path()));
    assert_eq!(failing(&verify(&corpus, &VerifyOptions::new(host)).expect("reads")), Vec::<String>::new());
    assert!(!gsj_estate::is_in_use(&corpus.lock_dir));
}

#[test]
fn a_part_is_not_built_when_what_holds_for_all_cases_has_changed() {
    let (root, base) = (synthetic(3), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let settings = root.path().join("corpus.yaml");
    let text = fs::read_to_string(&settings).expect("reads");
    let image = text.lines().find(|line| line.trim_start().starts_with("sandbox_image")).expect("an image").to_owned();
    let indent: String = image.chars().take_while(|c| c.is_whitespace()).collect();
    fs::write(&settings, text.replace(&image, &format!("{indent}sandbox_image: another:2"))).expect("writes");
    let part = Corpus::read_only(root.path(), &["case_0001".into()]).expect("passes");
    let mut options = ScaffoldOptions::folder(base.path(), Recipe::Sealed);
    options.partial = true;
    let refused = gsj_estate::scaffold(&part, &options).expect_err("a mixed lock").to_string();
    assert!(refused.contains("`sandbox_image` of corpus.yaml") && refused.contains("without --only"), "{refused}");
}

fn base_of(folder: &Path) -> std::path::PathBuf {
    folder.join("repos")
}

fn build_in(corpus: &Corpus, base: &Path) {
    gsj_estate::scaffold(corpus, &ScaffoldOptions::folder(base, Recipe::Sealed)).expect("scaffolds");
}

fn edit_lock(root: &Path, edit: impl FnOnce(&mut Value)) {
    let path = root.join("corpus.lock.json");
    let mut lock = json(&path);
    edit(&mut lock);
    fs::write(path, serde_json::to_vec_pretty(&lock).expect("JSON")).expect("writes");
}

type Change = fn(&Path, &Path);

/// Turns the last bytes of a repository's one file of that extension over.
fn damage_end(repository: &Path, extension: &str) {
    for entry in fs::read_dir(repository.join("objects/pack")).expect("lists") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|found| found == extension) {
            let mut bytes = fs::read(&path).expect("reads");
            for byte in bytes.iter_mut().rev().take(4) {
                *byte ^= 0xff;
            }
            fs::write(path, bytes).expect("writes");
        }
    }
}

/// Puts a pipe that nobody writes into in a file's place.
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().expect("starts").success());
}

/// Makes every object a file of its own, and has a page's claim to be a gigabyte.
fn claim_a_gigabyte(repository: &Path) {
    let packs = repository.join("objects/pack");
    let pack = fs::read_dir(&packs).expect("lists").map(|entry| entry.expect("entry").path());
    let pack = pack.into_iter().find(|path| path.extension().is_some_and(|found| found == "pack")).expect("a pack");
    let beside = repository.join("moved.pack");
    fs::rename(&pack, &beside).expect("moves");
    fs::remove_file(pack.with_extension("idx")).expect("removes");
    let unpacked = std::process::Command::new("git")
        .args(["unpack-objects", "-q"])
        .current_dir(repository)
        .stdin(fs::File::open(&beside).expect("opens"))
        .status();
    assert!(unpacked.expect("starts").success());
    fs::remove_file(beside).expect("removes");
    let id = git(repository, &["rev-parse", "main:md/page_0002.md"]).expect("git");
    let content = b"blob 1073741823\0x";
    let (a, b) = content.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    let length = u16::try_from(content.len()).expect("short");
    // zlib with one block that is stored as it is.
    let mut object = vec![0x78, 0x01, 0x01];
    object.extend(length.to_le_bytes());
    object.extend((!length).to_le_bytes());
    object.extend(content);
    object.extend((b << 16 | a).to_be_bytes());
    let path = repository.join("objects").join(&id[..2]).join(id[2..].trim());
    fs::remove_file(&path).expect("removes");
    fs::write(path, object).expect("writes");
}

/// Each is done to a clean estate: corpus folder and repository of `case_0000`.
const CHANGES: &[(&str, Change, &[&str])] = &[
    (
        "a tag on the host",
        |_, repository| drop(git(repository, &["tag", "v1", "main"])),
        &["verify.other-refs case_0000 other refs"],
    ),
    (
        "a stray branch",
        |_, repository| drop(git(repository, &["branch", "stray", "main"])),
        &["verify.refs case_0000 refs"],
    ),
    (
        "a branch that is gone",
        |_, repository| drop(git(repository, &["update-ref", "-d", "refs/heads/timestep-2"])),
        &["verify.refs case_0000 refs", "verify.branch case_0000 timestep-2"],
    ),
    (
        "a later page in an earlier branch",
        |_, repository| drop(git(repository, &["update-ref", "refs/heads/timestep-2", "timestep-4"])),
        &["verify.refs case_0000 refs", "verify.branch case_0000 timestep-2"],
    ),
    (
        "history on the host, and a lock that says so",
        |root, repository| {
            let commit = |message: &str| {
                let who = ["-c", "user.name=x", "-c", "user.email=x@x"];
                let words = ["commit-tree", "-p", "timestep-2", "-m", message, "timestep-2^{tree}"];
                git(repository, &[&who[..], &words[..]].concat()).unwrap_or_default().trim().to_owned()
            };
            let id = commit("one more");
            drop(git(repository, &["update-ref", "refs/heads/timestep-2", &id]));
            edit_lock(root, |lock| lock["cases"]["case_0000"]["refs"]["timestep-2"] = id.clone().into());
        },
        &["verify.ids case_0000 refs", "verify.objects case_0000 objects"],
    ),
    (
        "a head that names another branch",
        |_, repository| drop(git(repository, &["symbolic-ref", "HEAD", "refs/heads/timestep-2"])),
        &["verify.head case_0000 HEAD"],
    ),
    (
        "an object that belongs to nothing",
        |root, repository| {
            let stray = root.join(".stray");
            fs::write(&stray, "later").expect("writes");
            drop(git(repository, &["hash-object", "-w", &stray.display().to_string()]));
        },
        &["verify.objects case_0000 objects"],
    ),
    (
        "a repository that is gone",
        |_, repository| fs::remove_dir_all(repository).expect("removes"),
        &["verify.clone case_0000 clone"],
    ),
    (
        "a damaged pack",
        |_, repository| {
            for entry in fs::read_dir(repository.join("objects/pack")).expect("lists") {
                let path = entry.expect("entry").path();
                if path.extension().is_some_and(|extension| extension == "pack") {
                    let mut bytes = fs::read(&path).expect("reads");
                    let middle = bytes.len() / 2;
                    bytes[middle..middle + 40].fill(0);
                    fs::write(path, bytes).expect("writes");
                }
            }
        },
        &["verify.clone case_0000 clone"],
    ),
    (
        "a pack whose digest is another",
        |_, repository| damage_end(repository, "pack"),
        &["verify.clone case_0000 clone"],
    ),
    (
        "an index whose digest is another",
        |_, repository| damage_end(repository, "idx"),
        &["verify.clone case_0000 clone"],
    ),
    (
        "a format that git does not know",
        |_, repository| {
            let text = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tfoo = bar\n";
            fs::write(repository.join("config"), text).expect("writes");
        },
        &["verify.clone case_0000 clone"],
    ),
    (
        "branches that are hidden from clones",
        |_, repository| {
            drop(git(repository, &["config", "uploadpack.hideRefs", "refs/heads/timestep-2"]));
        },
        &["verify.clone case_0000 clone"],
    ),
    ("a pipe as HEAD", |_, repository| pipe(&repository.join("HEAD")), &["verify.clone case_0000 clone"]),
    ("a pipe as packed-refs", |_, repository| pipe(&repository.join("packed-refs")), &["verify.clone case_0000 clone"]),
    ("a pipe as config", |_, repository| pipe(&repository.join("config")), &["verify.clone case_0000 clone"]),
    ("a pipe as a branch", |_, repository| pipe(&repository.join("refs/heads/x")), &["verify.clone case_0000 clone"]),
    (
        "an object that claims a gigabyte",
        |_, repository| claim_a_gigabyte(repository),
        &["verify.clone case_0000 clone"],
    ),
    (
        "a page edited after the scaffold",
        |root, _| {
            for timestep in [2, 4, 6] {
                let page = format!("train/cases/case_0000/timestep-{timestep}/pages/page_0002.md");
                fs::write(root.join(page), "edited\n").expect("writes");
            }
        },
        &[
            "verify.ids case_0000 refs",
            "verify.clone case_0000 clone",
            "verify.branch case_0000 main",
            "verify.branch case_0000 timestep-2",
        ],
    ),
    (
        "a case that left the tree",
        |root, _| fs::remove_dir_all(root.join("train/cases/case_0000")).expect("removes"),
        &["verify.lock (corpus) lock"],
    ),
    (
        "a case in the other split",
        |root, _| {
            fs::create_dir_all(root.join("eval/cases")).expect("creates");
            fs::rename(root.join("train/cases/case_0000"), root.join("eval/cases/case_0000")).expect("moves");
        },
        &["verify.split case_0000 split"],
    ),
    (
        "a prompt that the lock does not have",
        |root, _| fs::remove_file(root.join("train/cases/case_0000/timestep-4/prompts.yaml")).expect("removes"),
        &["verify.lock-case case_0000 lock"],
    ),
    (
        "an address that the lock does not have",
        |root, _| {
            edit_lock(root, |lock| lock["cases"]["case_0000"]["clone_url"] = "http://elsewhere.invalid/x.git".into());
        },
        &["verify.lock-case case_0000 lock"],
    ),
    (
        "another image in the lock",
        |root, _| edit_lock(root, |lock| lock["corpus"]["sandbox_image"] = "other".into()),
        &["verify.lock-corpus (corpus) lock"],
    ),
    (
        "a lock of nonsense",
        |root, _| {
            edit_lock(root, |lock| lock["cases"] = serde_json::json!({"case_0000": 7, "case_0001": {"refs": [null]}}));
        },
        &["verify.split case_0000 split", "verify.ids case_0000 refs", "verify.refs case_0001 refs"],
    ),
];

#[test]
fn every_change_is_found() {
    if git(Path::new("/"), &["--version"]).is_none() {
        return;
    }
    for (name, change, wanted) in CHANGES {
        let (root, base) = (synthetic(2), TempDir::new().expect("folder"));
        build(root.path(), base.path(), Recipe::Reference);
        change(root.path(), &base.path().join("gsj-staging/case_0000.git"));
        let found = failing(&look(root.path(), base.path()));
        for finding in *wanted {
            assert!(found.iter().any(|found| found == finding), "{name}: {finding} is not among {found:?}");
        }
        if !name.contains("nonsense") {
            assert!(found.iter().all(|found| !found.contains("case_0001")), "{name}: only what changed: {found:?}");
        }
    }
}

#[test]
fn changes_of_the_corpus_and_a_scaffold_end_clean() {
    let (root, base) = (synthetic(6), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let cases = root.path().join("train/cases");
    let step = |name: &str| {
        build(root.path(), base.path(), Recipe::Sealed);
        assert_eq!(failing(&look(root.path(), base.path())), Vec::<String>::new(), "{name}");
    };
    fs::remove_dir_all(cases.join("case_0000")).expect("removes");
    step("a case deleted");
    fs::rename(cases.join("case_0001"), root.path().join("eval/cases/case_0001")).expect("moves");
    step("a case moved between splits");
    fs::rename(cases.join("case_0002"), cases.join("case_new")).expect("renames");
    step("a case renamed");
    for timestep in [2, 4, 6] {
        fs::write(cases.join(format!("case_0003/timestep-{timestep}/pages/page_0001.md")), "x\n").expect("writes");
    }
    step("a page edited in every timestep");
    fs::remove_dir_all(cases.join("case_0003/timestep-6")).expect("removes");
    step("the last timestep gone");
    let homes: Vec<String> = fs::read_dir(base.path().join("gsj-staging"))
        .expect("lists")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!homes.iter().any(|name| name.contains("case_0000") || name.contains("case_0002")), "{homes:?}");
}

#[cfg(feature = "taskbank")]
mod bank {
    use super::*;
    use gsj_estate::taskbank;

    type Odd = fn(&Path);

    /// An estate with its bank.
    fn whole() -> (TempDir, TempDir) {
        let (root, base) = (synthetic(5), TempDir::new().expect("folder"));
        build(root.path(), base.path(), Recipe::Sealed);
        taskbank(&Corpus::read(root.path()).expect("passes"), false).expect("writes");
        (root, base)
    }

    fn failing(root: &TempDir, base: &TempDir) -> Vec<String> {
        look(root.path(), base.path())
            .failures()
            .map(|finding| format!("{}: {}", finding.rule, finding.detail))
            .collect()
    }

    #[test]
    fn a_bank_that_is_no_file_is_not_waited_for() {
        let (root, base) = whole();
        pipe(&root.path().join("taskbank.parquet"));
        let found = failing(&root, &base);
        assert!(found.iter().any(|found| found.contains("no regular file")), "{found:?}");
        fs::remove_file(root.path().join("taskbank.parquet")).expect("removes");
        std::os::unix::fs::symlink("/dev/zero", root.path().join("taskbank.parquet")).expect("links");
        let found = failing(&root, &base);
        assert!(
            found.iter().any(|found| found.contains("verify.taskbank: taskbank.parquet cannot be read")),
            "{found:?}"
        );
    }

    #[test]
    fn a_bank_of_one_split_takes_no_other_files_place() {
        let (root, base) = whole();
        let corpus = Corpus::read(root.path()).expect("passes").with_lock_dir(base.path().join("locks"));
        build_in(&corpus, base.path());
        let lock = base.path().join("locks/corpus.lock.json");
        let before = fs::read(&lock).expect("reads");
        let refused = gsj_estate::split_bank(&corpus, gsj_estate::Split::Eval, &lock).expect_err("it is no bank");
        assert!(refused.to_string().contains("no Parquet file"), "{refused}");
        assert!(fs::read(&lock).expect("reads") == before);
        let whole = base.path().join("locks/taskbank.parquet");
        let refused =
            gsj_estate::split_bank(&corpus, gsj_estate::Split::Eval, &whole).expect_err("the whole bank's place");
        assert!(matches!(refused, gsj_estate::EstateError::PartialBank { .. }), "{refused}");
        let own = base.path().join("eval.parquet");
        for changed in [true, false] {
            let made = gsj_estate::split_bank(&corpus, gsj_estate::Split::Eval, &own).expect("written");
            assert_eq!(made.changed, changed, "its own file it may replace");
        }
    }

    #[test]
    fn an_estate_with_its_bank_passes_whole() {
        let (root, base) = whole();
        assert_eq!(failing(&root, &base), Vec::<String>::new());
        let report = look(root.path(), base.path());
        let rows = report.findings.iter().find(|finding| finding.rule == "verify.taskbank-rows").expect("looked at");
        assert_eq!(rows.detail, "15 rows as the tree gives them");
    }

    #[test]
    fn a_bank_that_the_lock_vouches_for_and_the_tree_does_not_is_found() {
        let (root, base) = whole();
        let (other, _base) = whole();
        let settings = other.path().join("corpus.yaml");
        let text = fs::read_to_string(&settings).expect("reads").replace("harness:1", "harness:2");
        fs::write(&settings, text).expect("writes");
        fs::remove_dir_all(other.path().join("eval")).expect("removes");
        build(other.path(), &base.path().join("other"), Recipe::Sealed);
        taskbank(&Corpus::read(other.path()).expect("passes"), false).expect("writes");
        fs::copy(other.path().join("taskbank.parquet"), root.path().join("taskbank.parquet")).expect("copies");
        let block = json(&other.path().join("corpus.lock.json"))["taskbank"].clone();
        edit_lock(root.path(), |lock| lock["taskbank"] = block);
        let found = failing(&root, &base);
        assert_eq!(found.len(), 1, "{found:?}");
        for part in ["verify.taskbank-rows", "another sandbox_image", "rows: the lock has 12, the tree gives 15"] {
            assert!(found[0].contains(part), "{part}: {found:?}");
        }
    }

    #[test]
    fn odd_banks_and_blocks_are_findings() {
        let changes: [(&str, Odd); 5] = [
            ("cut", |root| fs::write(root.join("taskbank.parquet"), "PAR1").expect("writes")),
            ("gone", |root| fs::remove_file(root.join("taskbank.parquet")).expect("removes")),
            ("no block", |root| edit_lock(root, |lock| drop(lock.as_object_mut().expect("object").remove("taskbank")))),
            ("odd block", |root| edit_lock(root, |lock| lock["taskbank"] = serde_json::json!([1]))),
            ("a path", |root| edit_lock(root, |lock| lock["taskbank"]["path"] = "../../etc/passwd".into())),
        ];
        for (name, change) in changes {
            let (root, base) = whole();
            change(root.path());
            let found = failing(&root, &base);
            assert!(
                !found.is_empty() && found.iter().all(|found| found.starts_with("verify.taskbank")),
                "{name}: {found:?}"
            );
        }
    }
}
