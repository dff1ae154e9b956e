use gsj_client::{ClientError, ClientOptions, TaskRequest, TaskState, blocking};
use serde_json::json;
use std::time::Duration;

use gsj_client::Client;

use crate::server::{Act, Flaky, Seen, Server, nobody};

const RUNNING: &str =
    r#"{"task_id":"t","status":"running","total_sessions":2,"completed_sessions":0,"results":[],"result_paths":[]}"#;

#[tokio::test]
async fn a_submit_sends_the_request_and_gives_the_warnings() {
    let server = Server::answering(200, r#"{"task_id":"t","status":"running","warnings":["`x` is ignored"]}"#).await;
    let client = Client::new(&server.url).unwrap();
    let request = TaskRequest::new("t", "do", "pi", "case_0001", 7);
    let answer = client.submit(&request).await.unwrap();
    assert_eq!((answer.status, answer.warnings), (TaskState::Running, vec!["`x` is ignored".to_owned()]));
    let other = json!({"task_id": "t", "own": [1.0]});
    client.submit(&other).await.unwrap();
    let sent: Vec<Seen> = server.seen();
    assert_eq!((sent[0].method.as_str(), sent[0].path.as_str()), ("POST", "/rollout/task/submit"));
    assert_eq!(sent[0].body, serde_json::to_string(&request).unwrap());
    assert_eq!(sent[1].body, r#"{"task_id":"t","own":[1.0]}"#);
}

#[tokio::test]
async fn each_call_asks_its_own_path() {
    let server = Server::answering(200, RUNNING).await;
    let client = Client::new(&server.url).unwrap();
    assert_eq!(client.status("a/b").await.unwrap().total_sessions, 2);
    client.cancel("t").await.unwrap();
    client.health().await.unwrap();
    let paths: Vec<String> = server.seen().into_iter().map(|s| format!("{} {}", s.method, s.path)).collect();
    assert_eq!(paths, ["GET /rollout/task/a%2Fb", "DELETE /rollout/task/t", "GET /health"]);
}

#[tokio::test]
async fn sessions_and_server_status_are_read() {
    let body = r#"{"task_id":"t","sessions":[{"session_id":"s","task_id":"t","status":"RUNNING","node_id":null,"reward":null,"timing":{"init_ms":1.5,"run_ms":null},"error":null}]}"#;
    let server = Server::answering(200, body).await;
    let sessions = Client::new(&server.url).unwrap().sessions("t").await.unwrap();
    assert_eq!((sessions[0].session_id.as_str(), sessions[0].status.as_str()), ("s", "RUNNING"));
    assert_eq!(server.seen()[0].path, "/tasks/t/sessions");

    let body = r#"{"tasks":{"t":"completed","u":"odd"},"pipeline":{"run":{"queued":1,"running":16,"limit":16},"odd":3},"nodes":[{"node_id":"n"}]}"#;
    let server = Server::answering(200, body).await;
    let status = Client::new(&server.url).unwrap().status_all().await.unwrap();
    assert_eq!(status.tasks["t"], TaskState::Completed);
    assert_eq!(status.tasks["u"], TaskState::Other("odd".to_owned()));
    assert_eq!(status.stage("run").map(|s| (s.queued, s.running, s.limit)), Some((1, 16, 16)));
    assert_eq!(status.stage("odd"), None);
}

#[tokio::test]
async fn refusals_are_typed() {
    let of = async |status, body: &str| {
        let server = Server::answering(status, body).await;
        Client::new(&server.url).unwrap().submit(&json!({})).await.unwrap_err()
    };
    let invalid = of(422, r#"{"detail":[{"loc":["body","agent"],"msg":"Field required","type":"missing"}]}"#).await;
    match &invalid {
        ClientError::Invalid { details, .. } => {
            assert_eq!(
                (details[0].path.as_str(), details[0].message.as_str(), details[0].kind.as_str()),
                ("agent", "Field required", "missing")
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(!invalid.is_transient());
    let conflict = of(409, r#"{"detail":"task runs with another body"}"#).await;
    assert!(
        matches!(&conflict, ClientError::Status { status: 409, detail, .. } if detail == "task runs with another body")
    );
    assert!(of(503, "").await.is_transient());
    let odd = of(200, "<html>").await;
    assert!(odd.to_string().contains("/rollout/task/submit cannot be read: expected value"), "{odd}");
    // A redirect is shown, not followed.
    assert!(matches!(of(302, "").await, ClientError::Status { status: 302, .. }));
}

#[tokio::test]
async fn an_unknown_task_is_told_from_a_wrong_address() {
    let server = Server::answering(404, r#"{"detail":"Task not found"}"#).await;
    let client = Client::new(&server.url).unwrap();
    assert!(matches!(client.status("t").await, Err(ClientError::TaskNotFound { task_id, .. }) if task_id == "t"));
    assert!(matches!(client.sessions("t").await, Err(ClientError::TaskNotFound { .. })));
    let server = Server::answering(404, "no such page").await;
    let error = Client::new(&server.url).unwrap().status("t").await.unwrap_err();
    assert_eq!(error.to_string(), format!("{}/rollout/task/t answered 404: no such page", server.url));
    for id in ["", ".", ".."] {
        assert!(matches!(client.status(id).await, Err(ClientError::TaskId { .. })));
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_credentials() {
    let url = nobody();
    let error =
        Client::new(&url.replace("http://", "http://user:canary@")).unwrap().submit(&json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot reach the rollout server at {url}/rollout/task/submit; check the address, and that `gsj serve` runs there"
        )
    );
    assert!(!format!("{error:?}").contains("canary"));
    let cause = std::error::Error::source(&error).expect("a cause");
    assert!(cause.to_string().starts_with("Connection refused"), "{cause}");
    assert!(cause.source().is_none(), "the innermost cause stands alone");
}

#[tokio::test]
async fn slow_broken_and_oversized_answers_end_the_call() {
    let options =
        ClientOptions { call_timeout: Duration::from_millis(200), max_answer_bytes: 100, ..ClientOptions::default() };
    let server =
        Flaky::doing([Act::Stall, Act::Cut("{".to_owned()), Act::Drop, Act::Reply(200, "x".repeat(101))]).await;
    let client = Client::with_options(&server.url, options).unwrap();
    assert!(matches!(client.status("t").await, Err(ClientError::Slow { .. })));
    assert!(matches!(client.status("t").await, Err(ClientError::Interrupted { .. })));
    assert!(matches!(client.status("t").await, Err(ClientError::Interrupted { .. })));
    assert!(matches!(client.status("t").await, Err(ClientError::TooLarge { limit: 100, .. })));
}

#[tokio::test]
async fn the_blocking_client_refuses_to_stop_a_runtime() {
    let client = blocking::Client::new("http://127.0.0.1:1").unwrap();
    assert!(matches!(client.health(), Err(ClientError::InsideRuntime)));
    drop(client);
}

#[test]
fn the_blocking_client_makes_the_same_calls() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::answering(200, RUNNING));
    let client = blocking::Client::new(&server.url).unwrap();
    assert_eq!(client.status("t").unwrap().status, TaskState::Running);
    let error = client.wait("t", Duration::from_millis(1), Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, ClientError::Deadline { .. }), "{error}");
    assert!(client.submit(&json!({})).is_ok() && client.health().is_ok() && client.cancel("t").is_ok());
}
