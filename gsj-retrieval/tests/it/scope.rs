//! Paths, tokens, scope and what refusals say (retrieval.md sections 2, 4, 6, 10).

use crate::support::{Answer, NOW, call, library, options, post, router, secret, send, service_of, texts, token};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use gsj_cutoff::tokens::{Claims, Secret, mint, mint_admin};
use gsj_retrieval::{Scope, Service, Tools};
use serde_json::{Value, json};

fn minted(claims: Claims) -> String {
    mint(&claims, &secret()).expect("valid claims")
}

fn claims() -> Claims {
    Claims { case_id: "alpha".into(), timestep: 3, episode_id: "ep-1".into(), exp: NOW + 60 }
}

async fn ping(router: &Router, token: &str) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
    send(router, post(&format!("/mcp/{token}"), body.to_string())).await
}

async fn get(router: &Router, path: &str, bearer: Option<&str>) -> Answer {
    let mut request = Request::get(path);
    if let Some(token) = bearer {
        request = request.header("authorization", format!("bEARER   {token} "));
    }
    send(router, request.body(Body::empty()).expect("valid")).await
}

fn assert_refused(answer: &Answer, words: &[&str]) {
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(-32001)));
    assert_eq!(body.get("result"), None);
    let message = body["error"]["message"].as_str().expect("a message");
    for word in words {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
}

#[tokio::test]
async fn refusals_say_why() {
    let router = router();
    assert_refused(&ping(&router, "garbage").await, &["unauthorized", "token invalid"]);
    let foreign = Secret::new(vec![9; 32]).expect("long enough");
    let forged = mint(&claims(), &foreign).expect("signs");
    assert_refused(&ping(&router, &forged).await, &["unauthorized", "token invalid"]);
    assert_refused(&ping(&router, &minted(Claims { exp: NOW - 30, ..claims() })).await, &["unauthorized", "expired"]);
    assert_eq!(ping(&router, &minted(Claims { exp: NOW - 29, ..claims() })).await.status, StatusCode::OK);
    let unknown = minted(Claims { case_id: "gamma".into(), ..claims() });
    let refused = ping(&router, &unknown).await;
    assert_refused(&refused, &["unauthorized", "unknown case", "gamma"]);
    assert!(!refused.body.contains("alpha"), "an episode reads of no other case: {}", refused.body);
    let late = minted(Claims { timestep: 7, ..claims() });
    assert_refused(&ping(&router, &late).await, &["unauthorized", "timestep 7", "outside 1.."]);
    // Timestep 0, which is never minted.
    let none = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJjYXNlX2lkIjoiYWxwaGEiLCJ0aW1lc3RlcCI6MCwiZXBpc29kZV9pZCI6ImVwLTEiLC\
                JleHAiOjE3OTAwMDAwNjB9.2vY4DzrKeWKh80N1Js3MXnwtitBoSM3B5MTkOJMCrx8";
    assert_refused(&ping(&router, none).await, &["unauthorized", "timestep 0", "outside 1.."]);
    assert_refused(&ping(&router, "").await, &["unauthorized", "missing token"]);
    let admin = mint_admin(NOW + 60, &secret()).expect("signs");
    assert_refused(&ping(&router, &admin).await, &["unauthorized"]);
}

#[tokio::test]
async fn a_refusal_for_a_late_timestep_does_not_tell_the_number_of_pages() {
    let answer = ping(&router(), &minted(Claims { timestep: 900, ..claims() })).await;
    assert!(!answer.body.contains('6'), "alpha has six pages: {}", answer.body);
}

