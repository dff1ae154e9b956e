//! A git host of ours: the part of Forgejo's API that section 8 names, enforced, and git's own `http-backend` behind it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use gsj_estate::{Remote, Token};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const TOKEN: &str = "canary-7f3b9c-token";
const OWNER: &str = "gsj-staging";

/// What the server saw, and how it is to behave.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// Method and path of every call, in order.
    pub(crate) calls: Vec<String>,
    /// Argument lists in which the token was seen during a push.
    pub(crate) leaks: Vec<String>,
    /// How many calls are still answered 503.
    pub(crate) trouble: u32,
    /// Whose token it is, when not the owner's.
    pub(crate) login: Option<&'static str>,
    /// Method whose API calls are answered by a status.
    pub(crate) refuse: Option<(Method, StatusCode)>,
    private: BTreeSet<String>,
}

struct Shared {
    root: PathBuf,
    git: PathBuf,
    behaviour: Mutex<Behaviour>,
}

/// The host, for as long as this lives.
pub(crate) struct Forge {
    pub(crate) url: String,
    /// Where it keeps its repositories.
    pub(crate) root: TempDir,
    /// Where clients build.
    pub(crate) scratch: TempDir,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

/// The git program and whether it can serve; `None`, loudly, when not.
fn git_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|program| program.is_file());
    let serves = found.as_ref().is_some_and(|git| {
        let output = Command::new(git).arg("--exec-path").output();
        output.is_ok_and(|output| {
            Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("git-http-backend").is_file()
        })
    });
    if !serves {
        eprintln!("SKIPPED: no git with http-backend here to be a host");
    }
    found.filter(|_| serves)
}

impl Forge {
    pub(crate) fn start() -> Option<Self> {
        let git = git_program()?;
        let (root, scratch) = (TempDir::new().expect("folder"), TempDir::new().expect("folder"));
        let shared = Arc::new(Shared { root: root.path().to_owned(), git, behaviour: Mutex::default() });
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("binds");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Some(Self { url, root, scratch, shared, _runtime: runtime })
    }

    pub(crate) fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.shared.behaviour.lock().expect("not poisoned")
    }

    /// The calls since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.behaviour().calls)
    }

    pub(crate) fn remote(&self, token: Option<&str>) -> Remote {
        let token = token.map(|token| Token::new(token).expect("fits"));
        let git = self.shared.git.clone();
        let mut remote = Remote::new(&self.url, token, git, self.scratch.path().to_owned()).expect("an address");
        remote.patience = Duration::from_secs(8);
        remote.deadline = Duration::from_secs(120);
        remote
    }

    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.root.path().join(OWNER).join(format!("{name}.git"))
    }
}

