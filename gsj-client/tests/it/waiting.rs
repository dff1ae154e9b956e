use std::time::Duration;

use gsj_client::{Client, ClientError, ClientOptions, TaskState};

use crate::server::{Act, Flaky, nobody};

const POLL: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(60);

fn task(status: &str) -> String {
    format!(
        r#"{{"task_id":"t","status":"{status}","total_sessions":1,"completed_sessions":0,"results":[],"result_paths":[]}}"#
    )
}

#[tokio::test]
async fn waiting_survives_everything_that_passes() {
    let server = Flaky::doing([
        Act::Reply(200, task("running")),
        Act::Drop,
        Act::Reply(503, r#"{"detail":"draining"}"#.to_owned()),
        Act::Cut("{\"task_id\"".to_owned()),
        Act::Reply(429, String::new()),
        Act::Reply(200, task("running")),
        Act::Reply(200, task("completed")),
        Act::Reply(500, String::new()),
    ])
    .await;
    let done = Client::new(&server.url).unwrap().wait("t", POLL, LONG).await.unwrap();
    assert_eq!(done.status, TaskState::Completed);
    assert_eq!(server.left(), 1, "nothing is asked after the end");
}

#[tokio::test]
async fn a_failed_task_has_ended_too() {
    let server = Flaky::doing([Act::Reply(200, task("failed"))]).await;
    assert_eq!(Client::new(&server.url).unwrap().wait("t", POLL, LONG).await.unwrap().status, TaskState::Failed);
}

#[tokio::test]
async fn what_does_not_pass_ends_the_wait_at_once() {
    let server = Flaky::doing([
        Act::Reply(404, r#"{"detail":"Task not found"}"#.to_owned()),
        Act::Reply(400, "no".to_owned()),
        Act::Reply(200, "{}".to_owned()),
    ])
    .await;
    let client = Client::new(&server.url).unwrap();
    assert!(matches!(client.wait("t", POLL, LONG).await, Err(ClientError::TaskNotFound { .. })));
    assert!(matches!(client.wait("t", POLL, LONG).await, Err(ClientError::Status { status: 400, .. })));
    let error = client.wait("t", POLL, LONG).await.unwrap_err();
    assert!(error.to_string().ends_with("cannot be read: member `task_id` is missing"), "{error}");
}

#[tokio::test]
async fn the_deadline_says_what_was_seen_last() {
    let running = std::iter::repeat_n(Act::Reply(200, task("running")), 1000);
    let server = Flaky::doing(running).await;
    let error = Client::new(&server.url).unwrap().wait("t", POLL, Duration::from_millis(300)).await.unwrap_err();
    assert!(error.to_string().ends_with("last seen: running, 0 of 1 sessions ended"), "{error}");

    let url = nobody();
    let error = Client::new(&url).unwrap().wait("t", POLL, Duration::from_millis(300)).await.unwrap_err();
    assert!(error.to_string().contains(&format!("last seen: cannot reach the rollout server at {url}")), "{error}");
}

#[tokio::test]
async fn the_deadline_also_ends_a_call_that_hangs() {
    let server = Flaky::doing([]).await;
    let client =
        Client::with_options(&server.url, ClientOptions { call_timeout: LONG, ..ClientOptions::default() }).unwrap();
    assert!(matches!(client.wait("t", POLL, Duration::from_millis(100)).await, Err(ClientError::Deadline { .. })));
}