#[tokio::test]
async fn a_refusal_echoes_any_id_and_nothing_of_the_token() {
    let forged = mint(&claims(), &Secret::new(vec![9; 32]).expect("long enough")).expect("signs");
    for (body, id) in [
        (r#"{"id":5}"#.to_owned(), json!(5)),
        (r#"{"id":{"a":[1.5,null]}}"#.to_owned(), json!({"a": [1.5, null]})),
        (r#"{"no":1}"#.to_owned(), Value::Null),
        ("[{\"id\":5}]".to_owned(), Value::Null),
        ("no JSON".to_owned(), Value::Null),
        (format!("{{\"id\":5,\"x\":\"{}\"}}", "y".repeat(1024 * 1024)), Value::Null),
    ] {
        let answer = send(&router(), post(&format!("/mcp/{forged}"), body)).await;
        assert_refused(&answer, &[]);
        assert_eq!(answer.json()["id"], id);
        assert!(!answer.body.contains(forged.split('.').nth(1).expect("three parts")));
    }
    for id in ["12345678901234567890123", "1e2", "-0", "1.0", r#""\ud800""#, "[1, {}]"] {
        let body = format!(r#"{{"x":1e999,"id":0,"\u0069d":{id}}}"#);
        let answer = send(&router(), post(&format!("/mcp/{forged}"), body)).await;
        assert!(answer.body.contains(&format!(r#""id":{id},"#)), "spelled as it was: {}", answer.body);
    }
}

#[tokio::test]
async fn paths_are_exact_decoded_and_queries_are_ignored() {
    let router = router();
    let good = token("alpha", 3);
    for (path, status) in [
        (format!("/mcp/{good}?x=1"), 200),
        (format!("/mcp/{}", good.replace('.', "%2E")), 200),
        (format!("/m%63p/{good}"), 200),
        ("/mcp".to_owned(), 401),
        ("/mcp/".to_owned(), 401),
        (format!("/mcp/{good}/"), 401),
        (format!("/mcp/{good}%20%20"), 401),
        (format!("/mcp/{good}="), 401),
        ("/mcp/%ff".to_owned(), 401),
        (format!("/MCP/{good}"), 404),
        (format!("/mcpx/{good}"), 404),
        ("/health/".to_owned(), 404),
        ("/".to_owned(), 404),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        assert_eq!(send(&router, post(&path, body.to_string())).await.status.as_u16(), status, "{path}");
    }
    let mut headed = post("/mcp", "{}");
    headed.headers_mut().insert("authorization", format!("Bearer {good}").parse().expect("value"));
    assert_refused(&send(&router, headed).await, &["missing token"]);
}

#[tokio::test]
async fn the_token_is_looked_at_before_the_method() {
    assert_eq!(get(&router(), "/mcp/garbage", None).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&router(), "/mcp", None).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn without_a_library_an_episode_is_503_and_served_after_publish() {
    let service = Service::starting(Tools::builtin().expect("shipped"), vec![secret()], options());
    let router = service.router();
    let answer = ping(&router, "garbage").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "readiness comes before the token");
    let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("not ready") && message.contains("indexing") && message.contains("state=ready"));
    assert_eq!((&answer.json()["id"], &answer.json()["error"]["code"]), (&json!("a"), &json!(-32001)));
    assert_eq!(get(&router, "/health", None).await.body, r#"{"state":"indexing"}"#);
    service.publish(library());
    assert_eq!(ping(&router, &token("alpha", 3)).await.status, StatusCode::OK);
    assert_eq!(get(&router, "/health", None).await.body, r#"{"state":"ready"}"#);
}

#[tokio::test]
async fn a_sessions_own_socket_serves_exactly_its_scope() {
    let scope = Scope { case_id: "alpha".into(), timestep: 3, episode_id: "ep-1".into() };
    let service = service_of(library());
    let own = service.router_for(scope);
    assert_eq!(ping(&own, &minted(claims())).await.status, StatusCode::OK);
    for other in [
        Claims { case_id: "beta".into(), timestep: 2, ..claims() },
        Claims { timestep: 2, ..claims() },
        Claims { timestep: 4, ..claims() },
        Claims { episode_id: "ep-2".into(), ..claims() },
    ] {
        let token = minted(other);
        assert_refused(&ping(&own, &token).await, &["unauthorized", "another session"]);
        assert_eq!(ping(&service.router(), &token).await.status, StatusCode::OK, "it is a good token elsewhere");
    }
    let admin = mint_admin(NOW + 60, &secret()).expect("signs");
    assert_eq!(get(&own, "/health", Some(&admin)).await.body, r#"{"state":"ready"}"#);
}

#[tokio::test]
async fn health_tells_strangers_the_state_and_an_operator_the_cases() {
    let router = router();
    let episode = token("alpha", 3);
    for bearer in [None, Some("garbage"), Some(episode.as_str())] {
        assert_eq!(get(&router, "/health", bearer).await.body, r#"{"state":"ready"}"#);
    }
    let admin = mint_admin(NOW + 60, &secret()).expect("signs");
    let body = get(&router, "/health", Some(&admin)).await.json();
    assert_eq!(body["cases"]["alpha"], json!({"pages": 6, "timesteps": [], "commit": null}));
    assert_eq!((&body["state"], &body["uptime_s"], &body["decisions"]), (&json!("ready"), &json!(0), &json!(12)));
}

#[tokio::test]
async fn claims_never_mix_between_requests_at_once() {
    let router = router();
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..64_u32 {
        let (router, timestep) = (router.clone(), round % 6 + 1);
        tasks.spawn(async move {
            let (case_id, timestep) = if round % 4 == 3 { ("beta", timestep.min(2)) } else { ("alpha", timestep) };
            let result = call(&router, &token(case_id, timestep), "case_status", json!({})).await;
            let status: Value = serde_json::from_str(&texts(&result)[0]).expect("JSON");
            assert_eq!((&status["case_id"], &status["timestep"]), (&json!(case_id), &json!(timestep)));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("each answer is of its own scope");
    }
}

#[tokio::test]
async fn health_is_json_whatever_the_method_and_other_paths_are_text() {
    let router = router();
    for method in ["GET", "POST", "PUT", "DELETE"] {
        let request = Request::builder().method(method).uri("/health").body(Body::empty()).expect("valid");
        let answer = send(&router, request).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "application/json"), "{method}");
        assert_eq!(answer.json()["state"], "ready");
    }
    let answer = get(&router, "/nowhere", None).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.header("content-type").starts_with("text/plain"));
}

#[tokio::test]
async fn token_and_scope_are_looked_at_before_the_message() {
    let router = router();
    for token in ["garbage".to_owned(), minted(Claims { case_id: "gamma".into(), ..claims() })] {
        // None of these would be served with a good token either.
        let message = Request::post(format!("/mcp/{token}"));
        let plain = message.header("content-type", "text/plain").body(Body::from("no JSON")).expect("valid");
        assert_refused(&send(&router, plain).await, &["unauthorized"]);
        assert_refused(&send(&router, post(&format!("/mcp/{token}"), "[]")).await, &["unauthorized"]);
        let large = vec![b' '; 5 * 1024 * 1024];
        assert_refused(&send(&router, post(&format!("/mcp/{token}"), large)).await, &["unauthorized"]);
    }
}

#[tokio::test]
async fn of_several_reasons_the_first_is_told() {
    let router = router();
    let all = Claims { case_id: "gamma".into(), timestep: 900, exp: NOW - 31, ..claims() };
    assert_refused(&ping(&router, &minted(all.clone())).await, &["expired"]);
    assert_refused(&ping(&router, &minted(Claims { exp: NOW + 60, ..all })).await, &["unknown case"]);
}

#[tokio::test]
async fn a_refused_body_is_read_for_its_id_up_to_a_mebibyte() {
    for (size, id) in [(1024 * 1024, json!("x")), (1024 * 1024 + 1, Value::Null)] {
        let start = r#"{"id":"x","pad":""#;
        let body = format!("{start}{}\"}}", "y".repeat(size - start.len() - 2));
        assert_eq!(body.len(), size);
        let answer = send(&router(), post("/mcp/garbage", body)).await;
        assert_refused(&answer, &["unauthorized"]);
        assert_eq!(answer.json()["id"], id, "{size}");
    }
}
