use std::time::Duration;

use gsj_gateway::{EngineKind, EngineOptions, FailureKind, SessionFailure};
use serde_json::{Value, json};

use crate::support::{Gateway, KINDS, Served, engine_options, scripted_options, user};

/// Words in an error's text that make pi try again (`agent.md` section 2).
const RETRY_WORDS: [&str; 14] = [
    "429",
    "500",
    "502",
    "503",
    "504",
    "524",
    "timeout",
    "rate",
    "server",
    "internal",
    "overloaded",
    "connection",
    "terminated",
    "ended without",
];

fn fault(name: &str, times: u32) -> Value {
    json!([{"content": "A text that is long enough for several pieces of a stream.", "fault": name, "fault_times": times}])
}

async fn assert_gone(gateway: &Gateway, stream: bool) {
    let mut request = user("again");
    request["stream"] = json!(stream);
    let response = gateway.post(&request).await.unwrap();
    assert_eq!(response.status(), 410);
    let text = response.text().await.unwrap().to_lowercase();
    for word in RETRY_WORDS {
        assert!(!text.contains(word), "`{word}` would make the agent try again: {text}");
    }
}

async fn failure_of(gateway: &Gateway) -> SessionFailure {
    tokio::time::timeout(Duration::from_secs(20), gateway.session.failed()).await.expect("the session has failed")
}

#[tokio::test]
async fn a_passing_fault_is_not_seen_by_the_agent() {
    for name in ["http_429", "http_500", "reset"] {
        for stream in [true, false] {
            let engine = Served::scripted(scripted_options(&fault(name, 2), EngineKind::Vllm)).await;
            let options = EngineOptions { stream, ..engine_options(EngineKind::Vllm, engine.url()) };
            let gateway = Gateway::open(options).await;
            let answer = gateway.ask(&user("do")).await;
            assert_eq!(answer.finish_reason, "stop", "{name}");
            let recorded = gateway.finish().await;
            assert_eq!((recorded.calls, recorded.failure), (1, None), "{name}");
        }
    }
}

#[tokio::test]
async fn a_lasting_fault_ends_the_session_with_a_sentence() {
    for (name, kind, words) in [
        ("http_429", FailureKind::EngineFailing, "HTTP 429 (`rate limited`; tried 3 times)"),
        ("http_500", FailureKind::EngineFailing, "HTTP 500 (`engine failure`; tried 3 times)"),
        ("reset", FailureKind::EngineUnreachable, "tried 3 times"),
    ] {
        let engine = Served::scripted(scripted_options(&fault(name, 99), EngineKind::Vllm)).await;
        let options = EngineOptions { retries: 2, ..engine_options(EngineKind::Vllm, engine.url()) };
        let gateway = Gateway::open(options).await;
        assert_gone(&gateway, true).await;
        let failure = failure_of(&gateway).await;
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.to_string().contains(words) && failure.to_string().contains(&engine.url()), "{failure}");
        assert_gone(&gateway, false).await;
        assert_eq!(gateway.outcomes(), ["refused"], "the first call is on record; the second never reached the engine");
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.failure), (0, Some(failure)));
    }
}

#[tokio::test]
async fn a_silent_engine_is_given_up() {
    let engine = Served::scripted(scripted_options(&fault("stall", 9), EngineKind::Vllm)).await;
    let options = EngineOptions {
        retries: 0,
        read_timeout: Duration::from_millis(200),
        ..engine_options(EngineKind::Vllm, engine.url())
    };
    let gateway = Gateway::open(options).await;
    assert_gone(&gateway, true).await;
    let failure = failure_of(&gateway).await;
    assert_eq!(failure.kind, FailureKind::EngineUnreachable);
    assert!(failure.to_string().contains("no answer in time"), "{failure}");
}

#[tokio::test]
async fn nothing_listening_is_named_without_user_information() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = engine_options(EngineKind::Vllm, format!("http://bob:canary-7@{unused}/v1"));
    options.retries = 1;
    let gateway = Gateway::open(options).await;
    assert_gone(&gateway, true).await;
    let failure = failure_of(&gateway).await.to_string();
    assert!(
        failure.starts_with(&format!("the engine at http://{unused} cannot be reached (Connection refused")),
        "{failure}"
    );
    assert!(!failure.contains("canary") && !failure.contains("bob"), "{failure}");
    assert!(!std::fs::read_to_string(&gateway.log).unwrap().contains("canary"));
}

#[tokio::test]
async fn a_cut_stream_breaks_the_agents_connection_and_is_no_completion() {
    for kind in KINDS {
        let engine = Served::scripted(scripted_options(&fault("cut_stream", 1), kind)).await;
        let gateway = Gateway::open(engine_options(kind, engine.url())).await;
        let response = gateway.post(&user("do")).await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.bytes().await.is_err(), "half an answer must not end as a whole one does");
        // The agent tries again, with the same request.
        assert_eq!(gateway.ask(&user("do")).await.finish_reason, "stop");
        assert_eq!(gateway.outcomes(), ["aborted", "completed"]);
        let aborted = &gateway.records()[0];
        assert!(aborted["raw"].as_str().unwrap().contains("A text"), "what came is kept");
        assert!(aborted["error"].as_str().unwrap().contains("broke off"), "{aborted}");
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.aborted, recorded.failure), (1, 1, None));
        let document: Value = serde_json::from_str(&recorded.document.to_json()).unwrap();
        assert_eq!(document["completions"].as_array().unwrap().len(), 1);
        assert_eq!(document["completions"][0]["sequence"], 2);
    }
}

