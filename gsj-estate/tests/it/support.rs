//! Corpora laid from the shared vectors, and git as oracle.

use base64::Engine as _;
use gsj_estate::{Corpus, Recipe, RepoMade, ScaffoldOptions, Scaffolded, scaffold};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Finds a file or folder of the shared data; says loudly when it is not there.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("SKIPPED: {} is not there", found.display());
    None
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON")
}

/// A folder for a while: in memory where the machine has such a place, as many small files are slow to make elsewhere.
pub(crate) fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("temporary folder")
}

/// The minimal corpus of the vectors, in a folder of its own.
pub(crate) fn minimal() -> Option<TempDir> {
    let document = json(&shared("vectors/corpus/minimal-corpus.json")?);
    let root = scratch();
    apply(root.path(), &document["ops"]);
    Some(root)
}

/// A folder of these files.
pub(crate) fn laid(files: &[(&str, &str)]) -> TempDir {
    let root = scratch();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("creates");
        fs::write(path, text).expect("writes");
    }
    root
}

/// Applies the file operations of a vector.
pub(crate) fn apply(root: &Path, operations: &Value) {
    for operation in operations.as_array().expect("a list of operations") {
        let path = root.join(operation["path"].as_str().expect("path"));
        let parent = path.parent().expect("below the root");
        match operation["op"].as_str().expect("op") {
            "write" => {
                fs::create_dir_all(parent).expect("creates");
                let content = match operation.get("b64").and_then(Value::as_str) {
                    Some(text) => base64::engine::general_purpose::STANDARD.decode(text).expect("base64"),
                    None => operation["text"].as_str().expect("text").as_bytes().to_vec(),
                };
                fs::write(path, content).expect("writes");
            }
            "delete" if path.is_dir() && !path.is_symlink() => fs::remove_dir_all(path).expect("removes"),
            "delete" => fs::remove_file(path).expect("removes"),
            "mkdir" => fs::create_dir_all(path).expect("creates"),
            "symlink" => {
                fs::create_dir_all(parent).expect("creates");
                std::os::unix::fs::symlink(operation["target"].as_str().expect("target"), path).expect("links");
            }
            other => assert_eq!(other, "a known operation"),
        }
    }
}

/// Runs git with nothing of the caller's environment; `None` when there is no git.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .args(["-c", "safe.directory=*", "-C"])
        .arg(dir)
        .args(arguments)
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no git command here to compare with");
        return None;
    };
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The folder of a repository that was made in one.
pub(crate) fn bare(made: &RepoMade) -> &Path {
    made.path.as_deref().expect("its host is a folder")
}

/// Every file below a folder with its bytes, in order.
pub(crate) fn snapshot(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("lists") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let content = fs::read(&path).expect("reads");
                files.push((path.strip_prefix(root).expect("below").to_owned(), content));
            }
        }
    }
    files.sort();
    files
}

/// Builds a corpus into a folder.
pub(crate) fn build(root: &Path, base: &Path, recipe: Recipe) -> Scaffolded {
    let corpus = Corpus::read(root).expect("passes");
    scaffold(&corpus, &ScaffoldOptions::folder(base, recipe)).expect("scaffolds")
}

/// A corpus of our own: so many cases with the timesteps 2, 4 and 6, every fifth for evaluation.
pub(crate) fn synthetic(cases: usize) -> TempDir {
    let root = TempDir::new().expect("temporary folder");
    let write = |path: String, text: String| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("creates");
        fs::write(path, text).expect("writes");
    };
    write(
        "corpus.yaml".into(),
        "name: synthetic\nowner: gsj-staging\nforgejo:\n  base_url: http://git.invalid:3000\ngit:\n  name: maker\n  email: \
         e@x.invalid\n  date: \"2026-01-01T00:00:00 +0000\"\nsandbox_image: registry.invalid/harness:1\n"
            .into(),
    );
    write("AGENTS.md".into(), "Read the pages.\n".into());
    write("skills/summarize/SKILL.md".into(), "Summarise the case.\n".into());
    for number in 0..cases {
        let split = if number % 5 == 4 { "eval" } else { "train" };
        for timestep in [2, 4, 6] {
            let folder = format!("{split}/cases/case_{number:04}/timestep-{timestep}");
            for page in 1..=timestep {
                let text = format!("Page {page} of case {number}: the mill, the lock house and the tar yard.\n");
                write(format!("{folder}/pages/page_{page:04}.md"), text.repeat(20));
            }
            let prompts = "prompts:\n  - {id: \"skill:summarize\", source: skill, name: summarize}\n";
            write(format!("{folder}/prompts.yaml"), prompts.into());
        }
    }
    root
}

/// Runs one test of this program in a process of its own.
pub(crate) fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--ignored", "--quiet", "--test-threads=1"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}
