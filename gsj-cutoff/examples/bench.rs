//! Measures cuts against `git clone`, side by side in one run: `cargo run --release -p gsj-cutoff --example bench`.
//!
//! Rows go to standard output as a table in Markdown: times on the wall, and how long cores were busy with either side,
//! which other programs disturb less. Arguments: `case`, `history`, nothing for both, or
//! `own REPOSITORY` for the branch of HEAD of a repository at hand.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use gsj_cutoff::{Cut, CutRequest, cut};
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Pages of the case, and bytes of each.
const PAGES: usize = 40;
const PAGE_BYTES: usize = 6_000;
/// Rounds of the case.
const ROUNDS: usize = 20;
/// Commits of the history, files that they change, and rounds.
const COMMITS: usize = 100_000;
const FILES: usize = 1_000;
const HISTORY_ROUNDS: usize = 3;

fn main() {
    let which = std::env::args().nth(1);
    let root = std::env::temp_dir().join(format!("gsj-cutoff-bench-{}", std::process::id()));
    fs::create_dir_all(&root).expect("a temporary folder");
    println!("| what | rounds | ours, median (min, max) | git, median (min, max) | ours / git | of cores |");
    println!("|---|---|---|---|---|---|");
    match which.as_deref() {
        Some("case") => case(&root),
        Some("history") => history(&root),
        Some("own") => {
            let source = PathBuf::from(std::env::args().nth(2).expect("own REPOSITORY"));
            whole(&root, &source, 1, "a repository at hand");
        }
        _ => {
            case(&root);
            history(&root);
        }
    }
    fs::remove_dir_all(&root).expect("is ours to remove");
}

fn git(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .args(["-c", "safe.directory=*", "-c", "init.defaultBranch=main", "-C"])
        .arg(dir)
        .args(arguments)
        .stdout(Stdio::null());
    command
}

fn run(dir: &Path, arguments: &[&str]) {
    assert!(git(dir, arguments).status().expect("git runs").success(), "git {arguments:?}");
}

/// Makes a bare repository out of a stream for `git fast-import`.
fn import(path: &Path, stream: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) {
    let parent = path.parent().expect("has a parent");
    run(parent, &["init", "-q", "--bare", &path.display().to_string()]);
    let mut child = git(path, &["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().expect("git runs");
    let mut input = BufWriter::new(child.stdin.take().expect("is piped"));
    stream(&mut input).expect("git reads");
    drop(input);
    assert!(child.wait().expect("git ends").success());
}

/// Text that looks like nothing and is the same in every run.
struct Text(u64);

impl Text {
    fn number(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below
    }

    fn of(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            for _ in 0..12 {
                let word = format!("w{:x} ", self.number(3_000));
                text.push_str(&word);
            }
            text.push('\n');
        }
        text
    }
}

/// Time on the wall, and the time that cores were busy with this process and with its children.
#[derive(Clone, Copy)]
struct Taken {
    wall: Duration,
    busy: f64,
}

/// Hundredths of a second that cores were busy with this process and with the children that have ended.
fn busy() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: user and system time of the process are fields 12 and 13, of its children the next.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(4);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

fn time(run: impl FnOnce()) -> Taken {
    let (start, before) = (Instant::now(), busy());
    run();
    Taken { wall: start.elapsed(), busy: busy() - before }
}

fn row(what: &str, mut ours: Vec<Taken>, mut theirs: Vec<Taken>) {
    let rounds = ours.len();
    let shown = |times: &mut Vec<Taken>| {
        times.sort_by_key(|taken| taken.wall);
        let ms = |at: usize| times[at].wall.as_secs_f64() * 1_000.0;
        (ms(times.len() / 2), format!("{:.1} ms ({:.1}, {:.1})", ms(times.len() / 2), ms(0), ms(times.len() - 1)))
    };
    let ((ours_ms, ours_text), (theirs_ms, theirs_text)) = (shown(&mut ours), shown(&mut theirs));
    let busy = |times: &[Taken]| times.iter().map(|taken| taken.busy).sum::<f64>();
    let (ratio, of_cores) = (ours_ms / theirs_ms, busy(&ours) / busy(&theirs));
    println!("| {what} | {rounds} | {ours_text} | {theirs_text} | {ratio:.2} | {of_cores:.2} |");
}

fn case(root: &Path) {
    let source = root.join("case.git");
    import(&source, |out| {
        let mut text = Text(1);
        writeln!(out, "commit refs/heads/main\nmark :1\ncommitter c <c@c.invalid> 1767225600 +0000\ndata 5\nfull\n")?;
        for page in 1..=PAGES {
            let content = text.of(PAGE_BYTES);
            writeln!(out, "M 100644 inline md/page_{page:04}.md\ndata {}\n{content}", content.len())?;
        }
        for (path, content) in [("AGENTS.md", "rules\n"), (".gitignore", ".pi/\n"), ("skills/sum/SKILL.md", "# sum\n")]
        {
            writeln!(out, "M 100644 inline {path}\ndata {}\n{content}", content.len())?;
        }
        for timestep in 1..=PAGES {
            writeln!(
                out,
                "commit refs/heads/timestep-{timestep}\ncommitter c <c@c.invalid> 1767225600 +0000\ndata 3\ncut\nfrom :1"
            )?;
            for page in timestep + 1..=PAGES {
                writeln!(out, "D md/page_{page:04}.md")?;
            }
            writeln!(out)?;
        }
        Ok(())
    });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (mine, other) = (root.join(format!("cut-{round}")), root.join(format!("clone-{round}")));
        ours.push(time(|| {
            let timestep = u32::try_from(PAGES).unwrap_or(0);
            cut(&CutRequest::new(&source, Cut::Timestep(timestep), &mine)).expect("cuts");
        }));
        theirs.push(time(|| {
            let (url, branch) = (format!("file://{}", source.display()), format!("timestep-{PAGES}"));
            let dest = other.display().to_string();
            run(root, &["clone", "-q", "--depth", "1", "--branch", &branch, "--single-branch", &url, &dest]);
            run(&other, &["remote", "remove", "origin"]);
            fs::remove_dir_all(other.join(".git/logs")).expect("is there");
        }));
        fs::remove_dir_all(mine).expect("is ours");
        fs::remove_dir_all(other).expect("is ours");
    }
    row(&format!("case of {PAGES} pages, audited, against clone, remote removed, reflogs deleted"), ours, theirs);
}

