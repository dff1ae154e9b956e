//! Whatever stands in the folder: short findings, no waiting, no memory that grows with it, nothing from outside.

use crate::support::{laid, scratch};
use gsj_estate::{Report, validate};
use rustix::fs::{CWD, FileType, Mode};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use tempfile::TempDir;

const PAGES: &str = "train/cases/mill/timestep-1/pages";

fn corpus() -> TempDir {
    laid(&[
        (
            "corpus.yaml",
            "name: mill\nowner: team\nforgejo: {base_url: \"https://git.invalid\"}\n\
             git: {name: team, email: e@team.invalid, date: \"2026-03-01T10:00:00Z\"}\nsandbox_image: box\n",
        ),
        ("AGENTS.md", "Cite pages.\n"),
        ("skills/read/SKILL.md", "# Read\n"),
        ("train/cases/mill/timestep-1/pages/page_0001.md", "one\n"),
        ("eval/cases/orchard/timestep-1/pages/page_0001.md", "apples\n"),
    ])
}

fn rules(report: &Report) -> Vec<&str> {
    report.failures().map(|finding| finding.rule).collect()
}

fn length(report: &Report) -> usize {
    report.findings.iter().map(|finding| finding.to_string().len()).sum()
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("makes a pipe");
}

#[test]
fn a_hundred_thousand_files_make_few_findings() {
    let root = corpus();
    let folder = root.path().join(PAGES);
    for number in 0..100_000 {
        File::create(folder.join(format!("x{number}"))).expect("creates");
    }
    let report = validate(root.path());
    assert_eq!(report.failures().count(), 201);
    assert!(report.failures().all(|finding| finding.rule == "page.stray"));
    assert!(report.failures().last().expect("last").detail.contains("99800 more"));
    assert!(length(&report) < 40_000, "{}", length(&report));
}

#[test]
fn giant_numbers_are_counted_and_not_listed() {
    let root = corpus();
    let case = root.path().join("train/cases/mill");
    let names = [
        "timestep-3000000",
        "timestep-18446744073709551615",
        "timestep-18446744073709551616",
        &format!("timestep-{}", "9".repeat(200)),
    ];
    for name in names {
        fs::create_dir_all(case.join(name).join("pages")).expect("creates");
    }
    let report = validate(root.path());
    assert_eq!(rules(&report), ["page.census"; 4]);
    for (finding, name) in report.failures().zip(["3000000", "18446744073709551615", "18446744073709551616", "9999"]) {
        assert!(finding.detail.contains(&format!("1..{name}")), "{finding}");
    }
    assert!(length(&report) < 2_000, "{}", length(&report));
}

#[test]
fn bombs_in_yaml_are_refused_in_few_words() {
    let laughs = (1..30).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
        format!("{text}a{level}: &a{level} [{}]\n", format!("*a{},", level - 1).repeat(9))
    });
    let as_entries = format!("{laughs}prompts: *a29\n");
    let text = format!(
        "prompts:\n - &p {{id: \"free:a\", source: free, text: \"{}\"}}\n{}",
        "x".repeat(1 << 20),
        " - *p\n".repeat(100_000)
    );
    let nested = "[".repeat(1 << 20);
    let keys: String = (0..200_000).map(|number| format!("k{number}: 1\n")).collect();
    let digits = format!("prompts: {}\n", "9".repeat(1 << 20));
    let long = format!("prompts: [{}]\n", "1,".repeat(9 << 20));
    let tags = format!("prompts: {}x\n", "!a ".repeat(1 << 16));
    let questions = "? ".repeat(1 << 18);
    let braces = "{".repeat(1 << 18);
    let dashes = "- ".repeat(1 << 18);
    for bomb in [&laughs, &as_entries, &text, &nested, &keys, &digits, &long, &tags, &questions, &braces, &dashes] {
        let root = corpus();
        let case = root.path().join("train/cases/mill");
        fs::write(case.join("timestep-1/prompts.yaml"), bomb).expect("writes");
        fs::write(case.join("case.yaml"), bomb).expect("writes");
        let report = validate(root.path());
        assert!(!report.passed(), "{}", &bomb[..40]);
        assert!(length(&report) < 60_000, "{} for {}", length(&report), &bomb[..40]);
        assert!(report.findings.iter().all(|finding| finding.detail.len() < 1_000));
        fs::write(root.path().join("corpus.yaml"), bomb).expect("writes");
        assert!(!validate(root.path()).passed());
    }
}

#[test]
fn many_faulty_entries_make_few_findings() {
    let root = corpus();
    let text = format!("prompts:\n{}", "  - x\n".repeat(100_000));
    fs::write(root.path().join("train/cases/mill/timestep-1/prompts.yaml"), text).expect("writes");
    let report = validate(root.path());
    assert_eq!(report.failures().count(), 201);
    assert_eq!(report.failures().last().expect("last").detail, "and 99800 more of prompts.item-mapping");
}

