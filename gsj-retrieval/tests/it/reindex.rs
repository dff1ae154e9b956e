//! Index runs while the service serves (retrieval.md sections 2, 9, 10).

use crate::support::{Answer, NOW, call, corpus, library, options, post, secret, send, service_of, texts, token};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use gsj_cutoff::tokens::mint_admin;
use gsj_retrieval::{IndexFault, Indexer, Library, Progress, Reindex, Scope, Service, Tools};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A source whose runs end when they are told how.
struct Runs {
    tell: Sender<Result<Library, &'static str>>,
    begun: Arc<AtomicUsize>,
}

fn source() -> (Runs, impl FnMut(&Progress) -> Result<Library, IndexFault> + Send + 'static) {
    let (tell, told): (_, Receiver<Result<Library, &'static str>>) = channel();
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let run = move |progress: &Progress| {
        counted.fetch_add(1, Ordering::SeqCst);
        loop {
            match told.recv_timeout(Duration::from_millis(5)) {
                Ok(told) => return told.map_err(Into::into),
                Err(_) if progress.is_stopped() => return Err("stopped".into()),
                Err(_) => {}
            }
        }
    };
    (Runs { tell, begun }, run)
}

fn starting() -> Service {
    Service::starting(Tools::builtin().expect("shipped"), vec![secret()], options())
}

fn admin() -> String {
    mint_admin(NOW + 60, &secret()).expect("signs")
}

async fn asked(router: &Router, method: &str, path: &str, authorization: Option<&str>) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    send(router, request.body(Body::empty()).expect("valid")).await
}

async fn trigger(router: &Router) -> (u16, Value) {
    let answer = asked(router, "POST", "/admin/reindex", Some(&format!("bearer  {} ", admin()))).await;
    assert_eq!(answer.header("content-type"), "application/json");
    (answer.status.as_u16(), answer.json())
}

async fn health(router: &Router) -> Value {
    asked(router, "GET", "/health", Some(&format!("Bearer {}", admin()))).await.json()
}

