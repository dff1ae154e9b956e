//! Fetching from a real `git http-backend` that asks for a password. The transport is plain http on a loopback
//! address, as https would need a certificate authority; all else is what a forge does.

use crate::git::{Case, git, snapshot, there};
use gsj_cutoff::{Credential, Cut, CutRequest, CutoffError, FetchRefs, FetchRequest, cut, fetch};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// `user:hunter2-of-the-test` in base 64.
const WANTED: &str = "Basic dXNlcjpodW50ZXIyLW9mLXRoZS10ZXN0";
pub(crate) const SECRET: &str = "hunter2-of-the-test";

/// What was seen of the client while it was being served.
#[derive(Default)]
pub(crate) struct Seen {
    requests: usize,
    refused: usize,
    pub(crate) in_arguments: bool,
}

pub(crate) fn serve(root: PathBuf) -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &root, &shared);
        }
    });
    (url, seen)
}

fn answer(stream: TcpStream, root: &Path, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).expect("reads");
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("reads");
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let header = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
    let length: usize = header("content-length").map_or(0, |value| value.parse().expect("number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("reads");
    let mut stream = reader.into_inner();
    {
        let mut seen = seen.lock().expect("lock");
        seen.requests += 1;
        seen.in_arguments |= in_some_argument_list();
        if header("authorization") != Some(WANTED) {
            seen.refused += 1;
            let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\
                           Connection: close\r\n\r\n";
            stream.write_all(refusal.as_bytes()).expect("writes");
            return;
        }
    }
    let mut parts = first.split(' ');
    let (method, target) = (parts.next().expect("method"), parts.next().expect("target"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", length.to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().expect("is piped").write_all(&body).expect("writes");
    let output = child.wait_with_output().expect("ends").stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").expect("headers end");
    let head = String::from_utf8_lossy(&output[..end]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let content = &output[end + 4..];
    let reply =
        format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
    stream.write_all(reply.as_bytes()).expect("writes");
    stream.write_all(content).expect("writes");
}

/// Whether the secret, plain or encoded, stands in the argument list of any process.
fn in_some_argument_list() -> bool {
    let encoded = WANTED.trim_start_matches("Basic ");
    let lists = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    lists.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|list| {
        let list = String::from_utf8_lossy(&list).into_owned();
        list.contains(SECRET) || list.contains(encoded)
    })
}

fn wanted<'a>(url: &'a str, credential: Option<&'a Credential>, into: &'a Path) -> FetchRequest<'a> {
    FetchRequest {
        url,
        credential,
        refs: FetchRefs::Branch("timestep-2"),
        depth: NonZeroU32::new(1),
        program: Path::new("git"),
        certificates: None,
        into,
    }
}

#[test]
fn a_remote_that_asks_for_a_password_is_fetched_and_the_password_is_nowhere() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (base, seen) = serve(case.root.path().to_owned());
    let url = format!("{base}/case.git");
    let into = case.root.path().join("fetched.git");
    let credential = Credential::new(&format!("user:{SECRET}")).expect("usable");
    fetch(&wanted(&url, Some(&credential), &into)).expect("fetches");
    {
        let seen = seen.lock().expect("lock");
        assert!(seen.requests >= 2 && seen.refused == 0, "{} requests, {} refused", seen.requests, seen.refused);
        assert!(!seen.in_arguments, "the secret stands in a process list");
    }
    let encoded = WANTED.trim_start_matches("Basic ");
    for (path, _, content) in snapshot(&into) {
        let content = String::from_utf8_lossy(&content).into_owned();
        assert!(!content.contains(SECRET) && !content.contains(encoded), "{} holds the secret", path.display());
    }

    let (fetched, local) = (case.root.path().join("one"), case.root.path().join("two"));
    cut(&CutRequest::new(&into, Cut::Timestep(2), &fetched)).expect("cuts");
    cut(&CutRequest::new(&case.bare(), Cut::Timestep(2), &local)).expect("cuts");
    assert_eq!(snapshot(&fetched), snapshot(&local), "fetched or local, the same bytes");
    assert_eq!(git(&fetched, &["remote"]), "");
}

#[test]
fn all_refs_are_there_for_a_cut_at_a_commit() {
    if !there() {
        return;
    }
    let case = Case::new();
    git(&case.bare(), &["tag", "only-here", "timestep-3"]);
    git(&case.bare(), &["branch", "-D", "timestep-3"]);
    let commit = git(&case.bare(), &["rev-parse", "only-here"]);
    let (base, _) = serve(case.root.path().to_owned());
    let (url, into) = (format!("{base}/case.git"), case.root.path().join("fetched.git"));
    let credential = Credential::new(&format!("user:{SECRET}")).expect("usable");
    let request = FetchRequest { refs: FetchRefs::All, depth: None, ..wanted(&url, Some(&credential), &into) };
    fetch(&request).expect("fetches");
    let dest = case.root.path().join("cut");
    let report = cut(&CutRequest::new(&into, Cut::Commit(commit.trim().into()), &dest)).expect("cuts");
    assert_eq!(report.evidence.commits, 2);
    assert_eq!(git(&dest, &["for-each-ref"]), "", "no tag survives");
}

#[test]
fn a_refusal_says_what_git_said_and_not_the_password() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (base, _) = serve(case.root.path().to_owned());
    let into = case.root.path().join("fetched.git");
    let wrong = Credential::new("user:not-the-password").expect("usable");
    for (url, credential) in [("case.git", Some(&wrong)), ("case.git", None)] {
        let url = format!("{base}/{url}");
        match fetch(&wanted(&url, credential, &into)) {
            Err(CutoffError::Fetch { url: told, reason }) => {
                assert_eq!(told, url);
                assert!(reason.contains("fatal:") && !reason.contains("not-the-password"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    let missing = FetchRequest { program: Path::new("/nonexistent/git"), ..wanted("https://h.invalid/x", None, &into) };
    assert!(fetch(&missing).expect_err("no program").to_string().contains("cannot be run"));
}
