use crate::git::{Case, git, request, sentence, snapshot, there, write};
use gsj_cutoff::{CutoffError, checkout};
use std::path::Path;

#[test]
fn a_checkout_holds_one_commit_that_git_finds_clean_and_nothing_of_later_pages() {
    if !there() {
        return;
    }
    let case = Case::new();
    for timestep in 1..=4 {
        let branch = format!("timestep-{timestep}");
        let dest = case.root.path().join(format!("cut-{timestep}"));
        let evidence = checkout(&request(&case.bare(), &branch, timestep, &dest)).expect("checks out");

        assert_eq!(git(&dest, &["fsck", "--full", "--strict", "--no-progress"]), "");
        assert_eq!(git(&dest, &["status", "--porcelain", "--ignored"]), "", "the working tree is clean");
        assert_eq!(git(&dest, &["log", "--format=%H"]).trim(), evidence.commit);
        assert_eq!(git(&case.bare(), &["rev-parse", &branch]).trim(), evidence.commit);
        assert_eq!(git(&dest, &["rev-parse", "HEAD^{tree}"]).trim(), evidence.tree);
        assert_eq!(git(&dest, &["rev-parse", "--abbrev-ref", "HEAD"]).trim(), branch);
        assert_eq!(git(&dest, &["rev-parse", "--is-shallow-repository"]).trim(), "true");
        assert_eq!(git(&dest, &["remote"]), "");
        git(&dest, &["show", "HEAD"]);

        let mut ids: Vec<String> = git(&dest, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"])
            .lines()
            .map(str::to_owned)
            .collect();
        ids.sort();
        assert_eq!(evidence.objects.count, ids.len() as u64);
        for id in &ids {
            let content = git(&dest, &["cat-file", "-p", id]);
            for page in timestep + 1..=4 {
                assert!(!content.contains(&sentence(page)), "object {id} holds page {page}");
            }
        }
        for (path, _, content) in snapshot(&dest) {
            let text = String::from_utf8_lossy(&content).into_owned();
            for page in timestep + 1..=4 {
                assert!(!text.contains(&sentence(page)), "{} holds page {page}", path.display());
            }
            assert!(!text.contains("host.invalid"), "{} holds the address", path.display());
        }
    }
}

#[test]
fn the_evidence_has_exactly_the_fields_of_the_trace() {
    if !there() {
        return;
    }
    let case = Case::new();
    let dest = case.root.path().join("cut");
    let evidence = checkout(&request(&case.bare(), "timestep-2", 2, &dest)).expect("checks out");
    let value = serde_json::to_value(&evidence).expect("serializes");
    let keys: Vec<&str> = value.as_object().expect("object").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "clone_url",
            "case_id",
            "branch",
            "commit",
            "tree",
            "shallow",
            "commits",
            "remotes",
            "pages",
            "recipe",
            "objects",
            "skill_cards"
        ]
    );
    assert_eq!(value["clone_url"], "https://host.invalid/case.git", "no credentials");
    assert_eq!(value["branch"], "timestep-2");
    assert_eq!(value["pages"], serde_json::json!({"count": 2, "min": 1, "max": 2}));
    assert_eq!(
        (value["shallow"].as_bool(), value["commits"].as_u64(), value["remotes"].as_u64()),
        (Some(true), Some(1), Some(0))
    );
    assert_eq!(value["skill_cards"]["sum"].as_str().map(str::len), Some(64));
}

#[test]
fn the_same_cut_gives_the_same_bytes_whether_the_source_is_packed_or_loose() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (first, second) = (case.root.path().join("first"), case.root.path().join("second"));
    checkout(&request(&case.bare(), "timestep-3", 3, &first)).expect("checks out");
    git(&case.bare(), &["gc", "-q", "--aggressive"]);
    checkout(&request(&case.bare(), "timestep-3", 3, &second)).expect("checks out");
    assert_eq!(snapshot(&first), snapshot(&second));
}

#[test]
fn a_destination_with_anything_in_it_is_left_alone() {
    if !there() {
        return;
    }
    let case = Case::new();
    let dest = case.root.path().join("cut");
    write(&dest.join("mine.txt"), "mine");
    let before = snapshot(&dest);
    let error = checkout(&request(&case.bare(), "timestep-1", 1, &dest)).expect_err("not empty");
    assert!(matches!(error, CutoffError::Destination { .. }), "{error}");
    assert_eq!(snapshot(&dest), before);

    let link = case.root.path().join("link");
    std::os::unix::fs::symlink(case.root.path().join("elsewhere"), &link).expect("links");
    assert!(checkout(&request(&case.bare(), "timestep-1", 1, &link)).is_err());
}

