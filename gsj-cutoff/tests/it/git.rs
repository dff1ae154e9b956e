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

/// Runs git with bytes on its standard input and gives its standard output, trimmed.
pub(crate) fn fed(dir: &Path, arguments: &[&str], input: &[u8]) -> String {
    feed(dir, arguments, input).trim().to_owned()
}

/// Makes a repository with a working tree in a temporary folder.
pub(crate) fn repository() -> (TempDir, PathBuf) {
    let root = TempDir::new().expect("temporary folder");
    let work = root.path().join("work");
    std::fs::create_dir(&work).expect("creates");
    git(&work, &["init", "-q"]);
    (root, work)
}

/// Writes a file, commits everything and gives the commit's id.
pub(crate) fn commit(work: &Path, file: &str, text: &str) -> String {
    write(&work.join(file), text);
    git(work, &["add", "-A"]);
    git(work, &["commit", "-q", "-m", file]);
    git(work, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// A commit for `git fast-import` that changes one file.
pub(crate) fn imported(
    branch: &str,
    mark: i64,
    seconds: i64,
    message: &str,
    from: &str,
    path: &str,
    text: &str,
) -> String {
    format!(
        "commit refs/heads/{branch}\nmark :{mark}\ncommitter c <c@c.invalid> {seconds} +0000\ndata \
         {}\n{message}\n{from}M 100644 inline {path}\ndata {}\n{text}\n",
        message.len() + 1,
        text.len()
    )
}

/// Copies a folder as an image is made of it.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
    assert!(status.success());
}

/// The first index of a pack in a checkout.
pub(crate) fn pack_index(dest: &Path) -> PathBuf {
    let listed = std::fs::read_dir(dest.join(".git/objects/pack")).expect("lists");
    let mut paths = listed.map(|entry| entry.expect("entry").path());
    paths.find(|path| path.extension().is_some_and(|it| it == "idx")).expect("one pack")
}

/// Writes a loose object with this content and gives its file.
pub(crate) fn write_loose(work: &Path, text: &str) -> PathBuf {
    loose_path(&work.join(".git"), &fed(work, &["hash-object", "-w", "--stdin"], text.as_bytes()))
}

/// Where the loose file of an object is.
pub(crate) fn loose_path(git_dir: &Path, id: &str) -> PathBuf {
    git_dir.join("objects").join(&id[..2]).join(&id[2..])
}

/// What became of a process that did something hostile.
pub(crate) struct Apart {
    /// What it said of how it went; empty when all went well.
    pub(crate) said: String,
    /// The most memory that it had, mapped files included, in KiB.
    pub(crate) peak: u64,
    /// Seconds of a core that it took.
    pub(crate) seconds: f64,
}

/// Runs an ignored test of this binary in a process of its own, which says how it went by [`tell`].
pub(crate) fn apart(test: &str, source: &Path, dest: &Path) -> Apart {
    let output = Command::new(std::env::current_exe().expect("knows itself"))
        .args(["--exact", test, "--ignored", "--quiet", "--nocapture"])
        .env("GSJ_TEST_SOURCE", source)
        .env("GSJ_TEST_DEST", dest)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        assert!(found.is_some(), "no {name} in {text}");
        found.unwrap_or_default().to_owned()
    };
    Apart {
        said: value("said="),
        peak: value("peak=").parse().expect("number"),
        seconds: value("seconds=").parse().expect("number"),
    }
}

/// A path that [`apart`] handed over.
pub(crate) fn handed(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(name).expect("is set"))
}

/// Says how it went, and what it took.
#[expect(clippy::print_stdout, reason = "what its parent reads")]
pub(crate) fn tell(said: &str) {
    let status = std::fs::read_to_string("/proc/self/status").expect("reads");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("is stated");
    // After the name of the program, in parentheses: user and system time are the 12th and 13th field, in hundredths.
    let stat = std::fs::read_to_string("/proc/self/stat").expect("reads");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("has fields").split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("number")).sum();
    println!("\nsaid={}", said.replace('\n', " "));
    println!("peak={}", peak.trim().trim_end_matches("kB").trim());
    println!("seconds={}", ticks / 100.0);
}

/// Whatever of these bytes begins a zlib stream, inflated: entries of a pack and anything hidden between them.
pub(crate) fn inflated(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut inflate = gix::zlib::Decompress::new();
    let mut buffer = vec![0; 1 << 16];
    for at in (0..bytes.len()).filter(|at| bytes[*at] & 0x0f == 8) {
        inflate.reset();
        if inflate.decompress(&bytes[at..], &mut buffer, gix::zlib::FlushDecompress::None).is_ok() {
            let length = usize::try_from(inflate.total_out()).expect("fits");
            out.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }
    out
}
