//! `gsj estate validate`: the table, the lines of JSON, the exit codes, and the watch.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{gsj, output, send, text};

const FILES: &[(&str, &str)] = &[
    (
        "corpus.yaml",
        "name: mill\nowner: team\nforgejo: {base_url: \"https://git.invalid\"}\n\
         git: {name: Team, email: team@x.invalid, date: \"2026-03-01T10:00:00Z\"}\nsandbox_image: box\n",
    ),
    ("AGENTS.md", "Cite pages.\n"),
    ("skills/read/SKILL.md", "# Read\n"),
    ("train/cases/mill/timestep-1/pages/page_0001.md", "one\n"),
    ("train/cases/mill/timestep-2/pages/page_0001.md", "one\n"),
    ("train/cases/mill/timestep-2/pages/page_0002.md", "two\n"),
    ("eval/cases/orchard/timestep-1/pages/page_0001.md", "apples\n"),
    ("eval/cases/orchard/timestep-1/prompts.yaml", "prompts:\n  - {id: \"skill:read\", source: skill, name: read}\n"),
];

fn corpus() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        write(root.path(), path, text);
    }
    root
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn validate(root: &Path, more: &[&str]) -> Command {
    let mut command = gsj();
    command.args(["estate", "validate", "--corpus"]).arg(root).args(more);
    command
}

/// A watch that does not outlive its test.
struct Watching(Child);

impl Watching {
    fn start(command: &mut Command) -> (Self, impl Iterator<Item = String> + use<>) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        (Self(child), lines)
    }

    /// Sends a signal, and gives the exit code that comes of it.
    fn end(mut self, signal: Signal) -> Option<i32> {
        assert!(send(self.0.id(), signal));
        self.0.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_table_shows_every_finding_and_what_to_do() {
    let root = corpus();
    write(root.path(), "train/cases/mill/timestep-2/pages/page_0001.md", "one\r\n");
    write(root.path(), "train/cases/mill/timestep-2/pages/page_0003.md", "three\n");
    write(
        root.path(),
        "eval/cases/orchard/timestep-1/prompts.yaml",
        "prompts:\n  - {id: \"free:q\", source: free, text: 2026-01-01}\n",
    );
    let ran = output(&mut validate(root.path(), &["--format", "human"]));
    assert_eq!(ran.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(ran.stdout).unwrap(), @r#"
    validate
    case     split  where       result  detail
    mill     train  timestep-1  ok      1 page, 0 prompts
    mill     train  timestep-2  FAIL    page.census: pages must be 1..2: surplus 3  train/cases/mill/timestep-2/pages
    mill     train  timestep-2  FAIL    page.prefix: case mill page 1 is not the same in timestep-1 (2c8b08da5ce60398) and timestep-2 (5259d46a49644bf7); only the line ends differ, LF and CRLF  train/cases/mill/timestep-2/pages/page_0001.md:1:4
    orchard  eval   timestep-1  FAIL    prompts.text: prompts[0]: text must be a string that is not empty, found `2026-01-01`, which YAML 1.1 reads as a date and YAML 1.2 as text: put it in quotes  eval/cases/orchard/timestep-1/prompts.yaml:2:40

    what to do (docs/rules/ says why)
      page.census   add the missing pages, remove the surplus ones, or rename the timestep to the last
                    page's number
      page.prefix   make the page the same bytes in every timestep, line ends and the end of the file
                    included: copy it
      prompts.text  give text a string, in quotes where YAML could read it as something else

    FAIL: 1 passed, 3 failed
    "#);
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
}

#[test]
fn json_is_a_line_for_each_finding() {
    let root = corpus();
    write(root.path(), "train/cases/mill/timestep-1/pages/page_0001.md", "one\ncaf\u{e9}\0\n");
    let ran = output(&mut validate(root.path(), &["--format", "json"]));
    assert_eq!(ran.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(ran.stdout).unwrap(), @r#"
    {"rule":"page.utf8","scope":"mill","split":"train","where":"timestep-1","ok":false,"detail":"pages/page_0001.md holds a NUL byte, which is no text","file":"train/cases/mill/timestep-1/pages/page_0001.md","line":2,"column":5,"hint":"save the page as UTF-8 text; a byte order mark and CRLF are allowed and kept"}
    {"rule":"page.census","scope":"mill","split":"train","where":"timestep-1","ok":false,"detail":"pages must be 1..1: missing 1","file":"train/cases/mill/timestep-1/pages","line":null,"column":null,"hint":"add the missing pages, remove the surplus ones, or rename the timestep to the last page's number"}
    {"rule":"ts.pass","scope":"mill","split":"train","where":"timestep-2","ok":true,"detail":"2 pages, 0 prompts","file":null,"line":null,"column":null,"hint":null}
    {"rule":"ts.pass","scope":"orchard","split":"eval","where":"timestep-1","ok":true,"detail":"1 page, 1 prompt","file":null,"line":null,"column":null,"hint":null}
    "#);
    for id in ["orchard", "mill"] {
        let ran = output(&mut validate(root.path(), &["--format", "json", "--only", id]));
        assert_eq!(ran.status.code(), Some(i32::from(id == "mill")), "{}", text(&ran));
    }
    let ran = output(&mut validate(root.path(), &["--only", "mill", "orchard"]));
    assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), 4);
}

#[test]
fn no_folder_and_no_case_are_faults_of_the_call() {
    let root = corpus();
    let ran = output(&mut validate(root.path(), &["--only", "none"]));
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(text(&ran).contains("none"));
    for flags in [&[][..], &["--watch"], &["--only", "none"]] {
        let ran = output(&mut validate(&root.path().join("nowhere"), flags));
        assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
        assert!(text(&ran).contains("nowhere"));
    }
    write(root.path(), "stray", "x");
    let ran = output(&mut validate(root.path(), &["--only", "none"]));
    assert_eq!(ran.status.code(), Some(1), "a fault of the tree wins");
}

#[test]
fn a_watch_tells_what_changed_and_stops_on_interrupt() {
    let root = corpus();
    let page = "train/cases/mill/timestep-1/pages/page_0001.md";
    let (watching, mut lines) = Watching::start(&mut validate(root.path(), &["--watch", "--format", "human"]));
    let mut until = |words: &str| {
        let mut seen = Vec::new();
        for line in lines.by_ref() {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(words)) {
                return seen.join("\n");
            }
        }
        panic!("`{words}` never came: {seen:?}");
    };
    assert!(until("passed").ends_with("PASS: 3 passed, 0 failed"));
    write(root.path(), page, "two\n");
    let shown = until("passed");
    assert!(shown.contains(&format!("changed: {page}")), "{shown}");
    assert!(shown.contains("page.prefix") && shown.ends_with("FAIL: 2 passed, 1 failed"), "{shown}");
    write(root.path(), page, "one\n");
    assert!(until("passed").ends_with("PASS: 3 passed, 0 failed"));
    assert_eq!(watching.end(Signal::INT), Some(0), "the last verdict's");
}

