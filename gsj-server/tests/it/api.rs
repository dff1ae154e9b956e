//! The routes, their refusals, events and callbacks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

use crate::support::{Bench, task};

fn scripts() -> Value {
    json!([{"content": "Done."}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_routes_answer_as_the_table_says() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    assert_eq!(api.get("/health").await, (200, json!({"status": "ok", "nodes": 1})));
    assert_eq!(api.get("/rollout/task/none").await, (404, json!({"detail": "Task not found"})));
    assert_eq!(api.get("/nowhere").await, (404, json!({"detail": "Not Found"})));
    assert_eq!(api.delete("/health").await, (405, json!({"detail": "Method Not Allowed"})));
    assert_eq!(api.get("/tasks").await, (200, json!({"tasks": []})));
    assert_eq!(api.get("/tasks?limit=x").await.0, 422);
    assert_eq!(api.get("/rollout/task/none?run=x").await.0, 422);

    let mut body = task("t", "Hello.", 2);
    body["priority"] = json!(1);
    let (code, told) = api.submit(&body).await;
    assert_eq!(
        (code, told),
        (
            200,
            json!({"task_id": "t", "status": "running",
        "warnings": ["priority: unknown field, ignored"]})
        )
    );
    let (_, status) = api.get("/rollout/status").await;
    assert!(status["pipeline"]["init"]["limit"] == 2 && status["nodes"][0]["node_id"] == "gsj-local", "{status}");
    let first = api.ended("t").await;
    assert_eq!(first["run"], 1);

    // After its end the same task runs anew, and its first run stays readable.
    api.submit(&body).await;
    let second = api.ended("t").await;
    assert_eq!(second["run"], 2);
    let (_, earlier) = api.get("/rollout/task/t?run=1").await;
    assert_eq!(earlier, first);
    let ids = |list: &Value| {
        let of = |one: &Value| one["session_id"].as_str().map(str::to_owned);
        list.as_array().expect("a list").iter().map(of).collect::<std::collections::BTreeSet<_>>()
    };
    for (query, run) in [("", &second), ("?run=1", &first), ("?run=2", &second)] {
        let (_, sessions) = api.get(&format!("/tasks/t/sessions{query}")).await;
        assert_eq!(ids(&sessions["sessions"]), ids(&run["results"]), "{query}");
    }
    assert_eq!(api.get("/tasks/t/sessions?run=3").await.0, 404);
    assert_eq!(api.get("/tasks/t/sessions?run=x").await.0, 422);
    let (_, tasks) = api.get("/tasks?status=completed&harness=light&limit=5").await;
    let task = &tasks["tasks"][0];
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1), "{tasks}");
    assert_eq!(
        (&task["num_samples"], &task["completed_sessions"], &task["errored_sessions"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(
        (&task["mean_traces"], &task["mean_completions"], &task["mean_reward"]),
        (&json!(1.0), &json!(1.0), &Value::Null)
    );
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_task_is_the_same_for_the_same_body_and_a_conflict_for_another() {
    let hang = json!([{"content": "I look.", "tool_calls": [{"name": "bash", "arguments": {"command": "sleep 600"}}]}]);
    let bench = Bench::new(hang).await;
    let api = bench.start().await;
    let body = task("t", "Hello.", 1);
    let (_, told) = api.submit(&body).await;
    assert_eq!(api.submit(&body).await, (200, told));
    let (_, sessions) = api.get("/tasks/t/sessions").await;
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1), "no second session: {sessions}");
    let (code, refusal) = api.submit(&task("t", "Something else.", 1)).await;
    assert_eq!((code, refusal), (409, json!({"detail": "task `t` is running with another body"})));
    api.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bodies_are_refused_with_the_fields_path() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    let mut body = task("t", "Hello.", 1);
    body["num_samples"] = json!("many");
    body["agent"]["settings"]["timestep"] = json!(null);
    let (code, refusal) = api.submit(&body).await;
    assert_eq!(code, 422);
    let detail = refusal["detail"].as_array().expect("a list");
    assert_eq!(
        detail[0],
        json!({"loc": ["body", "num_samples"], "msg": "Input should be a valid integer", "type": "int_type"})
    );
    assert_eq!(detail[1]["loc"], json!(["body", "agent", "settings", "timestep"]));
    let mut body = task("t", "Hello.", 1);
    body["agent"]["harness"] = json!("codex");
    let (code, refusal) = api.submit(&body).await;
    assert_eq!(code, 422);
    assert!(refusal["detail"][0]["msg"].as_str().is_some_and(|msg| msg.contains("codex")), "{refusal}");
    let response =
        api.client.post(api.url("/rollout/task/submit")).body("{\"task_id\": ").send().await.expect("answers");
    assert_eq!(response.status(), 422);
    let refusal: Value = serde_json::from_str(&response.text().await.expect("text")).expect("JSON");
    assert_eq!(refusal["detail"][0]["type"], "json_invalid");
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_tell_each_change_in_order() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    let stream = api.client.get(api.url("/events")).send().await.expect("a stream");
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut stream = stream.bytes_stream();
    api.submit(&task("t", "Hello.", 1)).await;
    let mut text = String::new();
    while !text.contains("task.completed") {
        let piece =
            timeout(Duration::from_secs(60), stream.next()).await.expect("in time").expect("goes on").expect("bytes");
        text.push_str(std::str::from_utf8(&piece).expect("text"));
    }
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            format!("{} {}", event["type"].as_str().expect("a type"), event["status"].as_str().expect("a status"))
        })
        .collect();
    let states = ["INITIALIZING", "READY", "RUNNING", "POST_RUN", "BUILDING", "COMPLETED"];
    let mut wanted = vec!["task.created running".to_owned()];
    wanted.extend(states.map(|state| format!("session.state_changed {state}")));
    wanted.push("task.completed completed".to_owned());
    assert_eq!(told, wanted);
    assert!(events.iter().all(|event| event["task_id"] == "t" && event["at"].as_f64().is_some_and(|at| at > 1e9)));
    assert_eq!(events.last().expect("one")["completed_sessions"], 1);
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_is_tried_again_until_it_is_taken() {
    let (taken, mut bodies) = mpsc::channel::<Bytes>(4);
    let tries = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&tries);
    let receiver = Router::new().route(
        "/callbacks/session_result",
        post(move |body: Bytes| async move {
            if counter.fetch_add(1, Ordering::SeqCst) == 0 {
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            taken.send(body).await.expect("the test waits");
            StatusCode::OK
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move { axum::serve(listener, receiver).await });
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    let mut body = task("t", "Hello.", 1);
    body["callback_url"] = json!(format!("http://{address}/callbacks/session_result"));
    api.submit(&body).await;
    let delivered = timeout(Duration::from_secs(60), bodies.recv()).await.expect("in time").expect("a body");
    assert_eq!(tries.load(Ordering::SeqCst), 2, "the first answer was no acceptance");
    let result: Value = serde_json::from_slice(&delivered).expect("JSON");
    assert_eq!(result, api.ended("t").await["results"][0]);
    api.drain().await;
    serving.abort();
}
