//! The git command as oracle, with nothing of the caller's environment, and a small case repository made by it.

use gsj_cutoff::CheckoutRequest;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Says loudly when the oracle is missing.
pub(crate) fn there() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: no git command here to compare with");
    }
    found
}

/// Runs git in a directory and gives its standard output.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = command(dir, arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@a.invalid")
        .env("GIT_AUTHOR_DATE", "1767225600 +0000")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@a.invalid")
        .env("GIT_COMMITTER_DATE", "1767225600 +0000")
        .env("LC_ALL", "C")
        .args(["-c", "safe.directory=*", "-c", "init.defaultBranch=main", "-C"])
        .arg(dir)
        .args(arguments);
    command
}

/// A case of four pages in the shape of the reference: `main` and, on top of it, `timestep-1..4`.
pub(crate) struct Case {
    pub(crate) root: TempDir,
}

impl Case {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("temporary folder");
        let work = root.path().join("work");
        std::fs::create_dir(&work).expect("creates");
        git(&work, &["init", "-q"]);
        for page in 1..=4 {
            write(&work.join(format!("md/page_000{page}.md")), &sentence(page));
        }
        write(&work.join("AGENTS.md"), "rules\n");
        write(&work.join(".gitignore"), ".pi/\nout/*\n!out/.gitkeep\n");
        write(&work.join("out/.gitkeep"), "");
        write(&work.join("skills/sum/SKILL.md"), "# sum\n");
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", "full"]);
        for timestep in 1..=4 {
            git(&work, &["checkout", "-q", "-b", &format!("timestep-{timestep}"), "main"]);
            for page in timestep + 1..=4 {
                git(&work, &["rm", "-q", &format!("md/page_000{page}.md")]);
            }
            git(&work, &["commit", "-q", "--allow-empty", "-m", &format!("timestep-{timestep}")]);
        }
        git(&work, &["checkout", "-q", "main"]);
        git(root.path(), &["clone", "-q", "--bare", "work", "case.git"]);
        Self { root }
    }

    pub(crate) fn bare(&self) -> PathBuf {
        self.root.path().join("case.git")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Pushes a branch of the working repository to the bare one.
    pub(crate) fn push(&self, branch: &str) {
        git(&self.work(), &["push", "-q", "-f", "../case.git", branch]);
    }
}

/// The one sentence that a page holds and no other page does.
pub(crate) fn sentence(page: u32) -> String {
    format!("## Page {page}\n\nThe unmistakable sentence number {page}.\n")
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
    std::fs::write(path, text).expect("writes");
}

/// The request for a timestep of [`Case`].
pub(crate) fn request<'a>(source: &'a Path, branch: &'a str, timestep: u32, dest: &'a Path) -> CheckoutRequest<'a> {
    CheckoutRequest {
        source,
        branch,
        case_id: "case",
        timestep,
        clone_url: "https://user:hunter2@host.invalid/case.git",
        recipe: "reference",
        dest,
    }
}

/// Every file below a folder: path, mode, and bytes or link target.
pub(crate) fn snapshot(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).expect("lists") {
            let path = entry.expect("entry").path();
            let found = std::fs::symlink_metadata(&path).expect("metadata");
            let content = if found.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if found.is_symlink() {
                std::fs::read_link(&path).expect("link").as_os_str().as_bytes().to_vec()
            } else {
                std::fs::read(&path).expect("reads")
            };
            files.push((path.strip_prefix(root).expect("below").to_owned(), found.permissions().mode(), content));
        }
    }
    files.sort();
    files
}

/// Runs git with bytes on its standard input and gives its standard output.
pub(crate) fn feed(dir: &Path, arguments: &[&str], input: &[u8]) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = command(dir, arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
    let mut stdin = child.stdin.take().expect("is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).expect("git reads"));
        child.wait_with_output().expect("git ends")
    });
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs git with variables beside the usual ones.
pub(crate) fn git_at(dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = command(dir, arguments).envs(variables.iter().copied()).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
