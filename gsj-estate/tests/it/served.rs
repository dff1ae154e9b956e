//! Ingest, and what the retrieval service serves: our own service, with the admin endpoint that it lacks in front.

use crate::support::{build, synthetic};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use gsj_cutoff::tokens::Secret;
use gsj_estate::{Corpus, EstateError, Host, Recipe, Service, VerifyOptions, ingest, verify};
use gsj_retrieval::{Library, Options, RepoSource, Service as Retrieval, Tools};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const NOW: i64 = 1_790_000_000;

fn secret(byte: u8) -> Secret {
    Secret::new(vec![byte; 32]).expect("long enough")
}

/// What the endpoint answers, one after the other; the last goes on.
type Words = &'static [&'static str];

struct Shared {
    retrieval: Retrieval,
    repositories: PathBuf,
    words: Words,
    triggers: AtomicU32,
    health: Mutex<Option<serde_json::Value>>,
}

struct Running {
    url: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

fn library(repositories: &Path) -> Library {
    let mut sources = Vec::new();
    for entry in fs::read_dir(repositories).expect("lists") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(case_id) = name.strip_suffix(".full.git") {
            let mut source = RepoSource::new(case_id, &path);
            source.timesteps_from = Some(path.with_file_name(format!("{case_id}.git")));
            sources.push(source);
        }
    }
    Library::from_repos(&sources).expect("reads")
}

impl Running {
    fn start(base: &Path, words: Words) -> Self {
        let repositories = base.join("gsj-staging");
        let options = Options::new(Arc::new(|| NOW));
        let tools = Tools::builtin().expect("shipped");
        let retrieval = Retrieval::new(library(&repositories), tools, vec![secret(1)], options);
        let shared =
            Arc::new(Shared { retrieval, repositories, words, triggers: AtomicU32::new(0), health: Mutex::new(None) });
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("binds");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, shared, _runtime: runtime }
    }

    fn asked(&self, byte: u8) -> Service {
        let mut service = Service::new(&self.url, secret(byte), Arc::new(|| NOW)).expect("an address");
        service.interval = Duration::from_millis(5);
        service.patience = Duration::from_millis(300);
        service.timeout = Duration::from_secs(20);
        service
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match request.uri().path() {
        "/admin/reindex" if !shared.words.is_empty() => {
            let before = shared.triggers.fetch_add(1, Ordering::SeqCst) as usize;
            let word = shared.words[before.min(shared.words.len() - 1)];
            // A run that was going on has fetched already; only one that begins sees what was pushed.
            if word == "started" {
                shared.retrieval.publish(library(&shared.repositories));
            }
            (StatusCode::ACCEPTED, json!({"reindex": word, "state": "indexing"}).to_string()).into_response()
        }
        "/health" => {
            let instead = shared.health.lock().expect("not poisoned").clone();
            match instead {
                Some(health) => health.to_string().into_response(),
                None => shared.retrieval.router().oneshot(request).await.expect("infallible"),
            }
        }
        _ => shared.retrieval.router().oneshot(request).await.expect("infallible"),
    }
}

fn edit(root: &Path) {
    for timestep in [2, 4, 6] {
        let page = format!("train/cases/case_0000/timestep-{timestep}/pages/page_0002.md");
        fs::write(root.join(page), "The tar yard burnt down.\n").expect("writes");
    }
}

fn failing(root: &Path, base: &Path, service: Service) -> Vec<String> {
    let corpus = Corpus::read(root).expect("passes");
    let mut options = VerifyOptions::new(Host::Folder(base.to_owned()));
    options.service = Some(service);
    let report = verify(&corpus, &options).expect("can be looked at");
    let of_bank = |rule: &str| rule.starts_with("verify.taskbank");
    let failures = report.failures().filter(|finding| !of_bank(finding.rule));
    failures
        .map(|finding| format!("{} {} {}: {}", finding.rule, finding.scope, finding.where_, finding.detail))
        .collect()
}

