//! Timing of a stream, with an engine whose every byte the test gives out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use gsj_gateway::EngineKind;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::support::{Gateway, Served, engine_options, user};

const PATIENCE: Duration = Duration::from_secs(20);

const FIRST: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"},\"token_ids\":[1],\"logprobs\":{\"content\":[{\"token\":\"Hel\",\"logprob\":-0.5}]}}],\"prompt_token_ids\":[7,8]}\n\n";
const LAST: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\",\"token_ids\":[2],\"logprobs\":{\"content\":[{\"token\":\"lo\",\"logprob\":-0.25}]}}]}\n\ndata: {\"id\":\"x\",\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

/// A body fed by the test; says when it is dropped.
struct Feed {
    bytes: mpsc::Receiver<Bytes>,
    dropped: Option<oneshot::Sender<()>>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            let _ = dropped.send(());
        }
    }
}

/// An engine that answers one call with what is sent to it.
async fn engine() -> (Served, mpsc::Sender<Bytes>, oneshot::Receiver<()>) {
    let (sender, bytes) = mpsc::channel(8);
    let (dropped, is_dropped) = oneshot::channel();
    let feed = Arc::new(Mutex::new(Some(Feed { bytes, dropped: Some(dropped) })));
    let handler = post(move || {
        let feed = Arc::clone(&feed);
        async move {
            let feed = feed.lock().await.take().expect("one call only");
            let stream = futures_util::stream::unfold(feed, |mut feed| async move {
                let bytes = feed.bytes.recv().await?;
                Some((Ok::<_, io::Error>(bytes), feed))
            });
            ([("content-type", "text/event-stream; charset=utf-8")], Body::from_stream(stream))
        }
    });
    (Served::router(axum::Router::new().route("/v1/chat/completions", handler)).await, sender, is_dropped)
}

async fn until_recorded(gateway: &Gateway, count: usize) {
    let wait = async {
        while gateway.records().len() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the call is recorded");
}

#[tokio::test]
async fn the_first_piece_passes_on_alone_and_the_record_stands_before_the_end() {
    let (engine, feed, _) = engine().await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let mut response = gateway.post(&user("do")).await.unwrap();
    let first = tokio::time::timeout(PATIENCE, response.chunk())
        .await
        .expect("it does not wait for the rest")
        .unwrap()
        .unwrap();
    assert_eq!(
        std::str::from_utf8(&first).unwrap(),
        "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n"
    );
    assert_eq!(gateway.records().len(), 0, "the call is still running");
    // Cut in the middle of an event: nothing of it may pass on.
    let (head, tail) = LAST.split_at(40);
    feed.send(Bytes::from(head)).await.unwrap();
    feed.send(Bytes::from(tail)).await.unwrap();
    let second = tokio::time::timeout(PATIENCE, response.chunk()).await.unwrap().unwrap().unwrap();
    assert!(std::str::from_utf8(&second).unwrap().contains("\"finish_reason\":\"stop\""));
    assert_eq!(gateway.outcomes(), ["completed"], "the record is there when the finish reason arrives");
    assert_eq!(gateway.records()[0]["raw"], format!("{FIRST}{LAST}"), "the engine's bytes as they came");
    assert_eq!(gateway.records()[0]["response"]["choices"][0]["message"]["content"], "Hello");
}

#[tokio::test]
async fn an_agent_that_leaves_cancels_the_engine() {
    let (engine, feed, dropped) = engine().await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let mut response = gateway.post(&user("do")).await.unwrap();
    response.chunk().await.unwrap();
    drop(response);
    until_recorded(&gateway, 1).await;
    tokio::time::timeout(PATIENCE, dropped).await.expect("the engine's answer is dropped").unwrap();
    assert_eq!(gateway.outcomes(), ["aborted"]);
    assert_eq!(gateway.records()[0]["raw"], FIRST);
    let recorded = gateway.finish().await;
    assert_eq!((recorded.calls, recorded.aborted, recorded.failure), (0, 1, None));
}

#[tokio::test]
async fn an_answer_that_the_agent_hangs_up_on_is_a_turn() {
    let (engine, feed, _dropped) = engine().await;
    let gateway = Gateway::open_with(engine_options(EngineKind::Vllm, engine.url()), |session| {
        session.limits.max_turns = Some(1);
    })
    .await;
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let mut response = gateway.post(&user("do")).await.unwrap();
    response.chunk().await.unwrap();
    drop(response);
    until_recorded(&gateway, 1).await;
    assert_eq!(gateway.post(&user("do")).await.unwrap().status(), 410, "it cannot be sampled again and again");
}

#[tokio::test]
async fn an_agent_that_leaves_before_the_answer_cancels_too() {
    let (engine, feed, dropped) = engine().await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    let mut request = user("do");
    request["stream"] = serde_json::json!(false);
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let call = tokio::time::timeout(Duration::from_millis(300), gateway.post(&request)).await;
    assert!(call.is_err(), "a whole answer cannot be there yet");
    until_recorded(&gateway, 1).await;
    tokio::time::timeout(PATIENCE, dropped).await.expect("the engine's answer is dropped").unwrap();
    assert_eq!(gateway.outcomes(), ["aborted"]);
}

#[tokio::test]
async fn the_end_of_the_session_breaks_off_what_still_runs() {
    let (engine, feed, _dropped) = engine().await;
    let gateway = Gateway::open_with(engine_options(EngineKind::Vllm, engine.url()), |session| {
        session.finish_timeout = Duration::from_millis(50);
    })
    .await;
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let mut response = gateway.post(&user("do")).await.unwrap();
    response.chunk().await.unwrap();
    let recorded = tokio::time::timeout(PATIENCE, gateway.finish()).await.expect("finishing has a deadline");
    assert_eq!((recorded.calls, recorded.aborted), (0, 1));
    assert!(response.chunk().await.is_err(), "the agent sees its connection break");
    assert_eq!(gateway.records()[0]["error"], "the session ended");
}

#[tokio::test]
async fn an_error_in_the_stream_is_half_an_answer() {
    let (engine, feed, _dropped) = engine().await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    feed.send(Bytes::from(FIRST)).await.unwrap();
    let response = gateway.post(&user("do")).await.unwrap();
    feed.send(Bytes::from_static(
        b"data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\ndata: [DONE]\n\n",
    ))
    .await
    .unwrap();
    assert!(response.bytes().await.is_err());
    until_recorded(&gateway, 1).await;
    assert_eq!(gateway.outcomes(), ["aborted"]);
    assert!(gateway.records()[0]["error"].as_str().unwrap().contains("out of memory"));
}