fn git(shared: &Shared) -> Command {
    let mut command = Command::new(&shared.git);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", "/nonexistent");
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ] {
        command.env(name, value);
    }
    command
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    {
        let mut behaviour = shared.behaviour.lock().expect("not poisoned");
        behaviour.calls.push(format!("{} {path}", parts.method));
        if behaviour.trouble > 0 {
            behaviour.trouble -= 1;
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    }
    let body = to_bytes(body, 64 << 20).await.expect("a body");
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let done = tokio::task::spawn_blocking(move || match path.strip_prefix("/api/v1/") {
        Some(path) => api(&shared, &parts.method, path, &parts.headers, &body),
        None => smart_http(&shared, &parts.method, &path, &query, &parts.headers, &body),
    });
    done.await.expect("an answer")
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn api(shared: &Shared, method: &Method, path: &str, headers: &HeaderMap, body: &[u8]) -> Response {
    let authorized = headers.get(header::AUTHORIZATION).is_some_and(|value| value == &format!("token {TOKEN}"));
    if !authorized {
        return answer(StatusCode::UNAUTHORIZED, &json!({"message": "invalid username, password or token"}));
    }
    let mut behaviour = shared.behaviour.lock().expect("not poisoned");
    if let Some((_, status)) = behaviour.refuse.as_ref().filter(|(refused, _)| refused == method) {
        return answer(*status, &json!({"message": format!("no, says the host of {TOKEN}")}));
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["user"]) => answer(StatusCode::OK, &json!({"login": behaviour.login.unwrap_or(OWNER)})),
        ("POST", ["user", "repos"]) => {
            let name = body["name"].as_str().expect("a name");
            let repository = shared.root.join(OWNER).join(format!("{name}.git"));
            if repository.exists() {
                return answer(StatusCode::CONFLICT, &json!({"message": "The repository already exists."}));
            }
            assert_eq!(body["auto_init"], false);
            let branch = body["default_branch"].as_str().expect("a branch");
            let made = git(shared).args(["init", "-q", "--bare", "-b", branch]).arg(&repository).status();
            assert!(made.expect("runs").success());
            if body["private"] == true {
                behaviour.private.insert(name.to_owned());
            }
            answer(StatusCode::CREATED, &json!({"name": name}))
        }
        (_, ["repos", OWNER, name]) => {
            let repository = shared.root.join(OWNER).join(format!("{name}.git"));
            if !repository.exists() {
                return answer(StatusCode::NOT_FOUND, &json!({"message": "not found"}));
            }
            if let ("PATCH", Some(branch)) = (method.as_str(), body["default_branch"].as_str()) {
                if !git(shared)
                    .arg("-C")
                    .arg(&repository)
                    .args(["show-ref", "--verify", "--quiet"])
                    .arg(format!("refs/heads/{branch}"))
                    .status()
                    .expect("runs")
                    .success()
                {
                    return answer(StatusCode::UNPROCESSABLE_ENTITY, &json!({"message": "no such branch"}));
                }
                let head = git(shared)
                    .arg("-C")
                    .arg(&repository)
                    .args(["symbolic-ref", "HEAD"])
                    .arg(format!("refs/heads/{branch}"))
                    .status();
                assert!(head.expect("runs").success());
            }
            answer(StatusCode::OK, &json!({"name": name}))
        }
        _ => answer(StatusCode::NOT_FOUND, &json!({"message": "no such route"})),
    }
}

/// Every process' argument list that holds the token.
fn argument_lists_with_the_token() -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lists = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lists.map(|list| String::from_utf8_lossy(&list).replace('\0', " ")).filter(|list| list.contains(TOKEN)).collect()
}

fn smart_http(shared: &Shared, method: &Method, path: &str, query: &str, headers: &HeaderMap, body: &[u8]) -> Response {
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{OWNER}:{TOKEN}"));
    let authorized = headers.get(header::AUTHORIZATION).is_some_and(|value| value == &format!("Basic {pair}"));
    let pushes = query.contains("git-receive-pack") || path.ends_with("git-receive-pack");
    if pushes && !authorized {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic")], "who are you").into_response();
    }
    let name = path.split('/').nth(2).unwrap_or_default().trim_end_matches(".git").to_owned();
    {
        let mut behaviour = shared.behaviour.lock().expect("not poisoned");
        // As Forgejo does: who may not read it is not told that it is there.
        if behaviour.private.contains(&name) && !authorized {
            return StatusCode::NOT_FOUND.into_response();
        }
        if pushes {
            behaviour.leaks.extend(argument_lists_with_the_token());
        }
    }
    let text = |name: header::HeaderName| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let mut command = git(shared);
    command.arg("http-backend").env("GIT_PROJECT_ROOT", &shared.root).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", method.as_str()).env("PATH_INFO", path).env("QUERY_STRING", query);
    command.env("CONTENT_TYPE", text(header::CONTENT_TYPE)).env("CONTENT_LENGTH", body.len().to_string());
    command.env("HTTP_CONTENT_ENCODING", text(header::CONTENT_ENCODING)).env("REMOTE_ADDR", "127.0.0.1");
    command.env("GIT_PROTOCOL", text(header::HeaderName::from_static("git-protocol")));
    if authorized {
        command.env("REMOTE_USER", OWNER);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let body = body.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&body)));
    let output = child.wait_with_output().expect("ends").stdout;
    writer.join().expect("writes");
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("headers end");
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        response = match name {
            "Status" => {
                response.status(value.split(' ').next().and_then(|code| code.parse::<u16>().ok()).expect("a code"))
            }
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(output[end + 4..].to_vec())).expect("an answer")
}