#[test]
fn what_was_pushed_is_served_after_an_ingest() {
    let (root, base) = (synthetic(3), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let running = Running::start(base.path(), &["already-indexing", "started"]);
    assert_eq!(failing(root.path(), base.path(), running.asked(1)), Vec::<String>::new());
    edit(root.path());
    build(root.path(), base.path(), Recipe::Sealed);
    let stale = failing(root.path(), base.path(), running.asked(1));
    assert!(stale.iter().any(|finding| finding.starts_with("verify.mcp-text case_0000")), "{stale:?}");
    assert!(stale.iter().any(|finding| finding.starts_with("verify.mcp-facts case_0000")), "{stale:?}");
    assert!(stale.iter().all(|finding| finding.contains("case_0000")), "{stale:?}");

    let done = ingest(root.path(), &running.asked(1)).expect("indexes");
    assert_eq!((done.cases, done.by_commit, done.triggers), (3, true, 2), "a run that was going on does not count");
    assert_eq!(failing(root.path(), base.path(), running.asked(1)), Vec::<String>::new());
}

#[test]
fn a_token_that_is_not_taken_and_an_address_with_the_path_of_the_tools_are_told() {
    let (root, base) = (synthetic(1), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let running = Running::start(base.path(), &["started"]);
    let below = Service::new(&format!("{}/mcp", running.url), secret(1), Arc::new(|| NOW)).expect("an address");
    let said = ingest(root.path(), &below).expect_err("no such place").to_string();
    assert!(said.contains("without /mcp"), "{said}");
    // What a rollout server tells strangers.
    *running.shared.health.lock().expect("not poisoned") = Some(json!({"status": "ok", "nodes": 1}));
    let found = failing(root.path(), base.path(), running.asked(2));
    assert!(found.iter().any(|finding| finding.contains("is the secret the service's?")), "{found:?}");
}

#[test]
fn other_text_of_equal_counts_and_missing_cases_are_found() {
    let (root, base) = (synthetic(3), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let running = Running::start(base.path(), &["started"]);
    let mut pages: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    let corpus = Corpus::read(root.path()).expect("passes");
    for case in corpus.cases.values().filter(|case| case.id != "case_0002") {
        let texts = case.pages.iter().map(|page| String::from_utf8(page.read().expect("reads")).expect("text"));
        let other = |text: String| if case.id == "case_0001" { text.replace("tar yard", "rope walk") } else { text };
        pages.insert(case.id.clone(), texts.map(other).collect());
    }
    running.shared.retrieval.publish(Library::from_pages(pages).expect("a library"));
    let mut found = failing(root.path(), base.path(), running.asked(1));
    // Pages that come from no repository have no timesteps to tell, which is found too.
    let timesteps = "the timesteps [] are served, the tree has [2, 4, 6]";
    assert_eq!(found.iter().filter(|finding| finding.contains(timesteps)).count(), 2, "{found:?}");
    found.retain(|finding| !finding.contains(timesteps));
    let starts: Vec<&str> = found.iter().map(|finding| finding.split(": ").next().expect("a start")).collect();
    assert_eq!(starts, ["verify.mcp-cases (corpus) mcp", "verify.mcp-text case_0001 mcp"], "{found:?}");
    assert!(found[0].contains("case_0002") && found[1].contains("page 6"), "{found:?}");
}

#[test]
fn a_service_that_cannot_be_asked_is_a_finding_or_an_error_and_no_crash() {
    let (root, base) = (synthetic(1), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let running = Running::start(base.path(), &[]);
    let error = ingest(root.path(), &running.asked(1)).expect_err("there is no endpoint");
    assert!(error.is_remote() && error.to_string().contains("/admin/reindex"), "{error}");
    let found = failing(root.path(), base.path(), running.asked(2));
    assert!(found.iter().any(|finding| finding.contains("secret")), "{found:?}");

    let running = Running::start(base.path(), &["started"]);
    let set = |health: serde_json::Value| *running.shared.health.lock().expect("not poisoned") = Some(health);
    set(json!({"state": "error", "error": "no model"}));
    let error = ingest(root.path(), &running.asked(1)).expect_err("its index failed");
    assert!(error.to_string().contains("no model"), "{error}");
    set(json!({"state": "ready", "cases": {"case_0000": {"pages": 6, "timesteps": [2, 4, 6]}}}));
    assert!(!ingest(root.path(), &running.asked(1)).expect("indexes").by_commit, "the reference tells no commits");
    set(json!({"state": "ready", "cases": {"case_0000": {"pages": 6, "commit": "0"}}}));
    let mut hasty = running.asked(1);
    hasty.timeout = Duration::from_secs(5);
    let error = ingest(root.path(), &hasty).expect_err("it stays behind");
    assert!(error.to_string().contains("1 of 1") && error.to_string().contains("case_0000"), "{error}");
    set(json!([1, 2]));
    assert!(matches!(ingest(root.path(), &running.asked(1)), Err(EstateError::Service { .. })));

    let mut gone = running.asked(1);
    gone.url = "http://127.0.0.1:1".into();
    let found = failing(root.path(), base.path(), gone.clone());
    assert!(found.iter().any(|finding| finding.starts_with("verify.mcp (corpus) mcp")), "{found:?}");
    assert!(ingest(root.path(), &gone).expect_err("nobody is there").is_remote());
}

/// Whatever it answers, an ingest is over when its time is; what is left of it here would be minutes.
#[test]
fn an_ingest_ends_in_time_whatever_the_service_does() {
    let (root, base) = (synthetic(1), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let runtime = Runtime::new().expect("a runtime");
    let endless = || async {
        let pieces = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        axum::body::Body::from_stream(pieces).into_response()
    };
    let looks = Arc::new(AtomicU32::new(0));
    let once = move || async move {
        match looks.fetch_add(1, Ordering::SeqCst) {
            0 => json!({"state": "indexing"}).to_string(),
            _ => std::future::pending().await,
        }
    };
    let routes = [
        (axum::routing::get(|| async { StatusCode::INTERNAL_SERVER_ERROR }), "/health"),
        (axum::routing::get(endless), "did not answer"),
        (axum::routing::get(std::future::pending::<StatusCode>), "did not answer"),
        // What was seen before the call that did not end says more than that it did not.
        (axum::routing::get(once), "it is `indexing`"),
    ];
    for (health, words) in routes {
        let router = Router::new().route("/health", health);
        let router = router.route("/admin/reindex", axum::routing::post(|| async { StatusCode::ACCEPTED }));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("binds");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        runtime.spawn(async move { axum::serve(listener, router).await });
        let mut service = Service::new(&url, secret(1), Arc::new(|| NOW)).expect("an address");
        service.timeout = Duration::from_secs(2);
        service.patience = Duration::from_secs(3600);
        let (root, (done, ended)) = (root.path().to_owned(), std::sync::mpsc::channel());
        std::thread::spawn(move || done.send(ingest(&root, &service)));
        let error = ended.recv_timeout(Duration::from_secs(45)).expect("it ends").expect_err("it was never ready");
        assert!(error.is_remote() && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn details_of_cases_that_make_no_sense_or_leave_cases_out_are_no_success() {
    let (root, base) = (synthetic(2), TempDir::new().expect("folder"));
    build(root.path(), base.path(), Recipe::Sealed);
    let running = Running::start(base.path(), &["started"]);
    let mut service = running.asked(1);
    service.timeout = Duration::from_secs(5);
    for (cases, words) in [
        (json!("x"), "cannot be understood"),
        (json!({"case_0000": 1}), "`case_0000`"),
        (json!({"case_0000": {"pages": 6}}), "1 of 2 cases are not served at all: case_0001"),
    ] {
        *running.shared.health.lock().expect("not poisoned") = Some(json!({"state": "ready", "cases": cases}));
        let error = ingest(root.path(), &service).expect_err("no success");
        assert!(error.is_remote() && error.to_string().contains(words), "{error}");
    }
    *running.shared.health.lock().expect("not poisoned") = Some(json!({"state": "indexing"}));
    let error = ingest(root.path(), &service).expect_err("never ready");
    assert!(error.to_string().ends_with("it is `indexing`"), "{error}");
    *running.shared.health.lock().expect("not poisoned") = Some(json!({"state": "ready"}));
    assert_eq!(ingest(root.path(), &service).expect("ready").cases, 0, "nothing is claimed that was not told");
}
