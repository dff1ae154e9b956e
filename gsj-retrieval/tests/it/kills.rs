//! What is left of an index when its build is killed, and what becomes of one that is damaged.

use crate::store::{corpus, names, open};
use gsj_retrieval::{CaseIndex, Library, Rebuild, Sources};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Where the child finds its folder.
const FOLDER: &str = "GSJ_TEST_BUILD_IN";
const CASES: [&str; 3] = ["alpha", "beta", "gamma"];
const QUERIES: [&str; 4] = ["heron", "crate 17 before", "SN-0000012", "after kestrel"];

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

/// Two states of a corpus, "before" and "after", which differ in every page of two cases.
fn two_states(root: &Path) {
    for state in ["before", "after"] {
        for case in CASES {
            let said = if case == "gamma" { "always" } else { state };
            let page = |number: usize| {
                let lines =
                    (0..12).map(|line| format!("A heron stood by crate {} {said}. SN-{number:07}.\n\n", number + line));
                lines.collect::<String>()
            };
            let pages: Vec<String> = (1..=24).map(page).collect();
            corpus(&root.join(state), case, &pages.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

fn stored(root: &Path, state: &str, rebuild: Rebuild) -> Option<Library> {
    Library::stored(&root.join("index"), Sources::Corpus(&root.join(state)), rebuild).ok().map(|(library, _)| library)
}

/// Every answer that the tests compare.
fn answers(library: &Library) -> String {
    let mut text = format!("{:?}", library.summary());
    for case in CASES {
        for query in QUERIES {
            write!(text, "{:?}", library.search_case(case, 20, query, 5).expect("served")).expect("memory");
        }
    }
    text
}

fn child(root: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["kills::the_child_that_is_killed_builds", "--exact"])
        .env(FOLDER, root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Not a test of its own: what [`child`] runs.
#[test]
fn the_child_that_is_killed_builds() {
    let Some(root) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    Library::stored(&root.join("index"), Sources::Corpus(&root.join("after")), Rebuild::IfStale).expect("built");
}

#[test]
fn a_build_that_is_killed_leaves_the_old_index_or_the_new_one_whole() {
    let rounds = if std::env::var_os("GSJ_TEST_ALL").is_some() { 100 } else { 12 };
    let root = tempfile::tempdir().expect("a folder");
    let root = root.path();
    two_states(root);
    let expected =
        ["before", "after"].map(|state| answers(&Library::from_corpus_dir(&root.join(state)).expect("valid")));
    let [before, after] = &expected;
    // The first is left alone: it tells about how long a build takes.
    let started = Instant::now();
    assert!(child(root).wait().expect("it ends").success());
    let mut whole = started.elapsed();
    let mut numbers = Numbers(7);
    let (mut old, mut new, mut none) = (0, 0, 0);
    for round in 0..rounds {
        fs::remove_dir_all(root.join("index")).expect("there");
        let there = (round % 4 > 0).then(|| stored(root, "before", Rebuild::IfStale).expect("built"));
        let mut child = child(root);
        std::thread::sleep(whole.mul_f64(numbers.below(1_000) as f64 / 1_000.0));
        drop(child.kill());
        child.wait().expect("it ends");
        // A service that runs on the old index does not notice.
        if let Some(library) = &there {
            assert_eq!(answers(library), *before);
        }
        match (stored(root, "before", Rebuild::Never), stored(root, "after", Rebuild::Never)) {
            (Some(library), None) => {
                assert_eq!(answers(&library), *before);
                old += 1;
                whole = whole.mul_f64(1.1);
            }
            (None, Some(library)) => {
                assert_eq!(answers(&library), *after);
                new += 1;
                // The moments are to lie on both sides of the switch.
                whole = whole.mul_f64(0.9);
            }
            (None, None) if there.is_none() => none += 1,
            _ => panic!("round {round}: neither the old index nor the new one, or both"),
        }
        // The next build takes what is there, and clears away what was left half.
        assert_eq!(answers(&stored(root, "after", Rebuild::IfStale).expect("built")), *after);
        assert_eq!(names(root).len(), CASES.len() + 2, "{:?}", names(root));
    }
    eprintln!("killed {rounds} builds: {old} left the old index, {new} the new one, {none} none");
}

/// One of the ways in which a file is damaged.
fn damage(path: &Path, numbers: &mut Numbers) -> String {
    let mut bytes = fs::read(path).expect("its bytes");
    let at = numbers.below(bytes.len().max(1));
    let what = match numbers.below(8) {
        0 => {
            bytes.truncate(at);
            "cut"
        }
        1 => {
            bytes.clear();
            "emptied"
        }
        2 => {
            bytes.push(b' ');
            "longer"
        }
        3 => {
            fs::remove_file(path).expect("there");
            return format!("{} removed", path.display());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
            "flipped"
        }
    };
    fs::write(path, bytes).expect("written");
    format!("{} {what} at {at}", path.display())
}

#[test]
fn a_damaged_index_is_an_error_or_built_anew_and_never_answers_otherwise() {
    let rounds = if std::env::var_os("GSJ_TEST_ALL").is_some() { 2_000 } else { 60 };
    let root = tempfile::tempdir().expect("a folder");
    let root = root.path();
    for case in CASES {
        corpus(
            &root.join("corpus"),
            case,
            &["A heron.", "Crate 17, before noon. SN-0000012.", "A kestrel, after all."],
        );
    }
    let answers = |library: &Library| {
        let mut text = format!("{:?}", library.summary());
        for query in QUERIES {
            write!(text, "{:?}", library.search_case("beta", 3, query, 5).expect("served")).expect("memory");
        }
        text
    };
    let expected = answers(&open(root, Rebuild::IfStale).expect("built").0);
    let mut numbers = Numbers(11);
    for _ in 0..rounds {
        let names = names(root);
        let name = names.get(numbers.below(names.len())).expect("one of them");
        let what = damage(&root.join("index").join(name), &mut numbers);
        if let Ok((library, _)) = open(root, Rebuild::Never) {
            assert_eq!(answers(&library), expected, "{what}");
        }
        let (library, _) = open(root, Rebuild::IfStale).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(answers(&library), expected, "{what}");
    }
}

/// Without the manifest's digest nothing says that a file is damaged; it must not bring anything down.
#[test]
fn a_damaged_file_that_is_opened_alone_brings_nothing_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("case");
    let pages: Vec<String> =
        (1..40).map(|number| format!("A heron stood by crate {number}. SN-{number:07}.")).collect();
    let whole = CaseIndex::build(&pages).expect("small").as_bytes().to_vec();
    let mut numbers = Numbers(13);
    for _ in 0..2_000 {
        let mut bytes = whole.clone();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = u8::try_from(numbers.below(256)).expect("a byte");
            }
        }
        // A file of its own each time: a mapped one never changes.
        drop(fs::remove_file(&path));
        fs::write(&path, bytes).expect("written");
        let Ok(index) = CaseIndex::open(&path) else { continue };
        for timestep in [1, 20, 39, 40] {
            let Some(view) = index.view(timestep) else { continue };
            for query in QUERIES {
                drop(view.search(query, 5));
                drop(view.explain(query, 2));
            }
        }
    }
}