#[test]
fn a_watch_for_tools_ends_each_run_with_a_line_of_its_own() {
    let root = corpus();
    write(root.path(), "stray", "x");
    let (watching, lines) = Watching::start(&mut validate(root.path(), &["--watch", "--format", "json"]));
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    assert_eq!(lines.next().unwrap()["rule"], "root.stray");
    assert_eq!(lines.next().unwrap()["changed"], serde_json::json!([]));
    write(root.path(), "other", "x");
    assert_eq!(lines.by_ref().take(2).filter(|line| line["rule"] == "root.stray").count(), 2);
    let end = lines.next().unwrap();
    let told = ["changed", "changed_count", "ok", "passed", "failed"].map(|key| end[key].to_string());
    assert_eq!(told, [r#"["other"]"#, "1", "false", "0", "2"]);
    assert_eq!(watching.end(Signal::TERM), Some(1), "the last verdict's");
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let root = corpus();
    let into = |path: &str| Stdio::from(fs::OpenOptions::new().write(true).open(path).unwrap());
    for more in [&["--format", "human"][..], &["--format", "json"], &["--help"]] {
        let ran = validate(root.path(), more).stdout(into("/dev/full")).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(ran.status.code(), Some(1), "{more:?}: {}", text(&ran));
    }
    let ran = validate(root.path(), &[]).stdout(into("/dev/full")).stderr(Stdio::piped()).output().unwrap();
    assert!(text(&ran).contains("error: the result cannot be written to standard output"), "{}", text(&ran));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = validate(root.path(), &[]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((ran.status.code(), text(&ran).trim()), (Some(1), ""), "who went away is told nothing");
    let nowhere = validate(Path::new("/nowhere"), &[]).stdout(into("/dev/full")).status().unwrap();
    assert_eq!(nowhere.code(), Some(2), "what went wrong before says more");
}

#[test]
fn a_watch_waits_for_a_folder_that_is_swapped() {
    let home = tempfile::tempdir().unwrap();
    let (root, aside) = (home.path().join("corpus"), home.path().join("aside"));
    for (path, text) in FILES {
        write(&root, path, text);
    }
    let (mut watching, mut lines) = Watching::start(&mut validate(&root, &["--watch", "--format", "human"]));
    let mut until = |words: &str| assert!(lines.by_ref().any(|line| line.contains(words)), "no {words:?} came");
    until("PASS: ");
    fs::rename(&root, &aside).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(watching.0.try_wait().unwrap(), None, "it goes on");
    fs::rename(&aside, &root).unwrap();
    until("PASS: ");
    assert_eq!(watching.end(Signal::INT), Some(0));
}