#[test]
fn wrong_branches_and_wrong_pages_are_named() {
    if !there() {
        return;
    }
    let case = Case::new();
    let dest = case.root.path().join("cut");
    let error = checkout(&request(&case.bare(), "timestep-9", 9, &dest)).expect_err("no such branch");
    assert!(error.to_string().contains("timestep-1, timestep-2"), "names what is there: {error}");
    let error = checkout(&request(&case.bare(), "timestep-1", 2, &dest)).expect_err("branch of another timestep");
    assert!(matches!(error, CutoffError::BranchTimestep { .. }));

    // A branch that claims timestep 9 and holds four pages; then one that claims 2 and holds them all.
    git(&case.bare(), &["branch", "timestep-9", "timestep-4"]);
    let error = checkout(&request(&case.bare(), "timestep-9", 9, &dest)).expect_err("pages are missing");
    assert!(error.to_string().contains("first missing is 5"), "{error}");
    git(&case.bare(), &["branch", "-f", "timestep-2", "main"]);
    let error = checkout(&request(&case.bare(), "timestep-2", 2, &dest)).expect_err("later pages");
    assert!(error.to_string().contains("page 3"), "{error}");
    assert!(!dest.exists(), "nothing is left behind");
}

/// Puts a change on top of `timestep-4` and tries to check it out.
fn attempt(change: impl Fn(&Path)) -> CutoffError {
    let case = Case::new();
    let work = case.work();
    git(&work, &["checkout", "-q", "timestep-4"]);
    change(&work);
    git(&work, &["commit", "-q", "-m", "change"]);
    case.push("timestep-4");
    let dest = case.root.path().join("cut");
    let error = checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect_err("refused");
    assert!(!dest.exists(), "nothing is left behind");
    error
}

#[test]
fn hostile_trees_are_refused_with_the_name() {
    if !there() {
        return;
    }
    let link = |target: &'static str, name: &'static str| {
        move |work: &Path| {
            std::os::unix::fs::symlink(target, work.join(name)).expect("links");
            git(work, &["add", "-A", "-f"]);
        }
    };
    let entry = |name: &'static str| {
        move |work: &Path| {
            let blob = git(work, &["hash-object", "-w", "AGENTS.md"]);
            git(
                work,
                &[
                    "-c",
                    "core.protectNTFS=false",
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    &format!("100644,{},{name}", blob.trim()),
                ],
            );
        }
    };
    for (error, part) in [
        (attempt(link("/etc/passwd", "leak")), "leaves the tree"),
        (attempt(link("../../etc/passwd", "out/leak")), "leaves the tree"),
        (attempt(link(".git/config", "leak")), "refused name"),
        (attempt(entry("a\nb")), "control character"),
        (attempt(entry("agents.md")), "only by case"),
        (attempt(entry("git~1")), ".git"),
        (attempt(entry("md/notes.md")), "no page"),
        (attempt(entry("md/page_00005.md")), "no page"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_page_directory_that_is_a_link_is_refused() {
    if !there() {
        return;
    }
    let error = attempt(|work| {
        std::fs::rename(work.join("md"), work.join("pages")).expect("renames");
        std::os::unix::fs::symlink("pages", work.join("md")).expect("links");
        git(work, &["add", "-A"]);
    });
    assert!(matches!(error, CutoffError::Pages { .. }), "{error}");
}

#[test]
fn links_inside_the_tree_and_executables_are_kept() {
    if !there() {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let case = Case::new();
    let work = case.work();
    git(&work, &["checkout", "-q", "timestep-4"]);
    std::os::unix::fs::symlink("../AGENTS.md", work.join("out/rules.md")).expect("links");
    write(&work.join("run.sh"), "#!/bin/sh\n");
    std::fs::set_permissions(work.join("run.sh"), std::fs::Permissions::from_mode(0o700)).expect("sets");
    git(&work, &["add", "-A", "-f"]);
    git(&work, &["commit", "-q", "-m", "more"]);
    case.push("timestep-4");
    let dest = case.root.path().join("cut");
    checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect("checks out");
    let mode = |name: &str| std::fs::metadata(dest.join(name)).expect("is there").permissions().mode() & 0o7777;
    assert_eq!((mode("run.sh"), mode("AGENTS.md"), mode("md")), (0o755, 0o644, 0o755));
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
}
