//! Every timestep of every corpus at hand, cut out of what the scaffold made, with git as the oracle.

use crate::support::{bare, git, json, minimal, scratch, shared, snapshot};
use gsj_cutoff::{Cut, CutRequest, Expectation, audit, cut};
use gsj_estate::{Corpus, Recipe, ScaffoldOptions, scaffold};
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

/// Lines of the later pages that stand nowhere in the visible world.
fn later_lines(pages: &Path, whole: &Path, visible: &str) -> Vec<String> {
    let shown: BTreeSet<_> =
        std::fs::read_dir(pages).expect("lists").map(|page| page.expect("entry").file_name()).collect();
    let mut later = BTreeSet::new();
    for page in std::fs::read_dir(whole).expect("lists").map(|page| page.expect("entry")) {
        if !shown.contains(&page.file_name()) {
            let text = std::fs::read_to_string(page.path()).expect("text");
            later.extend(text.lines().map(str::trim).filter(|line| line.len() >= 24).map(str::to_owned));
        }
    }
    later.into_iter().filter(|line| !visible.contains(line.as_str())).collect()
}

/// Whatever in these bytes begins a zlib stream, inflated.
fn inflated(bytes: &[u8]) -> String {
    let mut inflate = gix::zlib::Decompress::new();
    let mut buffer = vec![0; 1 << 18];
    let mut out = String::new();
    for at in (0..bytes.len()).filter(|at| bytes[*at] & 0x0f == 8) {
        inflate.reset();
        if inflate.decompress(&bytes[at..], &mut buffer, gix::zlib::FlushDecompress::None).is_ok() {
            let length = usize::try_from(inflate.total_out()).expect("fits");
            out.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }
    out
}

/// Cuts every timestep under both recipes; gives how many were looked at and how many later lines were searched for.
fn cut_all(root: &Path) -> Option<(usize, usize)> {
    git(root, &["--version"])?;
    let corpus = Corpus::read(root).expect("passes");
    let (mut cuts, mut searched) = (0, 0);
    for recipe in [Recipe::Sealed, Recipe::Reference] {
        let base = scratch();
        let options = ScaffoldOptions::folder(base.path(), recipe);
        let built = scaffold(&corpus, &options).expect("scaffolds");
        for made in built.repos.iter().filter(|made| !made.full) {
            let timesteps: Vec<u32> = corpus.cases[&made.case_id].timesteps.keys().copied().collect();
            let folder = ["train", "eval"]
                .map(|split| root.join(split).join("cases").join(&made.case_id))
                .into_iter()
                .find(|folder| folder.is_dir())
                .expect("one split has the case");
            let pages = |timestep: u32| folder.join(format!("timestep-{timestep}/pages"));
            let last = *timesteps.last().expect("has timesteps");
            for timestep in timesteps {
                let branch = format!("timestep-{timestep}");
                let dest = base.path().join(format!("{}-{timestep}", made.case_id));
                let report = cut(&CutRequest::new(bare(made), Cut::Timestep(timestep), &dest)).expect("cuts");
                let oracle = |revision: &str| git(bare(made), &["rev-parse", revision]).expect("git").trim().to_owned();
                assert_eq!(report.evidence.commit, made.refs[&branch]);
                assert_eq!(report.evidence.commit, oracle(&branch));
                assert_eq!(report.evidence.tree, oracle(&format!("{branch}^{{tree}}")));
                let run = |arguments: &[&str]| git(&dest, arguments).expect("git");
                assert_eq!(run(&["fsck", "--full", "--strict", "--no-progress"]), "");
                assert_eq!(run(&["status", "--porcelain", "--ignored"]), "");
                assert_eq!(run(&["log", "--format=%H"]).trim(), report.evidence.commit);
                run(&["show", "HEAD"]);
                let from = match recipe {
                    Recipe::Sealed => bare(made).with_file_name(format!("{}.full.git", made.case_id)),
                    Recipe::Reference => bare(made).to_owned(),
                };
                let expectation =
                    Expectation { timestep: Some(timestep), forbid_from: Some(from), ..Expectation::default() };
                assert_eq!(audit(&dest, &expectation).expect("audits").leaks, []);

                let objects = run(&["cat-file", "--batch-all-objects", "--batch"]);
                let files = snapshot(&dest);
                let in_tree = |path: &Path| !path.starts_with(".git");
                let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
                let visible: String =
                    files.iter().filter(|(path, _)| in_tree(path)).map(|(_, content)| text(content)).collect();
                let later = later_lines(&pages(timestep), &pages(last), &visible);
                assert!(timestep == last || !later.is_empty(), "{}: later pages say something new", made.case_id);
                let everywhere: Vec<String> = std::iter::once(objects)
                    .chain(files.iter().map(|(_, content)| text(content)))
                    .chain(files.iter().filter(|(path, _)| !in_tree(path)).map(|(_, content)| inflated(content)))
                    .collect();
                for line in &later {
                    assert!(!everywhere.iter().any(|text| text.contains(line)), "{branch} holds a later line: {line}");
                }
                searched += later.len();
                cuts += 1;
            }
        }
    }
    Some((cuts, searched))
}

fn copied(from: &Path) -> TempDir {
    let root = scratch();
    for (path, content) in snapshot(from) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
        std::fs::write(path, content).expect("writes");
    }
    root
}

#[test]
fn nothing_later_is_in_any_cut_of_the_fixture_corpus() {
    let root = copied(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corpus"));
    if let Some((cuts, searched)) = cut_all(root.path()) {
        assert!(cuts >= 4 && searched > 20, "{cuts} cuts, {searched} lines");
    }
}

#[test]
fn nothing_later_is_in_any_cut_of_the_staging_corpus() {
    let Some(corpus) = shared("data/staging-corpus") else { return };
    let cut = cut_all(copied(&corpus).path());
    if let Some((cuts, searched)) = cut {
        assert!(cuts >= 18 && searched > 200, "{cuts} cuts, {searched} lines");
    }
}

#[test]
fn nothing_later_is_in_any_cut_of_the_minimal_corpus() {
    let Some(root) = minimal() else { return };
    assert!(cut_all(root.path()).is_none_or(|(cuts, _)| cuts >= 2));
}

#[test]
fn the_ids_of_the_vectors_are_those_of_the_cuts() {
    let (Some(corpus), Some(expected)) = (shared("data/staging-corpus"), shared("vectors/corpus/expected-git.json"))
    else {
        return;
    };
    let expected = json(&expected)["staging"].to_string();
    let root = copied(&corpus);
    let base = scratch();
    let corpus = Corpus::read(root.path()).expect("passes");
    let options = ScaffoldOptions::folder(base.path(), Recipe::Reference);
    for made in scaffold(&corpus, &options).expect("scaffolds").repos {
        for timestep in corpus.cases[&made.case_id].timesteps.keys() {
            let dest = base.path().join(format!("{}-{timestep}", made.case_id));
            let evidence = cut(&CutRequest::new(bare(&made), Cut::Timestep(*timestep), &dest)).expect("cuts").evidence;
            for id in [&evidence.commit, &evidence.tree] {
                assert!(
                    expected.contains(id.as_str()),
                    "{} at {timestep}: {id} is none of the vectors' ids",
                    made.case_id
                );
            }
        }
    }
}