#[test]
fn pipes_are_not_waited_for() {
    let places = [
        ("corpus.yaml", "yaml.missing"),
        ("AGENTS.md", "agents.missing"),
        ("skills/x", "skills.stray"),
        ("skills/read/SKILL.md", "skills.card-missing"),
        ("stray", "root.stray"),
        ("train/stray", "split.stray"),
        ("train/cases/stray", "split.cases-stray-file"),
        ("train/cases/mill/case.yaml", "case.stray"),
        ("train/cases/mill/timestep-2", "case.stray"),
        ("train/cases/mill/timestep-1/prompts.yaml", "ts.stray"),
    ];
    for (path, rule) in places {
        let root = corpus();
        let path = root.path().join(path);
        let _ = fs::remove_file(&path);
        pipe(&path);
        let report = validate(root.path());
        assert_eq!(rules(&report)[0], rule, "{report:?}");
        assert!(report.findings[0].ok || report.failures().next().is_some());
    }
    let root = corpus();
    let page = root.path().join(PAGES).join("page_0001.md");
    fs::remove_file(&page).expect("removes");
    pipe(&page);
    let report = validate(root.path());
    assert_eq!(rules(&report), ["page.stray", "page.census"]);
    assert!(report.failures().next().expect("one").detail.contains("a pipe"));
}

#[test]
fn links_are_not_followed() {
    let outside = scratch();
    fs::write(outside.path().join("page_0001.md"), "a secret of elsewhere").expect("writes");
    let secret = outside.path().join("page_0001.md");
    let links = [
        ("corpus.yaml", &*secret, "yaml.missing"),
        ("AGENTS.md", &secret, "agents.missing"),
        ("skills/read/SKILL.md", &secret, "skills.card-missing"),
        ("skills/out", outside.path(), "skills.stray"),
        ("train/cases/out", outside.path(), "case.id"),
        ("train/cases/mill/case.yaml", &secret, "case.stray"),
        ("train/cases/mill/timestep-2", outside.path(), "case.stray"),
        ("train/cases/mill/timestep-1/prompts.yaml", &secret, "ts.stray"),
        ("train/cases/mill/timestep-1/pages/page_0001.md", &secret, "page.stray"),
        ("train/cases/loop", Path::new("loop"), "case.id"),
        ("train/cases/mill/timestep-2", Path::new("."), "case.stray"),
        ("train/cases/mill/timestep-1/pages/page_0002.md", Path::new("page_0002.md"), "page.stray"),
        ("skills/loop", Path::new(".."), "skills.stray"),
        ("train/up", Path::new("../.."), "split.stray"),
    ];
    for (path, target, rule) in links {
        let root = corpus();
        let path = root.path().join(path);
        let _ = fs::remove_file(&path);
        symlink(target, &path).expect("links");
        let report = validate(root.path());
        assert_eq!(rules(&report).first(), Some(&rule), "{}: {report:?}", path.display());
        assert!(!format!("{report:?}").contains("a secret of elsewhere"));
    }
    let folders = [
        ("pages", "train/cases/mill/timestep-1/pages"),
        ("cases", "train/cases"),
        ("train", "train"),
        ("skills", "skills"),
    ];
    for (name, path) in folders {
        let root = corpus();
        let (path, moved) = (root.path().join(path), outside.path().join(name));
        fs::rename(&path, &moved).expect("moves");
        symlink(&moved, &path).expect("links");
        assert!(!validate(root.path()).passed(), "{name}");
    }
    let root = corpus();
    let link = outside.path().join("corpus");
    symlink(root.path(), &link).expect("links");
    assert!(validate(&link).passed(), "the corpus itself may be named by a link");
}

#[test]
fn huge_files_are_not_held() {
    let root = corpus();
    let grow = |path: &str, size: u64| {
        let file = File::options().append(true).create(true).open(root.path().join(path)).expect("opens");
        file.set_len(size).expect("grows, without taking room");
    };
    grow("train/cases/mill/timestep-1/pages/page_0001.md", 1 << 40);
    grow("train/cases/mill/timestep-1/prompts.yaml", 1 << 40);
    grow("train/cases/mill/case.yaml", 1 << 40);
    let report = validate(root.path());
    assert_eq!(rules(&report), ["case.meta-syntax", "page.utf8", "page.census", "prompts.syntax"]);
    assert_eq!(report.failures().nth(1).map(|finding| (finding.line, finding.column)), Some((Some(2), Some(1))));
    grow("AGENTS.md", 1 << 40);
    grow("skills/read/SKILL.md", 1 << 40);
    assert_eq!(rules(&validate(root.path())), ["agents.empty-or-utf8", "skills.card-empty-or-utf8"]);
    grow("corpus.yaml", 1 << 40);
    assert_eq!(rules(&validate(root.path())), ["yaml.syntax"]);
}

