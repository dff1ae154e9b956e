//! The contract of `corpus.md` sections 2 to 6, rule by rule: what keeps it and what breaks it.

use crate::support::laid;
use gsj_estate::{Report, validate, validate_only};
use std::path::Path;

/// A corpus with one of everything.
const BASE: &[(&str, &str)] = &[
    (
        "corpus.yaml",
        "name: mill-corpus\nowner: data-team.2\nforgejo:\n  base_url: https://git.invalid:3000/\ngit:\n  name: Data Team\n  \
         email: data@team.invalid\n  date: \"2026-03-01T10:00:00 +0100\"\nsandbox_image: registry.invalid/box:2\n",
    ),
    ("AGENTS.md", "Cite pages.\n"),
    ("skills/read/SKILL.md", "# Read\n"),
    ("train/cases/mill/case.yaml", "title: The mill\n"),
    ("train/cases/mill/timestep-2/pages/page_0001.md", "one\n"),
    ("train/cases/mill/timestep-2/pages/page_0002.md", "two\n"),
    ("train/cases/mill/timestep-2/prompts.yaml", "prompts:\n  - {id: \"skill:read\", source: skill, name: read}\n"),
    ("train/cases/mill/timestep-3/pages/page_0001.md", "one\n"),
    ("train/cases/mill/timestep-3/pages/page_0002.md", "two\n"),
    ("train/cases/mill/timestep-3/pages/page_0003.md", "three\n"),
    ("eval/cases/orchard/timestep-1/pages/page_0001.md", "apples\n"),
];

const YAML: &str = "corpus.yaml";
const CASE: &str = "train/cases/mill/case.yaml";
const PROMPTS: &str = "train/cases/mill/timestep-2/prompts.yaml";
const PAGES: &str = "train/cases/mill/timestep-2/pages";

