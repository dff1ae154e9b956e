//! Limits, metrics and what is said of each call (retrieval.md sections 3 and 10).

use crate::support::{NOW, call, library, options, post, secret, send, texts, token};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use gsj_cutoff::tokens::mint_admin;
use gsj_retrieval::{CallRecord, LogField, Options, Service, Tools};
use serde_json::{Value, json};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn served(edit: impl FnOnce(&mut Options)) -> Router {
    let mut options = options();
    edit(&mut options);
    Service::new(library(), Tools::builtin().expect("shipped"), vec![secret()], options).router()
}

async fn search(router: &Router, token: &str, arguments: Value) -> Value {
    call(router, token, "search_case", arguments).await
}

#[tokio::test]
async fn an_episode_that_calls_too_often_is_told_to_wait_and_others_are_served() {
    let router = served(|options| options.calls_per_second_per_episode = NonZeroU32::new(2));
    let (hasty, other) = (token("alpha", 3), token("alpha", 4));
    let mut refused = 0;
    for _ in 0..20 {
        let result = search(&router, &hasty, json!({"query": "heron"})).await;
        if result["isError"] == true {
            refused += 1;
            let text = &texts(&result)[0];
            assert!(text.starts_with("Error executing tool search_case: too many calls"), "{text}");
        }
    }
    assert!(refused > 0, "twenty calls at once are more than two a second");
    assert_eq!(search(&router, &other, json!({"query": "heron"})).await["isError"], false);
    let together = served(|options| options.calls_per_second = NonZeroU32::new(1));
    let mut answers = Vec::new();
    for timestep in 1..=6 {
        answers.push(call(&together, &token("alpha", timestep), "case_status", json!({})).await["isError"] == true);
    }
    assert!(!answers[0] && answers.contains(&true), "{answers:?}");
}

#[tokio::test]
async fn a_query_that_is_too_long_is_a_tool_error_that_says_so() {
    let router = served(|options| options.max_query_chars = 20);
    let fits = search(&router, &token("alpha", 3), json!({"query": "heron ".repeat(3)})).await;
    assert_eq!((&fits["isError"], texts(&fits).len()), (&json!(false), 1));
    let long = search(&router, &token("alpha", 3), json!({"query": "heron ".repeat(4)})).await;
    assert_eq!(long["isError"], true);
    assert!(texts(&long)[0].contains("24 characters, the longest is 20"), "{long}");
}

#[tokio::test]
async fn a_search_that_finds_no_room_is_told_that_the_service_is_busy() {
    let router = served(|options| {
        options.concurrent_searches = NonZeroUsize::MIN;
        options.queue_timeout = Duration::from_secs(30);
        options.max_waiting = 0;
    });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let router = router.clone();
        tasks.spawn(async move { search(&router, &token("alpha", 3), json!({"query": "heron lease mill"})).await });
    }
    let mut served = 0;
    while let Some(result) = tasks.join_next().await {
        let result = result.expect("no panic");
        match result["isError"] == true {
            true => assert!(texts(&result)[0].contains("busy"), "{result}"),
            false => served += 1,
        }
    }
    assert!(served > 0);
}

#[tokio::test]
async fn the_default_of_k_is_configured_and_a_call_may_name_another() {
    let router = served(|options| options.default_k = 1);
    let token = token("alpha", 6);
    assert_eq!(texts(&search(&router, &token, json!({"query": "heron"})).await).len(), 1);
    assert_eq!(texts(&search(&router, &token, json!({"query": "heron", "k": 3})).await).len(), 3);
}