#[test]
fn long_pages_are_compared_too() {
    let root = corpus();
    let text = "Eine längere Seite.\n".repeat(100_000);
    fs::write(root.path().join(PAGES).join("page_0001.md"), &text).expect("writes");
    let later = root.path().join("train/cases/mill/timestep-2/pages");
    fs::create_dir_all(&later).expect("creates");
    fs::write(later.join("page_0001.md"), &text).expect("writes");
    fs::write(later.join("page_0002.md"), "two\n").expect("writes");
    assert_eq!(rules(&validate(root.path())), [""; 0]);
    fs::write(later.join("page_0001.md"), format!("{text}x")).expect("writes");
    assert_eq!(rules(&validate(root.path())), ["page.prefix"]);
}

#[test]
fn names_that_are_no_text_are_told() {
    let name = OsStr::from_bytes(b"a\xff\n\x1b[31m");
    let places = [
        ("", "root.stray"),
        ("skills", "skills.stray"),
        ("train", "split.stray"),
        ("train/cases", "split.cases-stray-file"),
        ("train/cases/mill", "case.stray"),
        ("train/cases/mill/timestep-1", "ts.stray"),
        (PAGES, "page.stray"),
    ];
    for (folder, rule) in places {
        let root = corpus();
        fs::write(root.path().join(folder).join(name), "x").expect("writes");
        let report = validate(root.path());
        assert_eq!(rules(&report), [rule]);
        let text = report.failures().next().expect("one").to_string();
        assert!(!text.contains(char::is_control), "no control characters reach a terminal: {text:?}");
    }
}

#[test]
fn nul_bytes_are_no_text() {
    for (path, rule) in [
        ("corpus.yaml", "yaml.syntax"),
        ("AGENTS.md", "agents.empty-or-utf8"),
        ("skills/read/SKILL.md", "skills.card-empty-or-utf8"),
        ("train/cases/mill/case.yaml", "case.meta-syntax"),
        ("train/cases/mill/timestep-1/prompts.yaml", "prompts.syntax"),
        ("train/cases/mill/timestep-1/pages/page_0001.md", "page.utf8"),
    ] {
        let root = corpus();
        fs::write(root.path().join(path), "a: b\n\0").expect("writes");
        let report = validate(root.path());
        assert_eq!(rules(&report)[0], rule);
        assert_eq!(
            report.failures().next().map(|finding| (finding.line, finding.column)),
            Some((Some(2), Some(1))),
            "{path}"
        );
    }
}

/// Runs on a thread that may not read what its user may not.
fn without_privileges<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let none = CapabilitySet::empty();
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
                .expect("drops");
            run()
        });
        thread.join().expect("ends well")
    })
}

#[test]
fn what_cannot_be_read_is_a_finding_and_the_rest_is_checked() {
    let root = corpus();
    let path = |below: &str| root.path().join(below);
    fs::write(path("train/cases/mill/timestep-1/prompts.yaml"), "prompts: []\n").expect("writes");
    fs::write(path("train/cases/mill/case.yaml"), "title: x\n").expect("writes");
    fs::create_dir_all(path("train/cases/closed/timestep-1")).expect("creates");
    fs::create_dir_all(path("train/cases/mill/timestep-3/pages")).expect("creates");
    fs::create_dir_all(path("train/cases/mill/timestep-2")).expect("creates");
    fs::create_dir_all(path("eval/cases/other")).expect("creates");
    let close = |below: &str, mode: u32| {
        fs::set_permissions(path(below), fs::Permissions::from_mode(mode)).expect("sets the mode");
    };
    let closed = [
        "train/cases/mill/timestep-1/pages/page_0001.md",
        "train/cases/mill/timestep-1/prompts.yaml",
        "train/cases/mill/case.yaml",
        "train/cases/mill/timestep-2",
        "train/cases/mill/timestep-3/pages",
        "train/cases/closed",
    ];
    closed.iter().for_each(|below| close(below, 0));
    let report = without_privileges(|| validate(root.path()));
    closed.iter().for_each(|below| close(below, 0o755));
    let told: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{} {} {} {}", f.rule, f.scope, f.where_, f.file.as_deref().unwrap_or("-")))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    io.unreadable closed (case) train/cases/closed
    io.unreadable mill case.yaml train/cases/mill/case.yaml
    io.unreadable mill timestep-1 train/cases/mill/timestep-1/pages/page_0001.md
    io.unreadable mill timestep-1 train/cases/mill/timestep-1/prompts.yaml
    io.unreadable mill timestep-2 train/cases/mill/timestep-2
    io.unreadable mill timestep-3 train/cases/mill/timestep-3/pages
    ts.pass orchard timestep-1 -
    case.no-timesteps other (case) eval/cases/other
    ");

    for below in ["skills/read/SKILL.md", "AGENTS.md", "corpus.yaml", "skills", "train/cases", "train", ""] {
        close(below, 0);
        let report = without_privileges(|| validate(root.path()));
        close(below, 0o755);
        let first = report.failures().next().expect("told");
        assert_eq!(first.rule, "io.unreadable", "{below}: {first}");
        assert!(first.detail.contains("ermission"), "{first}");
    }
}