/// What is done to the corpus before it is validated.
enum Do<'a> {
    Write(&'a str, &'a str),
    Bytes(&'a str, &'a [u8]),
    /// In a file, one text for another.
    Put(&'a str, &'a str, &'a str),
    Gone(&'a str),
    Folder(&'a str),
    Link(&'a str, &'a str),
}
use Do::{Bytes, Folder, Gone, Link, Put, Write};

fn done(root: &Path, steps: &[Do<'_>]) {
    use std::fs;
    let below = |path: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("creates");
        path
    };
    for step in steps {
        match step {
            Write(path, text) => fs::write(below(path), text).expect("writes"),
            Bytes(path, bytes) => fs::write(below(path), bytes).expect("writes"),
            Put(path, old, new) => {
                let text = fs::read_to_string(root.join(path)).expect("reads");
                assert!(text.contains(old), "{path} holds {old}");
                fs::write(root.join(path), text.replace(old, new)).expect("writes");
            }
            Gone(path) if root.join(path).is_dir() => fs::remove_dir_all(root.join(path)).expect("removes"),
            Gone(path) => fs::remove_file(root.join(path)).expect("removes"),
            Folder(path) => fs::create_dir_all(root.join(path)).expect("creates"),
            Link(path, target) => std::os::unix::fs::symlink(target, below(path)).expect("links"),
        }
    }
}

/// `rule scope split where` of what fails, with the place in the file where there is one.
fn failures(report: &Report) -> Vec<String> {
    let told = |finding: &gsj_estate::Finding| {
        assert!(finding.hint.is_some_and(|hint| !hint.is_empty()), "{} has a hint", finding.rule);
        let at = match (finding.line, finding.column) {
            (Some(line), Some(column)) => format!(" {}:{line}:{column}", finding.file.as_deref().unwrap_or("?")),
            _ => String::new(),
        };
        format!("{} {} {} {}{at}", finding.rule, finding.scope, finding.split, finding.where_)
    };
    report.failures().map(told).collect()
}

/// Checks what fails, and that the words stand in what is said of it.
#[track_caller]
fn gives(steps: &[Do<'_>], wanted: &[&str], words: &[&str]) {
    let root = laid(BASE);
    done(root.path(), steps);
    let report = validate(root.path());
    assert_eq!(failures(&report), wanted, "{report:#?}");
    let details: String = report.failures().map(|finding| finding.detail.as_str()).collect::<Vec<_>>().join("\n");
    for word in words {
        assert!(details.contains(word), "`{word}` in: {details}");
    }
}

#[track_caller]
fn passes(steps: &[Do<'_>]) {
    gives(steps, &[], &[]);
}

#[test]
fn a_faultless_corpus_gives_a_finding_for_each_timestep() {
    let root = laid(BASE);
    let report = validate(root.path());
    let told: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{} {} {} {} {}", f.rule, f.scope, f.split, f.where_, f.detail))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    ts.pass mill train timestep-2 2 pages, 1 prompt
    ts.pass mill train timestep-3 3 pages, 0 prompts
    ts.pass orchard eval timestep-1 1 page, 0 prompts
    ");
}

#[test]
fn corpus_yaml_as_a_file() {
    let missing = &["yaml.missing (corpus) - corpus.yaml"];
    gives(&[Gone(YAML)], missing, &["corpus.yaml"]);
    gives(&[Gone(YAML), Folder(YAML)], missing, &["a directory"]);
    gives(&[Gone(YAML), Write(".real.yaml", "name: x\n"), Link(YAML, ".real.yaml")], missing, &["a symbolic link"]);
    // It ends the level: what else is wrong there is not looked at, but for the root's entries.
    gives(
        &[Gone(YAML), Gone("AGENTS.md"), Gone("skills"), Write("notes", "x")],
        &["yaml.missing (corpus) - corpus.yaml", "root.stray (corpus) - (root)"],
        &["notes"],
    );
    gives(&[Bytes(YAML, b"name: x\nowner: caf\xe9\n")], &["yaml.utf8 (corpus) - corpus.yaml corpus.yaml:2:11"], &[]);
    gives(&[Put(YAML, "git:", "git: [")], &["yaml.syntax (corpus) - corpus.yaml corpus.yaml:7:8"], &[]);
    gives(&[Write(YAML, "a: 1\n---\n")], &["yaml.syntax (corpus) - corpus.yaml corpus.yaml:2:1"], &["one document"]);
    let twice = &["yaml.syntax (corpus) - corpus.yaml corpus.yaml:10:1"];
    gives(&[Put(YAML, "box:2\n", "box:2\nname: b\n")], twice, &["`name` twice", "line 1"]);
    let inner = &["yaml.syntax (corpus) - corpus.yaml corpus.yaml:5:3"];
    gives(&[Put(YAML, "3000/\n", "3000/\n  base_url: http://x\n")], inner, &["base_url"]);
    for text in ["", "# nothing\n", "~\n", "just words\n", "- a\n"] {
        let root = laid(BASE);
        done(root.path(), &[Write(YAML, text)]);
        let report = validate(root.path());
        assert_eq!(report.failures().map(|finding| finding.rule).collect::<Vec<_>>(), ["yaml.not-mapping"], "{text:?}");
    }
    passes(&[Put(YAML, "name: mill", "\u{feff}name: mill")]);
    passes(&[Put(YAML, "\n", "\r\n")]);
    passes(&[Put(YAML, "name: mill-corpus", "---\nname: &n mill-corpus")]);
}

#[test]
fn keys_of_corpus_yaml() {
    let unknown = &["yaml.unknown-key (corpus) - corpus.yaml corpus.yaml:10:1"];
    gives(&[Put(YAML, "box:2\n", "box:2\nsplit: train\n")], unknown, &["split"]);
    gives(&[Put(YAML, "box:2\n", "box:2\n7: train\n")], unknown, &["7"]);
    gives(&[Put(YAML, "box:2\n", "box:2\non: train\n")], unknown, &["`on`", "the boolean true", "text"]);
    let retired = &["yaml.retired-split-key (corpus) - corpus.yaml corpus.yaml:10:1"];
    gives(
        &[Put(YAML, "box:2\n", "box:2\neval_case_ids: []\n")],
        retired,
        &["eval_case_ids", "eval/cases", "train/cases"],
    );

    let string = &["yaml.string-required (corpus) - corpus.yaml corpus.yaml:1:7"];
    for bare in ["yes", "off", "010", "1:30", "0o10", "2026-01-01", "1e3", "5", "true", "~", "''", "[a]", "{}"] {
        gives(&[Put(YAML, "mill-corpus", bare)], string, &["name"]);
    }
    gives(&[Put(YAML, "mill-corpus", "010")], string, &["the number 8", "the number 10", "quotes"]);
    passes(&[Put(YAML, "mill-corpus", "'010'")]);
    passes(&[Put(YAML, "mill-corpus", "!!str 2026-01-01")]);
    for key in ["name", "owner", "sandbox_image"] {
        let root = laid(BASE);
        let text = std::fs::read_to_string(root.path().join(YAML)).expect("reads");
        let without: String =
            text.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect();
        std::fs::write(root.path().join(YAML), without).expect("writes");
        let report = validate(root.path());
        assert_eq!(failures(&report), ["yaml.string-required (corpus) - corpus.yaml"], "{key}");
        assert!(report.findings[0].detail.contains(key));
    }
    gives(
        &[Put(YAML, "mill-corpus", "mill corpus")],
        &["yaml.name-token (corpus) - corpus.yaml corpus.yaml:1:7"],
        &["mill corpus"],
    );
    gives(
        &[Put(YAML, "mill-corpus", "\"mill\\n\"")],
        &["yaml.name-token (corpus) - corpus.yaml corpus.yaml:1:7"],
        &["mill\\n"],
    );
    gives(&[Put(YAML, "data-team.2", "../x")], &["yaml.owner (corpus) - corpus.yaml corpus.yaml:2:8"], &["../x"]);
    gives(&[Put(YAML, "data-team.2", ".x")], &["yaml.owner (corpus) - corpus.yaml corpus.yaml:2:8"], &[".x"]);
    passes(&[Put(YAML, "data-team.2", "gsj-prod")]);
}

#[test]
fn sections_of_corpus_yaml() {
    let at = |line: usize, column: usize| format!("yaml.forgejo (corpus) - corpus.yaml corpus.yaml:{line}:{column}");
    for url in [
        "git.invalid",
        "ftp://git.invalid",
        "https://",
        "\"https://a b\"",
        "https://u@git.invalid",
        "https://u:hunter2@git.invalid/x",
        "ssh://git@git.invalid/x",
        "git@git.invalid:x",
        "/srv/estate",
        "''",
        "7",
        "[https://a]",
    ] {
        gives(&[Put(YAML, "https://git.invalid:3000/", url)], &[&at(4, 13)], &["base_url"]);
    }
    let root = laid(BASE);
    done(root.path(), &[Put(YAML, "https://git.invalid:3000/", "ftp://u:hunter2@git.invalid")]);
    assert!(!format!("{:?}", validate(root.path())).contains("hunter2"), "a secret is not repeated");
    for url in ["http://git.invalid", "file:///srv/estate", "https://git.invalid/a@b", "https://[::1]:3000///"] {
        passes(&[Put(YAML, "https://git.invalid:3000/", url)]);
    }
    gives(
        &[Put(YAML, "  base_url: https://git.invalid:3000/\n", "  base_url: https://g\n  user: x\n")],
        &[&at(5, 3)],
        &["user"],
    );
    gives(&[Put(YAML, "\n  base_url: https://git.invalid:3000/", " https://g")], &[&at(3, 10)], &["base_url"]);
    gives(&[Put(YAML, "\n  base_url: https://git.invalid:3000/", "")], &[&at(3, 8)], &["base_url"]);

    let mcp = "yaml.mcp (corpus) - corpus.yaml corpus.yaml";
    for (text, place) in [("mcp:", "10:4"), ("mcp: x", "10:6"), ("mcp: {}", "10:6"), ("mcp: {url_base: ''}", "10:17")] {
        gives(&[Put(YAML, "box:2\n", &format!("box:2\n{text}\n"))], &[&format!("{mcp}:{place}")], &["url_base"]);
    }
    gives(
        &[Put(YAML, "box:2\n", "box:2\nmcp: {url_base: 'http://u:p@m'}\n")],
        &[&format!("{mcp}:10:17")],
        &["user information"],
    );
    passes(&[Put(YAML, "box:2\n", "box:2\nmcp: {url_base: 'http://m.invalid/'}\n")]);

    let git =
        |line: usize| format!("yaml.git (corpus) - corpus.yaml corpus.yaml:{line}:{}", if line == 6 { 9 } else { 10 });
    for date in [
        "first of May",
        "2026-03-01",
        "\"2026-03-01T10:00:00\"",
        "\"1969-12-31T00:00:00 +0000\"",
        "2026-03-01T10:00:00+01:00",
        "\"2026-02-30T00:00:00 +0000\"",
        "1767225600",
        "yesterday",
        "''",
    ] {
        let wanted = "yaml.git (corpus) - corpus.yaml corpus.yaml:8:9";
        gives(&[Put(YAML, "\"2026-03-01T10:00:00 +0100\"", date)], &[wanted], &["date"]);
    }
    for date in [
        "2026-03-01T10:00:00 +0100",
        "\"2026-03-01T10:00:00Z\"",
        "\"@1767225600 +0000\"",
        "\"Thu, 1 Jan 2026 00:00:00 +0000\"",
    ] {
        passes(&[Put(YAML, "\"2026-03-01T10:00:00 +0100\"", date)]);
    }
    for name in ["\"<>\"", "\".,;\"", "''", "~", "no"] {
        let root = laid(BASE);
        done(root.path(), &[Put(YAML, "Data Team", name)]);
        let report = validate(root.path());
        // Full stops are none of what git 2.47 cuts.
        let wanted: Vec<String> = if name == "\".,;\"" { Vec::new() } else { vec![git(6)] };
        assert_eq!(failures(&report), wanted, "{name}");
    }
    gives(&[Put(YAML, "data@team.invalid", "~")], &[&git(7)], &["email", "null"]);
    gives(
        &[Put(YAML, "  email: data@team.invalid\n", "")],
        &["yaml.git (corpus) - corpus.yaml corpus.yaml:6:3"],
        &["git.email"],
    );
    let root = laid(BASE);
    done(root.path(), &[Put(YAML, "Data Team", "\" Data: Team,\"")]);
    let report = validate(root.path());
    let told = report.findings.iter().find(|finding| finding.rule == "yaml.git").expect("told");
    assert!(told.ok && told.hint.is_none() && told.detail.contains("`Data: Team`"), "{told:?}");
}

#[test]
fn agents_and_skills() {
    let missing = &["agents.missing (corpus) - AGENTS.md"];
    gives(&[Gone("AGENTS.md")], missing, &["AGENTS.md"]);
    gives(&[Gone("AGENTS.md"), Link("AGENTS.md", "skills/read/SKILL.md")], missing, &["symbolic link"]);
    gives(&[Write("AGENTS.md", "")], &["agents.empty-or-utf8 (corpus) - AGENTS.md"], &["empty"]);
    gives(&[Bytes("AGENTS.md", b"a\n\xff")], &["agents.empty-or-utf8 (corpus) - AGENTS.md AGENTS.md:2:1"], &["UTF-8"]);
    gives(&[Write("AGENTS.md", "a\0")], &["agents.empty-or-utf8 (corpus) - AGENTS.md AGENTS.md:1:2"], &["NUL"]);
    passes(&[Write("AGENTS.md", "\u{feff}x\r\n")]);

    gives(&[Gone("skills")], &["skills.missing (corpus) - skills/"], &["skills"]);
    gives(&[Gone("skills"), Link("skills", "train")], &["skills.missing (corpus) - skills/"], &["symbolic link"]);
    gives(&[Write("skills/a.md", "x")], &["skills.stray (corpus) - skills/"], &["a.md"]);
    gives(&[Link("skills/copy", "read")], &["skills.stray (corpus) - skills/"], &["copy"]);
    gives(&[Write("skills/a b/SKILL.md", "x")], &["skills.name-token (corpus) - skills/"], &["a b"]);
    gives(&[Write("skills/-a/SKILL.md", "x")], &["skills.name-token (corpus) - skills/"], &["-a"]);
    gives(&[Folder("skills/a")], &["skills.card-missing (corpus) - skills/"], &["skills/a"]);
    gives(&[Folder("skills/a/SKILL.md")], &["skills.card-missing (corpus) - skills/"], &["skills/a", "directory"]);
    gives(
        &[Link("skills/a/SKILL.md", "../read/SKILL.md")],
        &["skills.card-missing (corpus) - skills/"],
        &["symbolic link"],
    );
    gives(&[Write("skills/a/SKILL.md", "")], &["skills.card-empty-or-utf8 (corpus) - skills/"], &["skills/a"]);
    gives(
        &[Bytes("skills/a/SKILL.md", b"\xc0\xaf")],
        &["skills.card-empty-or-utf8 (corpus) - skills/ skills/a/SKILL.md:1:1"],
        &["skills/a"],
    );
    gives(
        &[Write("skills/b", "x"), Write("skills/a.md", "x"), Folder("skills/B")],
        &[
            "skills.card-missing (corpus) - skills/",
            "skills.stray (corpus) - skills/",
            "skills.stray (corpus) - skills/",
        ],
        &["skills/B", "skills/a.md", "skills/b"],
    );
    passes(&[Write("skills/A.b_c-9/SKILL.md", "x"), Bytes("skills/read/data.bin", b"\xff\0")]);
    passes(&[Gone("skills"), Folder("skills"), Write(PROMPTS, "prompts: []\n")]);
}

#[test]
fn the_roots_entries() {
    passes(&[
        Write(".git/config", "x"),
        Write(".DS_Store", "x"),
        Link(".link", "/"),
        Write("corpus.lock.json", "{"),
        Write("taskbank.parquet", ""),
    ]);
    gives(&[Write("README.md", "x"), Folder("test")], &["root.stray (corpus) - (root)"; 2], &["README.md", "test"]);
    gives(&[Write("cases/mill/x", "x")], &["root.pre-split-cases (corpus) - cases/"], &["train/cases", "eval/cases"]);
    gives(&[Write("cases", "x")], &["root.stray (corpus) - (root)"], &["cases"]);
    gives(&[Gone("eval"), Link("eval", "train")], &["root.split-not-dir (corpus) - eval"], &["eval", "symbolic link"]);
    gives(&[Gone("train"), Write("train", "x")], &["root.split-not-dir (corpus) - train"], &["train"]);
    gives(&[Folder("corpus.lock.json")], &["root.generated-is-dir (corpus) - corpus.lock.json"], &["corpus.lock.json"]);
    // A broken level means that no case is looked at.
    gives(&[Write("x", ""), Gone(&format!("{PAGES}/page_0001.md"))], &["root.stray (corpus) - (root)"], &["x"]);
}

#[test]
fn splits() {
    passes(&[Gone("eval")]);
    passes(&[Gone("train")]);
    passes(&[Gone("eval"), Folder("eval/cases")]);
    gives(&[Gone("eval"), Gone("train")], &["split.none (corpus) - train/eval"], &["train/cases", "eval/cases"]);
    gives(&[Gone("eval"), Gone("train"), Folder("eval/cases")], &["split.no-cases (corpus) - cases"], &[]);
    gives(&[Write("eval/.keep", "")], &["split.stray (corpus) eval eval/"], &[".keep"]);
    gives(&[Folder("eval/orchard")], &["split.stray (corpus) eval eval/"], &["orchard"]);
    gives(&[Gone("eval"), Folder("eval")], &["split.cases-missing (corpus) eval eval/cases/"], &["eval/cases"]);
    gives(
        &[Gone("eval"), Link("eval/cases", "../train/cases")],
        &["split.stray (corpus) eval eval/", "split.cases-missing (corpus) eval eval/cases/"],
        &["symbolic link"],
    );
    gives(&[Write("train/cases/.gitkeep", "")], &["split.cases-stray-file (corpus) train train/cases/"], &[".gitkeep"]);
    // Faults of a split do not keep the cases from being looked at.
    gives(
        &[Write("train/x", ""), Gone(&format!("{PAGES}/page_0001.md"))],
        &["split.stray (corpus) train train/", "page.census mill train timestep-2"],
        &[],
    );
}

#[test]
fn cases() {
    gives(
        &[Write("eval/cases/mill/timestep-1/pages/page_0001.md", "one\n")],
        &["case.both-splits mill eval (case)"],
        &["mill"],
    );
    for id in ["Mill", "_mill", "-mill", "mill.2", "mühle", "mill ", ".mill"] {
        let path = format!("train/cases/{id}/timestep-1/pages/page_0001.md");
        gives(
            &[Write(&path, "x"), Folder(&format!("train/cases/{id}/junk"))],
            &[&format!("case.id {id} train (case)")],
            &[id],
        );
    }
    gives(&[Folder("train/cases/mill\n")], &["case.id mill\n train (case)"], &["mill\\n"]);
    gives(&[Link("eval/cases/copy", "../../train/cases/mill")], &["case.id copy eval (case)"], &["copy"]);
    gives(&[Link("eval/cases/dangling", "nowhere")], &["case.id dangling eval (case)"], &["dangling"]);
    for id in ["0", "mill-", "mill_2", "c1", "chroma"] {
        passes(&[Write(&format!("train/cases/{id}/timestep-1/pages/page_0001.md"), "x")]);
    }
    gives(&[Folder("train/cases/empty")], &["case.no-timesteps empty train (case)"], &["empty"]);
    gives(&[Write("train/cases/empty/case.yaml", "")], &["case.no-timesteps empty train (case)"], &["empty"]);
    for stray in [
        "timestep-0",
        "timestep-03",
        "timestep-",
        "timestep-2\n",
        "timestep-٣",
        "timestep-+3",
        "Timestep-3",
        "timestep-3 ",
    ] {
        let path = format!("train/cases/mill/{stray}/pages/page_0001.md");
        gives(&[Write(&path, "one\n")], &["case.stray mill train (case)"], &[&stray.replace('\n', "\\n")]);
    }
    for stray in ["notes.md", ".DS_Store", "case.yml", "timestep-4"] {
        gives(&[Write(&format!("train/cases/mill/{stray}"), "x")], &["case.stray mill train (case)"], &[stray]);
    }
    gives(&[Gone(CASE), Folder(CASE)], &["case.stray mill train (case)"], &["case.yaml"]);
    gives(
        &[Link("train/cases/mill/timestep-4", "timestep-3")],
        &["case.stray mill train (case)"],
        &["timestep-4", "symbolic link"],
    );
    gives(&[Gone(CASE), Link(CASE, "../../../AGENTS.md")], &["case.stray mill train (case)"], &["case.yaml"]);

    let meta = |rule: &str, place: &str| format!("case.meta-{rule} mill train case.yaml {CASE}:{place}");
    gives(&[Bytes(CASE, b"title: \xff\n")], &[&meta("utf8", "1:8")], &[]);
    gives(&[Write(CASE, "title: [\n")], &[&meta("syntax", "1:8")], &[]);
    gives(&[Write(CASE, "title: a\ntitle: b\n")], &[&meta("syntax", "2:1")], &["title"]);
    gives(&[Write(CASE, "- a\n")], &[&meta("shape", "1:1")], &[]);
    gives(&[Write(CASE, "title: 1984\n")], &[&meta("shape", "1:8")], &["title", "1984"]);
    gives(&[Write(CASE, "title: a\nnotes: no\n")], &[&meta("shape", "2:8")], &["notes", "the boolean false"]);
    gives(&[Write(CASE, "title: ~\nsplit: eval\n")], &[&meta("shape", "1:8"), &meta("shape", "2:1")], &["split"]);
    for text in ["", "# later\n", "notes: ''\n", "title: a\nnotes: |\n  b\n", "---\n", "{}\n"] {
        passes(&[Write(CASE, text)]);
    }
}

#[test]
fn timesteps_and_pages() {
    let step = "mill train timestep-2";
    for stray in ["prompts.yml", ".keep", "page_0001.md"] {
        let path = format!("train/cases/mill/timestep-2/{stray}");
        gives(&[Write(&path, "x")], &[&format!("ts.stray {step}")], &[stray]);
    }
    gives(&[Gone(PROMPTS), Folder(PROMPTS)], &[&format!("ts.stray {step}")], &["prompts.yaml"]);
    gives(&[Gone(PROMPTS), Link(PROMPTS, "/etc/passwd")], &[&format!("ts.stray {step}")], &["prompts.yaml"]);
    gives(&[Gone(PAGES)], &[&format!("ts.pages-missing {step}")], &["timestep-2", "pages"]);
    gives(
        &[Gone(PAGES), Link(PAGES, "../timestep-3/pages")],
        &[&format!("ts.stray {step}"), &format!("ts.pages-missing {step}")],
        &["pages"],
    );

    let stray = format!("page.stray {step}");
    for name in [
        "page_1.md",
        "page_00001.md",
        "page_0001.MD",
        "Page_0001.md",
        "page_0001.txt",
        "page_٠٠٠١.md",
        "page_0001.md\n",
        ".page_0001.md",
    ] {
        gives(&[Write(&format!("{PAGES}/{name}"), "one\n")], &[&stray], &[&name.replace('\n', "\\n")]);
    }
    gives(&[Folder(&format!("{PAGES}/page_0003.md"))], &[&stray], &["page_0003.md"]);
    gives(
        &[Gone(&format!("{PAGES}/page_0002.md")), Link(&format!("{PAGES}/page_0002.md"), "/etc/passwd")],
        &[&stray, &format!("page.census {step}")],
        &["page_0002.md", "symbolic link", "missing 2"],
    );

    let page = format!("{PAGES}/page_0002.md");
    let utf8 = |place: &str| format!("page.utf8 {step} {page}:{place}");
    let census = format!("page.census {step}");
    for (bytes, place) in [
        (&b"caf\xe9\n"[..], "1:4"),
        (b"a\n\xed\xa0\x80", "2:1"),
        (b"\xc0\xaf", "1:1"),
        (b"ok\xc3", "1:3"),
        (b"a\0b", "1:2"),
    ] {
        gives(&[Bytes(&page, bytes)], &[&utf8(place), &census], &["page_0002.md", "missing 2"]);
    }
    gives(&[Gone(&page)], &[&census], &["missing 2"]);
    gives(&[Write(&format!("{PAGES}/page_0003.md"), "three\n")], &[&census], &["surplus 3"]);
    gives(&[Write(&format!("{PAGES}/page_0000.md"), "x")], &[&census], &["surplus 0"]);
    gives(&[Gone(PAGES), Folder(PAGES)], &[&census], &["missing 1, 2"]);
    gives(
        &[Gone(&page), Write(&format!("{PAGES}/page_0007.md"), "x"), Write(&format!("{PAGES}/z"), "x")],
        &[&stray, &census],
        &["missing 2", "surplus 7"],
    );
    gives(
        &[Gone("eval"), Folder("eval/cases/big/timestep-9999/pages")],
        &["page.census big eval timestep-9999"],
        &["missing 1, 2, 3", "and 9979 more"],
    );
    passes(&[Write(&format!("{PAGES}/page_0001.md"), ""), Write("train/cases/mill/timestep-3/pages/page_0001.md", "")]);
}

#[test]
fn prefix_identity() {
    let prefix = |page: u32, place: &str| {
        format!("page.prefix mill train timestep-3 train/cases/mill/timestep-3/pages/page_000{page}.md:{place}")
    };
    let later = "train/cases/mill/timestep-3/pages";
    // SHA-256 of "one\n".
    let digest = "2c8b08da5ce60398";
    let root = laid(BASE);
    done(root.path(), &[Write(&format!("{later}/page_0001.md"), "One\n")]);
    let report = validate(root.path());
    assert_eq!(failures(&report), [prefix(1, "1:1")]);
    let detail = &report.failures().next().expect("one").detail;
    for word in ["mill", "page 1", "timestep-2", "timestep-3", digest] {
        assert!(detail.contains(word), "{word} in {detail}");
    }
    gives(&[Write(&format!("{later}/page_0002.md"), "two")], &[&prefix(2, "1:4")], &["page 2", "at the end"]);
    gives(&[Write(&format!("{later}/page_0002.md"), "two\r\n")], &[&prefix(2, "1:4")], &["line ends"]);
    gives(
        &[Write(&format!("{later}/page_0002.md"), "2\n"), Write(&format!("{later}/page_0001.md"), "1\n")],
        &[&prefix(1, "1:1"), &prefix(2, "1:1")],
        &[],
    );
    // A page that the later timestep lacks is left to the census, one that only it has is free.
    gives(&[Gone(&format!("{later}/page_0001.md"))], &["page.census mill train timestep-3"], &["missing 1"]);
    passes(&[Write(&format!("{later}/page_0003.md"), "drei\n")]);
    // Timesteps are compared by number, and each with its neighbour: 3 with 2, 10 with 3.
    let ten: Vec<String> =
        (1..=10).map(|page| format!("train/cases/mill/timestep-10/pages/page_{page:04}.md")).collect();
    let texts = ["one\n", "two\n", "drei\n", "", "", "", "", "", "", ""];
    let steps: Vec<Do<'_>> = ten.iter().zip(texts).map(|(path, text)| Write(path, text)).collect();
    let wanted = "page.prefix mill train timestep-10 train/cases/mill/timestep-10/pages/page_0003.md:1:1";
    gives(&steps, &[wanted], &["timestep-3", "timestep-10"]);
}

#[test]
fn prompts() {
    let rule = |rule: &str, place: &str| format!("prompts.{rule} mill train timestep-2 {PROMPTS}:{place}");
    gives(&[Bytes(PROMPTS, b"prompts: \xfe\n")], &[&rule("utf8", "1:10")], &[]);
    gives(&[Write(PROMPTS, "prompts: {\n")], &[&rule("syntax", "1:10")], &[]);
    gives(&[Write(PROMPTS, "prompts: []\nprompts: []\n")], &[&rule("syntax", "2:1")], &["prompts"]);
    for (text, place) in [
        ("- a\n", "1:1"),
        ("prompts:\n", "1:8"),
        ("prompts: ~\n", "1:10"),
        ("prompts: {a: b}\n", "1:10"),
        ("prompts: x\n", "1:10"),
        ("prompts: []\nmore: 1\n", "2:1"),
        ("tasks: []\n", "1:1"),
        ("x\n", "1:1"),
        ("{}\n", "1:1"),
    ] {
        gives(&[Write(PROMPTS, text)], &[&rule("shape", place)], &["prompts"]);
    }
    for text in ["", "# none\n", "prompts: []\n", "---\n", "~\n", "\u{feff}prompts: []\n"] {
        passes(&[Write(PROMPTS, text)]);
    }
    let free = "id: \"free:a\", source: free, text: \"Who?\"";
    for (entry, wanted, place, words) in [
        ("read", "item-mapping", "2:5", &["prompts[0]", "read"][..]),
        ("[a]", "item-mapping", "2:5", &["prompts[0]"]),
        ("{}", "source", "2:5", &["prompts[0]"]),
        ("{source: card, x: 1}", "source", "2:14", &["card"]),
        ("{source: no}", "source", "2:14", &["no"]),
        ("{source: skill, id: \"skill:read\"}", "keys", "2:5", &["name"]),
        ("{source: skill, id: \"skill:read\", name: read, text: x}", "keys", "2:51", &["text"]),
        ("{source: free, id: \"free:a\", name: read}", "keys", "2:34", &["name"]),
        ("{source: free, id: \"free:a\", text: x, 1: y}", "keys", "2:43", &["1"]),
        ("{source: free, text: x, id: 7}", "id-string", "2:33", &["7"]),
        ("{source: free, text: x, id: ''}", "id-string", "2:33", &["id"]),
        ("{source: free, text: x, id: on}", "id-string", "2:33", &["on"]),
        ("{source: skill, id: \"skill:read\", name: 5}", "skill-name", "2:45", &["5"]),
        ("{source: skill, id: \"skill:../x\", name: ../x}", "skill-name", "2:45", &["../x"]),
        ("{source: skill, id: \"skill:reed\", name: read}", "skill-id", "2:25", &["skill:reed", "skill:read"]),
        ("{source: skill, id: read, name: read}", "skill-id", "2:25", &["skill:read"]),
        ("{source: skill, id: \"skill:write\", name: write}", "skill-unresolved", "2:46", &["write"]),
        ("{source: free, id: x, text: ''}", "text", "2:33", &["prompts[0]"]),
        ("{source: free, id: \"free:a\", text: 2026-02-30}", "text", "2:40", &["2026-02-30", "a date"]),
        ("{source: free, id: \"free:a\", text: [a]}", "text", "2:40", &["prompts[0]"]),
        ("{source: free, id: \"free:a\", text: \"a\\0b\"}", "text", "2:40", &["NUL"]),
        ("{source: free, id: parties, text: x}", "free-id", "2:24", &["parties"]),
        ("{source: free, id: \"free:\", text: x}", "free-id", "2:24", &["free:"]),
        ("{source: free, id: \"free:a b\", text: x}", "free-id", "2:24", &["free:a b"]),
        ("{source: free, id: \"free:é\", text: x}", "free-id", "2:24", &["free:é"]),
        ("{source: free, id: \"skill:read\", text: x}", "free-id", "2:24", &["skill:read"]),
    ] {
        gives(&[Write(PROMPTS, &format!("prompts:\n  - {entry}\n"))], &[&rule(wanted, place)], words);
        // The rest is still checked.
        let more = format!("prompts:\n  - {entry}\n  - {{{free}}}\n  - {{{free}}}\n");
        gives(
            &[Write(PROMPTS, &more)],
            &[&rule(wanted, place), &rule("dup", "4:10")],
            &["prompts[2]", "free:a", "prompts[1]"],
        );
    }
    passes(&[Write(
        PROMPTS,
        &format!("prompts:\n  - {{{free}}}\n  - {{id: \"free:A.b_c-9\", source: free, text: \"\\t \"}}\n"),
    )]);
    let same =
        [PROMPTS, "train/cases/mill/timestep-3/prompts.yaml"].map(|path| (path, format!("prompts:\n  - {{{free}}}\n")));
    passes(&[Write(same[0].0, &same[0].1), Write(same[1].0, &same[1].1)]);
    passes(&[Write(
        PROMPTS,
        "prompts:\n  - &a {id: \"free:a\", source: free, text: &t \"Who?\"}\n  - {id: \"free:b\", source: free, text: *t}\n",
    )]);
}

#[test]
fn some_cases_only() {
    let root = laid(BASE);
    done(root.path(), &[Gone("eval/cases/orchard/timestep-1/pages/page_0001.md"), Folder("train/cases/Bad")]);
    let only = |ids: &[&str]| validate_only(root.path(), &ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    let report = only(&["mill"]).expect("known");
    assert_eq!((failures(&report), report.counts()), (vec![], (2, 0)));
    assert_eq!(failures(&only(&["orchard", "mill"]).expect("known")), ["page.census orchard eval timestep-1"]);
    assert!(only(&["none"]).expect_err("unknown").to_string().contains("none"));
    assert_eq!(failures(&only(&["orchard", "none"]).expect("a fault wins")).len(), 1);
    done(root.path(), &[Write("x", "")]);
    assert_eq!(failures(&only(&["none"]).expect("a fault wins")), ["root.stray (corpus) - (root)"]);
}