#[tokio::test]
async fn only_listed_hosts_are_answered_where_that_is_asked_for() {
    let hosts = ["retrieval:8790", "127.0.0.1:*", "[::1]:*", "bare"];
    let router = served(|options| options.allowed_hosts = Some(hosts.map(str::to_owned).to_vec()));
    let status = async |host: Option<&str>, path: &str| {
        let mut request = post(path, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        if let Some(host) = host {
            request.headers_mut().insert("host", host.parse().expect("value"));
        }
        send(&router, request).await.status.as_u16()
    };
    let path = format!("/mcp/{}", token("alpha", 3));
    for (host, expected) in [
        ("retrieval:8790", 200),
        ("RETRIEVAL:8790", 200),
        ("retrieval:8791", 421),
        ("retrieval", 421),
        ("127.0.0.1:5", 200),
        ("127.0.0.1", 200),
        ("[::1]:5", 200),
        ("[::1]", 200),
        ("bare", 200),
        ("bare:99", 200),
        ("evil.example", 421),
        ("", 421),
    ] {
        assert_eq!(status(Some(host), &path).await, expected, "{host}");
    }
    assert_eq!(status(None, &path).await, 421);
    assert_eq!(status(Some("evil.example"), "/mcp/garbage").await, 421, "before anything of the token is said");
    assert_eq!(status(Some("evil.example"), "/health").await, 200, "whoever asks for the state may use any name");
}

#[tokio::test]
async fn each_call_gives_one_record_with_its_outcome() {
    let records: Arc<Mutex<Vec<CallRecord>>> = Arc::default();
    let kept = Arc::clone(&records);
    let router = served(|options| {
        options.call_log = Some(Arc::new(move |record: &CallRecord| kept.lock().expect("whole").push(record.clone())));
    });
    let token = token("alpha", 6);
    search(&router, &token, json!({"query": "heron", "k": "2"})).await;
    search(&router, &token, json!({"query": 7})).await;
    call(&router, &token, "rm -rf", json!({"k": 3})).await;
    let nameless = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}});
    send(&router, post(&format!("/mcp/{token}"), nameless.to_string())).await;
    let fields = [LogField::Tool, LogField::K, LogField::NResults, LogField::Outcome];
    let lines: Vec<String> = records.lock().expect("whole").iter().map(|record| record.line(&fields)).collect();
    assert_eq!(
        lines,
        [
            r#"{"tool":"search_case","k":"other","n_results":2,"outcome":"ok"}"#,
            r#"{"tool":"search_case","k":"default","n_results":0,"outcome":"bad_arguments"}"#,
            r#"{"tool":"unknown","k":3,"n_results":0,"outcome":"unknown_tool"}"#,
            r#"{"tool":"unknown","k":"default","n_results":0,"outcome":"bad_arguments"}"#,
        ]
    );
}

#[tokio::test]
async fn metrics_are_for_operators_and_count_what_happened() {
    let router = served(|_| {});
    search(&router, &token("alpha", 3), json!({"query": "heron"})).await;
    search(&router, &token("alpha", 3), json!({"query": "heron"})).await;
    search(&router, &token("alpha", 3), json!({"query": "heron", "k": 2.5})).await;
    send(&router, post("/mcp/garbage", "{}")).await;
    let asked = async |bearer: Option<String>| {
        let mut request = Request::get("/metrics");
        if let Some(token) = bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        send(&router, request.body(Body::empty()).expect("valid")).await
    };
    for stranger in [None, Some(token("alpha", 3))] {
        let answer = asked(stranger).await;
        assert_eq!(answer.status.as_u16(), 401);
        assert!(!answer.body.contains("pages"), "{}", answer.body);
    }
    let answer = asked(Some(mint_admin(NOW + 60, &secret()).expect("signs"))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/plain; version=0.0.4"));
    for line in [
        "gsj_retrieval_calls_total{tool=\"search_case\",outcome=\"ok\"} 2",
        "gsj_retrieval_calls_total{tool=\"search_case\",outcome=\"bad_arguments\"} 1",
        "gsj_retrieval_call_seconds_bucket{le=\"+Inf\"} 3",
        "gsj_retrieval_call_seconds_count 3",
        "gsj_retrieval_refused_total{reason=\"invalid\"} 1",
        "gsj_retrieval_refused_total{reason=\"admin\"} 2",
        "gsj_retrieval_ready 1",
        "gsj_retrieval_cases 2",
        "gsj_retrieval_pages 8",
    ] {
        assert!(answer.body.lines().any(|told| told == line), "{line} in:\n{}", answer.body);
    }
    let (mut named, mut typed) = (0, 0);
    for line in answer.body.lines() {
        named += usize::from(line.starts_with("# HELP "));
        typed += usize::from(line.starts_with("# TYPE "));
        assert!(line.starts_with('#') || line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()));
    }
    assert_eq!(named, typed);
}