#[tokio::test]
async fn a_cut_stream_is_retried_as_long_as_the_agent_has_nothing() {
    let engine = Served::scripted(scripted_options(&fault("cut_stream", 1), EngineKind::Vllm)).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    let mut request = user("do");
    request["stream"] = json!(false);
    assert_eq!(gateway.ask(&request).await.finish_reason, "stop");
    assert_eq!(gateway.outcomes(), ["aborted", "completed"]);
    let ids: Vec<Value> = gateway.records().iter().map(|r| r["completion_id"].clone()).collect();
    assert_eq!(ids, ["c000001", "c000002"], "each attempt that answered has a record of its own");
}

#[tokio::test]
async fn answers_without_evidence_end_the_session() {
    for kind in KINDS {
        for (name, expected, cure) in [
            (
                "no_token_ids",
                FailureKind::NoTokenIds,
                if kind == EngineKind::Vllm { "0.10.2" } else { "return_meta_info" },
            ),
            ("no_logprobs", FailureKind::NoLogprobs, "`logprobs`"),
        ] {
            for stream in [true, false] {
                let engine = Served::scripted(scripted_options(&fault(name, 99), kind)).await;
                let options = EngineOptions { stream, ..engine_options(kind, engine.url()) };
                let gateway = Gateway::open(options).await;
                let mut request = user("do");
                request["stream"] = json!(stream);
                if (kind, name) == (EngineKind::Sglang, "no_logprobs") {
                    // Its pairs hold both the ids and the logprobs.
                    gateway.ask(&request).await;
                    let recorded = gateway.finish().await;
                    assert_eq!((recorded.calls, recorded.failure), (1, None));
                    let built = gsj_trace::reconstruct::build(&recorded.document, &Default::default()).unwrap();
                    let logprobs = built.pointer("/traces/0/response_logprobs").and_then(|v| v.as_array());
                    assert_eq!(logprobs.map(|list| list.len() as u64), Some(recorded.tokens), "{}", built.to_json());
                    continue;
                }
                let response = gateway.post(&request).await.unwrap();
                if stream {
                    assert!(response.bytes().await.is_err(), "{kind} {name}: the answer must not end as a whole one");
                } else {
                    assert_eq!(response.status(), 410, "{kind} {name}");
                }
                let failure = failure_of(&gateway).await;
                assert_eq!(failure.kind, expected, "{kind} {name}: {failure}");
                assert!(failure.to_string().contains(cure) && failure.to_string().contains(&engine.url()), "{failure}");
                assert_gone(&gateway, stream).await;
                assert_eq!(gateway.finish().await.calls, 0, "{kind} {name}: it is no completion");
            }
        }
    }
}

#[tokio::test]
async fn a_logprob_that_is_no_number_is_recorded_as_it_came() {
    for stream in [true, false] {
        let engine = Served::scripted(scripted_options(&fault("nan_logprob", 1), EngineKind::Sglang)).await;
        let options = EngineOptions { stream, ..engine_options(EngineKind::Sglang, engine.url()) };
        let gateway = Gateway::open(options).await;
        gateway.ask(&user("do")).await;
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.failure), (1, None));
        let first = recorded.document.pointer("/completions/0/response/choices/0/logprobs/content/0/logprob");
        assert!(first.and_then(|v| v.as_f64()).is_some_and(f64::is_nan), "the validators judge it, not the gateway");
    }
}

#[tokio::test]
async fn an_aborted_generation_is_a_completion_that_says_so() {
    let script = json!([{"content": "half", "finish_reason": "abort"}]);
    let engine = Served::scripted(scripted_options(&script, EngineKind::Vllm)).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    assert_eq!(gateway.ask(&user("do")).await.finish_reason, "abort");
    assert_eq!(gateway.outcomes(), ["completed"]);
}

#[tokio::test]
async fn an_unknown_model_is_named_with_those_that_are_served() {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let options = EngineOptions { model: "huge".to_owned(), ..engine_options(EngineKind::Vllm, engine.url()) };
    let gateway = Gateway::open(options).await;
    assert_gone(&gateway, true).await;
    let failure = failure_of(&gateway).await;
    assert_eq!(failure.kind, FailureKind::ModelUnknown);
    assert_eq!(
        failure.to_string(),
        format!("the engine at {} does not serve the model `huge`; configure one that it serves: `tiny`", engine.url())
    );
}

#[tokio::test]
async fn something_that_is_no_engine_is_named() {
    let other = Served::router(axum::Router::new()).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, other.url())).await;
    assert_gone(&gateway, true).await;
    let failure = failure_of(&gateway).await;
    assert_eq!(failure.kind, FailureKind::RequestRefused);
    assert!(failure.to_string().contains("has no /v1/chat/completions"), "{failure}");
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_named() {
    let mut options = scripted_options(&json!([]), EngineKind::Vllm);
    options.n_ctx = 40;
    let engine = Served::scripted(options).await;
    let gateway = Gateway::open(engine_options(EngineKind::Vllm, engine.url())).await;
    assert_gone(&gateway, true).await;
    let failure = failure_of(&gateway).await;
    assert_eq!(failure.kind, FailureKind::ContextOverflow);
    assert!(failure.to_string().contains("maximum context length is 40 tokens"), "{failure}");
}