/// Waits until no run goes on.
async fn settled(router: &Router) -> Value {
    loop {
        let health = health(router).await;
        if health["state"] != "indexing" {
            return health;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_over_at_once_was_still_begun() {
    let service = service_of(library());
    let indexer = Indexer::start(&service, |_: &Progress| Ok::<_, IndexFault>(library()));
    let router = service.router();
    for _ in 0..200 {
        let (status, told) = trigger(&router).await;
        assert_eq!((status, &told["state"]), (202, &json!("indexing")), "{told}");
    }
    indexer.stop().await;
}

/// The corpus with one page changed.
fn changed(word: &str) -> Library {
    let mut pages = corpus();
    pages.get_mut("alpha").expect("alpha")[0] = format!("The {word} was signed.");
    Library::from_pages(pages).expect("valid")
}

async fn hits(router: &Router, word: &str) -> usize {
    texts(&call(router, &token("alpha", 3), "search_case", json!({"query": word})).await).len()
}

#[tokio::test]
async fn the_old_index_is_served_until_the_new_one_is_whole_and_one_more_run_is_queued() {
    let service = service_of(library());
    let (runs, source) = source();
    let indexer = Indexer::start(&service, source);
    let router = service.router();
    assert_eq!(trigger(&router).await, (202, json!({"reindex": "started", "state": "indexing"})));
    assert_eq!(asked(&router, "GET", "/health", None).await.body, r#"{"state":"indexing"}"#);
    for _ in 0..5 {
        assert_eq!(trigger(&router).await, (202, json!({"reindex": "queued", "state": "indexing"})));
    }
    assert_eq!((hits(&router, "lease").await, hits(&router, "charter").await), (1, 0), "calls are served meanwhile");
    runs.tell.send(Ok(changed("charter"))).expect("it waits");
    while hits(&router, "charter").await == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(health(&router).await["state"], "indexing", "the queued run goes on without a moment between");
    runs.tell.send(Ok(changed("deed"))).expect("it waits");
    let told = settled(&router).await;
    assert_eq!((&told["state"], told.get("error"), told.get("progress")), (&json!("ready"), None, None));
    assert_eq!((hits(&router, "deed").await, hits(&router, "charter").await), (1, 0));
    assert_eq!(runs.begun.load(Ordering::SeqCst), 2, "five requests during a run are one more run");
    indexer.stop().await;
}

#[tokio::test]
async fn a_run_that_fails_leaves_the_old_index_served() {
    let service = service_of(library());
    let (runs, source) = source();
    let indexer = Indexer::start(&service, source);
    let router = service.router();
    trigger(&router).await;
    runs.tell.send(Err("the host /srv/secret-place is gone")).expect("it waits");
    let told = settled(&router).await;
    assert_eq!((&told["state"], &told["error"]), (&json!("ready"), &json!("the host /srv/secret-place is gone")));
    assert_eq!(asked(&router, "GET", "/health", None).await.body, r#"{"state":"ready"}"#);
    assert_eq!(hits(&router, "lease").await, 1);
    trigger(&router).await;
    runs.tell.send(Ok(changed("charter"))).expect("it waits");
    assert_eq!(settled(&router).await.get("error"), None, "what failed is over");
    assert_eq!(hits(&router, "charter").await, 1);
    indexer.stop().await;
}

#[tokio::test]
async fn a_first_run_that_fails_is_state_error_without_a_word_for_strangers() {
    let service = starting();
    let (runs, source) = source();
    let indexer = Indexer::start(&service, source);
    let router = service.router();
    assert_eq!(indexer.reindex(), Reindex::Started);
    runs.tell.send(Err("the host /srv/secret-place is gone")).expect("it waits");
    assert_eq!(settled(&router).await["error"], "the host /srv/secret-place is gone");
    assert_eq!(asked(&router, "GET", "/health", None).await.body, r#"{"state":"error"}"#);
    for token in ["garbage".to_owned(), token("alpha", 3)] {
        let answer = send(&router, post(&format!("/mcp/{token}"), "{\"id\":4}")).await;
        assert_eq!((answer.status, &answer.json()["id"]), (StatusCode::SERVICE_UNAVAILABLE, &json!(4)));
        let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(message.contains("not ready") && message.contains("error") && message.contains("state=ready"));
        assert!(!answer.body.contains("secret-place"), "{}", answer.body);
    }
    trigger(&router).await;
    assert_eq!(health(&router).await["state"], "indexing");
    runs.tell.send(Ok(library())).expect("it waits");
    assert_eq!(settled(&router).await["state"], "ready", "it comes back by itself");
    indexer.stop().await;
}

#[tokio::test]
async fn only_an_admin_token_in_the_header_of_a_post_begins_a_run() {
    let service = service_of(library());
    let (runs, source) = source();
    let indexer = Indexer::start(&service, source);
    let router = service.router();
    let (good, late) = (admin(), mint_admin(NOW - 31, &secret()).expect("signs"));
    for authorization in [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(good.clone()),
        Some(format!("Basic {good}")),
        Some(format!("Bearer {late}")),
        Some(format!("Bearer {good}=")),
        Some(format!("Bearer {}", token("alpha", 3))),
    ] {
        let answer = asked(&router, "POST", "/admin/reindex", authorization.as_deref()).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::UNAUTHORIZED, "application/json"));
        assert!(answer.json()["error"].is_string() && answer.json().as_object().is_some_and(|body| body.len() == 1));
    }
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        let answer = asked(&router, method, "/admin/reindex", Some(&format!("Bearer {good}"))).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "POST"), "{method}");
    }
    assert_eq!(asked(&router, "POST", "/admin/reindex/", Some(&format!("Bearer {good}"))).await.status.as_u16(), 404);
    let scope = Scope { case_id: "alpha".into(), timestep: 3, episode_id: "ep-1".into() };
    let own = service.router_for(scope);
    for method in ["POST", "GET"] {
        let answer = asked(&own, method, "/admin/reindex", Some(&format!("Bearer {good}"))).await;
        assert_eq!(answer.status.as_u16(), 404, "a session's socket has no such path");
    }
    assert_eq!(runs.begun.load(Ordering::SeqCst), 0);
    indexer.stop().await;
    assert_eq!(trigger(&router).await.0, 503, "it is being stopped");
    assert_eq!(trigger(&service_of(library()).router()).await.0, 404, "there is nothing to read anew");
}

#[tokio::test]
async fn a_session_keeps_the_library_that_it_began_with() {
    let service = service_of(library());
    let own = service.router_for(Scope { case_id: "alpha".into(), timestep: 3, episode_id: "ep-1".into() });
    service.publish(changed("charter"));
    assert_eq!((hits(&own, "lease").await, hits(&own, "charter").await), (1, 0));
    let everybody = service.router();
    assert_eq!((hits(&everybody, "lease").await, hits(&everybody, "charter").await), (0, 1));
}

#[tokio::test]
async fn stopping_ends_the_run_that_goes_on_and_waits_for_it() {
    let service = service_of(library());
    let (runs, source) = source();
    let indexer = Indexer::start(&service, source);
    let router = service.router();
    trigger(&router).await;
    trigger(&router).await;
    while runs.begun.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    indexer.stop().await;
    assert!(runs.tell.send(Ok(library())).is_err(), "the source is gone with the indexer");
    assert_eq!(runs.begun.load(Ordering::SeqCst), 1, "what was queued does not begin");
    assert_eq!(hits(&router, "lease").await, 1);
}

#[tokio::test]
async fn a_run_that_panics_is_a_run_that_failed() {
    let service = service_of(library());
    let mut runs = 0;
    let indexer = Indexer::start(&service, move |_: &Progress| -> Result<Library, IndexFault> {
        runs += 1;
        assert!(runs > 1, "the first run breaks off");
        Ok(changed("charter"))
    });
    let router = service.router();
    trigger(&router).await;
    assert!(settled(&router).await["error"].is_string());
    trigger(&router).await;
    assert_eq!(settled(&router).await.get("error"), None);
    assert_eq!(hits(&router, "charter").await, 1);
    indexer.stop().await;
}

#[tokio::test]
async fn health_tells_operators_what_is_served() {
    let root = tempfile::tempdir().expect("a folder");
    let pages = root.path().join("corpus/train/cases/alpha/timestep-1/pages");
    std::fs::create_dir_all(&pages).expect("made");
    std::fs::write(pages.join("page_0001.md"), "A heron.").expect("written");
    let (index, corpus) = (root.path().join("index"), root.path().join("corpus"));
    let service = starting();
    let indexer = Indexer::start(&service, move |progress: &Progress| {
        let sources = gsj_retrieval::Sources::Corpus(&corpus);
        let (library, _) = Library::stored_with(&index, sources, gsj_retrieval::Rebuild::IfStale, progress)?;
        Ok(library)
    });
    let router = service.router();
    assert_eq!(trigger(&router).await.1["reindex"], "started");
    let first = settled(&router).await;
    assert_eq!(first["cases"], json!({"alpha": {"pages": 1, "timesteps": [1], "commit": null}}));
    assert_eq!((&first["decisions"], &first["index_reused"]), (&json!(12), &json!(false)));
    let fingerprint = first["fingerprint"].as_str().expect("a digest");
    assert_eq!(fingerprint.len(), 64);
    trigger(&router).await;
    let again = settled(&router).await;
    assert_eq!((&again["fingerprint"], &again["index_reused"]), (&first["fingerprint"], &json!(true)));
    std::fs::write(pages.join("page_0001.md"), "A kestrel.").expect("written");
    trigger(&router).await;
    let other = settled(&router).await;
    assert_ne!(other["fingerprint"], first["fingerprint"]);
    indexer.stop().await;
}

#[test]
fn decisions_belong_to_the_fingerprint_of_what_is_answered() {
    let of = |text: &str| {
        let file = json!([{"decision_id": "A", "court": "X", "year": 2001, "text": text}]).to_string();
        library().with_decisions(file.as_bytes()).expect("valid").fingerprint()
    };
    assert_eq!(of("a ship"), of("a ship"));
    assert_ne!(of("a ship"), of("a boat"));
    assert_ne!(library().fingerprint(), changed("charter").fingerprint());
}
