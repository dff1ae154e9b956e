//! A git host of the tests' own: `git http-backend` behind a loopback port, which asks for a password and can be down.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The password; no output and no file may ever hold it.
pub(crate) const PASSWORD: &str = "canary-git-password-77aa-do-not-show";
/// `git:` and the password in base 64.
const WANTED: &str = "Basic Z2l0OmNhbmFyeS1naXQtcGFzc3dvcmQtNzdhYS1kby1ub3Qtc2hvdw==";

/// A host that serves the bare repositories below a folder while the test runs.
pub(crate) struct GitHost {
    pub(crate) url: String,
    down: Arc<AtomicBool>,
}

impl GitHost {
    /// Nothing when there is no git program to serve with.
    pub(crate) fn start(root: &Path) -> Option<Self> {
        if !Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: no git command here to serve repositories with");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let down = Arc::new(AtomicBool::new(false));
        let (root, is_down) = (root.to_owned(), Arc::clone(&down));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !is_down.load(Ordering::SeqCst) {
                    let root = root.clone();
                    std::thread::spawn(move || drop(answer(stream, &root)));
                }
            }
        });
        Some(Self { url, down })
    }

    /// Lets the host hang up on everybody, or serve again.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }
}

fn answer(stream: TcpStream, root: &PathBuf) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let header = |name: &str| headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value.as_str());
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let mut stream = reader.into_inner();
    if header("authorization") != WANTED {
        return stream.write_all(
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let mut parts = first.split(' ');
    let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
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
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    child.stdin.take().unwrap().write_all(&body)?;
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let content = output.get(end + 4..).unwrap_or_default();
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len())?;
    stream.write_all(content)
}