/// What each change of the sound corpus is told as: the rule, a part of the words, and the place.
#[test]
fn faults_are_told_at_their_place_and_with_their_names() {
    const PROMPTS: &str = "train/cases/mill/timestep-1/prompts.yaml";
    let yaml = |more: &str| {
        format!(
            "name: mill\nowner: team\nforgejo: {{base_url: \"https://git.invalid\"}}\n\
             git: {{name: team, email: e@team.invalid, date: \"2026-03-01T10:00:00Z\"}}\nsandbox_image: box\n{more}"
        )
    };
    let long = format!("train/cases/{}/timestep-1/pages/page_0001.md", "x".repeat(238));
    type Row<'a> = (&'a str, Vec<u8>, &'a str, &'a str, Option<(usize, usize)>);
    let table: Vec<Row<'_>> = vec![
        (
            PROMPTS,
            b"prompts:\n  - {id: x, source: skill, name: read, more: 1}\n".into(),
            "prompts.keys",
            "`more`",
            Some((2, 40)),
        ),
        (PROMPTS, b"prompts: []\n1: x\n".into(), "prompts.shape", "the key `1`", Some((2, 1))),
        (
            "corpus.yaml",
            yaml("<<: {a: b}\n").into(),
            "yaml.unknown-key",
            "there is no key `<<`, which YAML 1.1 reads as a merge key and YAML 1.2 as text;",
            Some((6, 1)),
        ),
        ("corpus.yaml", yaml("mcp: null\n").into(), "yaml.mcp", "found a bare `null`", Some((6, 6))),
        ("corpus.yaml", yaml("mcp: {url_base: /}\n").into(), "yaml.mcp", "`/` has no scheme", Some((6, 17))),
        ("corpus.yaml", yaml("mcp: {url_base: \"ssh://h\"}\n").into(), "yaml.mcp", "another scheme", Some((6, 17))),
        ("corpus.yaml", format!("\u{feff}\u{feff}{}", yaml("")).into(), "yaml.syntax", "byte order mark", Some((1, 1))),
        (
            "corpus.yaml",
            [yaml("").replace('\n', "\r").as_bytes(), b"x: caf\xe9\r"].concat(),
            "yaml.utf8",
            "UTF-8",
            Some((6, 7)),
        ),
        (&long, b"one\n".into(), "case.id", "at most 237", None),
    ];
    for (path, content, rule, words, place) in table {
        let root = corpus();
        fs::create_dir_all(root.path().join(path).parent().expect("below")).expect("creates");
        fs::write(root.path().join(path), &content).expect("writes");
        let report = validate(root.path());
        let failures: Vec<_> = report.failures().collect();
        assert_eq!(rules(&report), [rule], "{}: {failures:?}", String::from_utf8_lossy(&content));
        assert!(failures[0].detail.contains(words), "{words}: {failures:?}");
        assert_eq!(failures[0].line.zip(failures[0].column), place, "{failures:?}");
    }
}

#[test]
fn pages_are_compared_across_a_timestep_that_lacks_them() {
    for middle in [&b""[..], b"\xff\n"] {
        let root = corpus();
        let case = root.path().join("train/cases/mill");
        for (timestep, page, text) in
            [(2, 2, &b"two\n"[..]), (3, 1, b"changed\n"), (3, 2, b"two\n"), (3, 3, b"three\n")]
        {
            let folder = case.join(format!("timestep-{timestep}/pages"));
            fs::create_dir_all(&folder).expect("creates");
            fs::write(folder.join(format!("page_000{page}.md")), text).expect("writes");
        }
        if !middle.is_empty() {
            fs::write(case.join("timestep-2/pages/page_0001.md"), middle).expect("writes");
        }
        let report = validate(root.path());
        let prefix = report.failures().find(|finding| finding.rule == "page.prefix").expect("all findings in one run");
        assert!(prefix.detail.contains("timestep-1 (") && prefix.detail.contains("timestep-3 ("), "{prefix}");
        assert!(report.failures().any(|finding| finding.rule == "page.census"));
    }
}
