use std::time::Duration;

use gsj_gateway::{CallLimits, EngineKind, FailureKind, Session, SessionOptions};
use serde_json::{Value, json};

use crate::support::{Gateway, Served, engine_options, scripted_options, user};

async fn limited(limits: CallLimits) -> (Served, Gateway) {
    let engine = Served::scripted(scripted_options(&json!([]), EngineKind::Vllm)).await;
    let gateway =
        Gateway::open_with(engine_options(EngineKind::Vllm, engine.url()), |session| session.limits = limits).await;
    (engine, gateway)
}

#[tokio::test]
async fn past_a_limit_the_agent_is_told_that_it_is_over() {
    for (limits, name, allowed) in [
        (CallLimits { max_turns: Some(2), max_tokens: None }, "max_turns", 2),
        // Each answer is `Done.` and the end of the turn: six tokens.
        (CallLimits { max_turns: None, max_tokens: Some(13) }, "max_tokens", 3),
    ] {
        let (_engine, gateway) = limited(limits).await;
        for _ in 0..allowed {
            gateway.ask(&user("do")).await;
        }
        assert_eq!(gateway.post(&user("do")).await.unwrap().status(), 410);
        let failure = tokio::time::timeout(Duration::from_secs(20), gateway.session.failed()).await.unwrap();
        assert_eq!((failure.kind, failure.limit), (FailureKind::Limit, Some(name)));
        let recorded = gateway.finish().await;
        assert_eq!((recorded.calls, recorded.tokens), (allowed, 6 * allowed as u64), "what came before it stands");
    }
}

#[tokio::test]
async fn concurrent_calls_do_not_slip_past_the_limit() {
    let (_engine, gateway) = limited(CallLimits { max_turns: Some(3), max_tokens: None }).await;
    let request = user("do");
    let calls = (0..8).map(|_| async { gateway.post(&request).await.unwrap().status().as_u16() });
    let mut statuses = futures_util::future::join_all(calls).await;
    statuses.sort_unstable();
    assert!(statuses.iter().filter(|s| **s == 200).count() <= 3, "{statuses:?}");
    assert!(statuses.iter().all(|s| [200, 410].contains(s)), "{statuses:?}");
}

#[tokio::test]
async fn what_is_no_chat_request_is_refused_and_the_session_goes_on() {
    let (_engine, gateway) = limited(CallLimits::default()).await;
    let response = gateway.post(&json!("hello")).await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("not a JSON object"));
    let elsewhere = format!("{}/v1/embeddings", gateway.served.url());
    assert_eq!(gateway.client.post(elsewhere).send().await.unwrap().status(), 404);
    gateway.ask(&user("do")).await;
    assert_eq!(gateway.outcomes(), ["refused", "completed"]);
    assert_eq!(gateway.session.calls(), 1);
}

#[tokio::test]
async fn the_models_list_names_the_served_model() {
    let (_engine, gateway) = limited(CallLimits::default()).await;
    let url = format!("{}/v1/models", gateway.served.url());
    let answer: Value =
        serde_json::from_slice(&gateway.client.get(url).send().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(answer["data"][0]["id"], "tiny");
}

#[tokio::test]
async fn a_session_can_be_reconstructed_from_its_document() {
    let (_engine, gateway) = limited(CallLimits::default()).await;
    let mut request = user("do");
    request["tools"] = json!([{"type": "function", "function": {"name": "read", "description": "", "parameters": {}}}]);
    gateway.ask(&request).await;
    let recorded = gateway.finish().await;
    let options = gsj_trace::reconstruct::Options { end_of_turn_token_id: Some(258), ..Default::default() };
    let trajectory = gsj_trace::reconstruct::build(&recorded.document, &options).unwrap();
    assert_eq!(trajectory.get("status").and_then(|v| v.as_str()), Some("COMPLETED"), "{}", trajectory.to_json());
    let mask = trajectory.pointer("/traces/0/loss_mask").and_then(|v| v.as_array()).map(|a| a.len());
    assert_eq!(mask, Some(6));
    assert!(trajectory.pointer("/traces/0/response_logprobs/5").and_then(|v| v.as_f64()).is_some());
}

#[tokio::test]
async fn nothing_is_taken_after_the_end() {
    let (_engine, gateway) = limited(CallLimits::default()).await;
    gateway.ask(&user("do")).await;
    gateway.finish().await;
    assert_eq!(gateway.post(&user("do")).await.unwrap().status(), 410);
    assert_eq!(gateway.records().len(), 1);
}

#[tokio::test]
async fn a_log_is_never_written_over() {
    let (engine, gateway) = limited(CallLimits::default()).await;
    let again = std::sync::Arc::new(gsj_gateway::Engine::new(engine_options(EngineKind::Vllm, engine.url())).unwrap());
    let error = Session::open(again, SessionOptions::new("ses-2", &gateway.log)).unwrap_err();
    assert!(error.to_string().contains("session.log"), "{error}");
}
