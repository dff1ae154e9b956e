use crate::support::laid;
use gsj_estate::{EstateError, Watch, validate};
use std::fs;
use std::path::Path;

const CORPUS: &[(&str, &str)] = &[
    (
        "corpus.yaml",
        "name: mill\nowner: team\nforgejo: {base_url: \"https://git.invalid\"}\n\
         git: {name: team, email: e@team.invalid, date: \"2026-03-01T10:00:00Z\"}\nsandbox_image: box\n",
    ),
    ("AGENTS.md", "Cite pages.\n"),
    ("skills/read/SKILL.md", "# Read\n"),
    ("train/cases/mill/timestep-1/pages/page_0001.md", "one\n"),
    ("train/cases/mill/timestep-1/prompts.yaml", "prompts:\n  - {id: \"skill:read\", source: skill, name: read}\n"),
    ("eval/cases/orchard/timestep-1/pages/page_0001.md", "apples\n"),
];

/// What the watch finds after each change is what a validation from scratch finds.
#[test]
fn a_watch_finds_what_a_validation_finds() {
    let root = laid(CORPUS);
    let mut watch = Watch::new(root.path(), None);
    assert!(!watch.poll().expect("there").is_empty(), "at first everything is new");
    assert!(watch.validate().expect("there").passed());
    assert_eq!(watch.poll().expect("there"), [""; 0]);

    let write = |path: &'static str, text: &'static str| {
        move |root: &Path| {
            fs::create_dir_all(root.join(path).parent().expect("below")).expect("creates");
            fs::write(root.join(path), text).expect("writes");
        }
    };
    const PAGE: &str = "train/cases/mill/timestep-1/pages/page_0001.md";
    type Change = Box<dyn Fn(&Path)>;
    let changes: Vec<(Change, &[&str], bool)> = vec![
        (Box::new(write(PAGE, "a\0b\n")), &[PAGE], false),
        (Box::new(write(PAGE, "two\n")), &[PAGE], true),
        (Box::new(write("eval/cases/orchard/note", "x")), &["eval/cases/orchard/note"], false),
        (
            Box::new(|root| fs::remove_file(root.join("eval/cases/orchard/note")).expect("removes")),
            &["eval/cases/orchard/note"],
            true,
        ),
        // What a prompt of one place names goes from another.
        (
            Box::new(|root| fs::rename(root.join("skills/read"), root.join("skills/write")).expect("renames")),
            &["skills/read", "skills/read/SKILL.md", "skills/write", "skills/write/SKILL.md"],
            false,
        ),
        (
            Box::new(|root| fs::rename(root.join("skills/write"), root.join("skills/read")).expect("renames")),
            &["skills/read", "skills/read/SKILL.md", "skills/write", "skills/write/SKILL.md"],
            true,
        ),
        (Box::new(write("README.md", "x")), &["README.md"], false),
        (Box::new(|root| fs::remove_file(root.join("README.md")).expect("removes")), &["README.md"], true),
        (
            Box::new(|root| fs::rename(root.join("train/cases/mill"), root.join("eval/cases/mill")).expect("renames")),
            &[
                "eval/cases/mill",
                "eval/cases/mill/timestep-1",
                "eval/cases/mill/timestep-1/pages",
                "eval/cases/mill/timestep-1/pages/page_0001.md",
                "eval/cases/mill/timestep-1/prompts.yaml",
                "train/cases/mill",
                "train/cases/mill/timestep-1",
                "train/cases/mill/timestep-1/pages",
                "train/cases/mill/timestep-1/pages/page_0001.md",
                "train/cases/mill/timestep-1/prompts.yaml",
            ],
            true,
        ),
    ];
    for (change, paths, passes) in changes {
        change(root.path());
        assert_eq!(watch.poll().expect("there"), paths);
        let report = watch.validate().expect("there");
        assert_eq!(report, validate(root.path()));
        assert_eq!(report.passed(), passes, "{report:?}");
        assert_eq!(watch.poll().expect("there"), [""; 0], "a look changes nothing");
    }
    // What the pipeline writes is no change of the corpus.
    write("corpus.lock.json", "{}")(root.path());
    write(".git/index", "x")(root.path());
    assert_eq!(watch.poll().expect("there"), [""; 0]);
    drop(root);
    assert!(matches!(watch.poll(), Err(EstateError::NoCorpus { .. })));
}

#[test]
fn a_case_in_which_nothing_changed_is_not_read_again() {
    let root = laid(CORPUS);
    let mut watch = Watch::new(root.path(), Some(vec!["mill".into(), "orchard".into()]));
    watch.poll().expect("there");
    assert_eq!(watch.validate().expect("there").counts(), (2, 0));
    // Changed after the look, so not known to it.
    fs::write(root.path().join("eval/cases/orchard/timestep-1/pages/page_0001.md"), "\0").expect("writes");
    assert!(watch.validate().expect("there").passed());
    assert_eq!(watch.poll().expect("there").len(), 1);
    assert!(!watch.validate().expect("there").passed());
    let mut other = Watch::new(root.path(), Some(vec!["none".into()]));
    fs::write(root.path().join("eval/cases/orchard/timestep-1/pages/page_0001.md"), "x").expect("writes");
    assert!(matches!(other.validate(), Err(EstateError::UnknownCases { .. })));
}