fn history(root: &Path) {
    let source = root.join("history.git");
    let path = |file: usize| format!("d{}/s{}/f{file}.txt", file % 10, file % 70);
    import(&source, |out| {
        let mut text = Text(2);
        let mut lines: Vec<Vec<String>> = (0..FILES).map(|_| (0..30).map(|_| text.of(40)).collect()).collect();
        for commit in 0..COMMITS {
            let seconds = 1_500_000_000 + commit * 60;
            write!(out, "commit refs/heads/main\ncommitter c <c@c.invalid> {seconds} +0000\ndata 8\nchange\n\n")?;
            let changed: Vec<usize> = if commit == 0 { (0..FILES).collect() } else { vec![text.number(FILES)] };
            for file in changed {
                let at = text.number(30);
                lines[file][at] = text.of(40);
                let content = lines[file].concat();
                writeln!(out, "M 100644 inline {}\ndata {}\n{content}", path(file), content.len())?;
            }
        }
        Ok(())
    });
    whole(root, &source, HISTORY_ROUNDS, &format!("{COMMITS} commits, as imported"));
    run(&source, &["gc", "-q"]);
    whole(root, &source, HISTORY_ROUNDS, &format!("{COMMITS} commits, after gc"));
}

/// A cut at a date after everything against a clone of the branch.
fn whole(root: &Path, source: &Path, rounds: usize, what: &str) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (mine, other) = (root.join(format!("h-{round}")), root.join(format!("g-{round}")));
        ours.push(time(|| {
            let at = Cut::Date { seconds: i64::from(u32::MAX), branch: None };
            cut(&CutRequest::new(source, at, &mine)).expect("cuts");
        }));
        theirs.push(time(|| {
            let url = format!("file://{}", source.display());
            run(root, &["clone", "-q", "--no-local", "--single-branch", &url, &other.display().to_string()]);
        }));
        fs::remove_dir_all(mine).expect("is ours");
        fs::remove_dir_all(other).expect("is ours");
    }
    row(&format!("{what}, at a date, all kept, audited, against clone --no-local --single-branch"), ours, theirs);
}
