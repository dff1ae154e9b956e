use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use gsj_gateway::{ApiKey, Engine, EngineKind, EngineOptions, FailureKind};
use serde_json::json;

use crate::support::{Gateway, Served, engine_options, scripted_options, user};

const CANARY: &str = "sk-canary-9f1c";

fn with_key(url: String, key: &str) -> EngineOptions {
    EngineOptions { api_key: Some(ApiKey::new(key).unwrap()), ..engine_options(EngineKind::Vllm, url) }
}

#[tokio::test]
async fn the_key_opens_the_engine_and_is_seen_nowhere() {
    let mut options = scripted_options(&json!([]), EngineKind::Vllm);
    options.api_key = Some(ApiKey::new(CANARY).unwrap());
    let shown = format!("{options:?}");
    assert!(!shown.contains(CANARY));
    let engine = Served::scripted(options).await;
    let gateway = Gateway::open(with_key(engine.url(), CANARY)).await;
    let answer = gateway.ask(&user("do")).await;
    let requests = gateway.client.get(format!("{}/requests", engine.url())).send().await.unwrap().text().await.unwrap();
    assert!(requests.contains("Bearer ***"), "the engine got a key");
    let recorded = gateway.finish().await;
    for (place, text) in [
        ("the answer", answer.text),
        ("the request log", requests),
        ("the session log", std::fs::read_to_string(&gateway.log).unwrap()),
        ("the document", recorded.document.to_json()),
        ("a debug print", format!("{:?} {:?}", gateway.session, recorded)),
    ] {
        assert!(!text.contains(CANARY), "the key is in {place}: {text}");
    }
}

#[tokio::test]
async fn a_wrong_or_missing_key_ends_the_session() {
    let mut options = scripted_options(&json!([]), EngineKind::Vllm);
    options.api_key = Some(ApiKey::new("the right one").unwrap());
    let engine = Served::scripted(options).await;
    for (options, words) in [
        (with_key(engine.url(), CANARY), "refused the API key (HTTP 401)"),
        (engine_options(EngineKind::Vllm, engine.url()), "none is configured"),
    ] {
        let gateway = Gateway::open(options).await;
        assert_eq!(gateway.post(&user("do")).await.unwrap().status(), 410);
        let failure = gateway.finish().await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::KeyRefused);
        assert!(failure.to_string().contains(words), "{failure}");
        assert!(!failure.to_string().contains(CANARY));
    }
}

#[tokio::test]
async fn an_engine_that_echoes_the_key_does_not_spread_it() {
    // As some servers do: the refused key stands in the error's text.
    let echo = |status: StatusCode| {
        post(move |headers: HeaderMap| async move {
            let key = headers["authorization"].to_str().unwrap().to_owned();
            (status, json!({"error": {"message": format!("bad request with {key}")}}).to_string())
        })
    };
    for status in [StatusCode::UNAUTHORIZED, StatusCode::BAD_REQUEST, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK]
    {
        let engine = Served::router(
            axum::Router::new().route("/v1/chat/completions", echo(status)).route("/tokenize", echo(status)),
        )
        .await;
        let mut options = with_key(engine.url(), CANARY);
        options.retries = 1;
        let asked = Engine::new(options.clone()).unwrap().tokenize("x").await.unwrap_err();
        let gateway = Gateway::open(options).await;
        assert_eq!(gateway.post(&user("do")).await.unwrap().status(), 410, "{status}");
        let failure = gateway.finish().await.failure.unwrap();
        let log = std::fs::read_to_string(&gateway.log).unwrap();
        for text in [format!("{failure:?}"), log, format!("{asked:?} {asked}")] {
            assert!(!text.contains(CANARY), "{status}: {text}");
        }
    }
}
