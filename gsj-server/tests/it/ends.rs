//! Episodes that do not go well: each ends, says why, and leaves nothing running.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::support::{Bench, bash, task};

fn scripts() -> Value {
    json!({"scripts": {
        "Hang": [bash("sleep 600")],
        "Blind": [{"content": "x", "fault": "no_token_ids", "fault_times": 99}],
    }, "default": [{"content": "Done."}]})
}

async fn one(bench: &Bench, body: &Value) -> Value {
    let api = bench.start().await;
    let (code, told) = api.submit(body).await;
    assert_eq!(code, 200, "{told}");
    let status = api.ended(body["task_id"].as_str().expect("an id")).await;
    assert_eq!(status["status"], "failed", "{status}");
    api.drain().await;
    assert!(bench.traces().is_empty() && bench.sessions_left().is_empty());
    assert_eq!(bench.quarantined().len(), 1, "it is a result all the same");
    status["results"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_a_model_call_is_an_error() {
    let bench = Bench::new(scripts()).await.bwrap();
    let mut body = task("t", "Hello.", 1);
    body["agent"]["harness"] = json!("mute");
    let result = one(&bench, &body).await;
    assert_eq!(result["status"], "ERROR");
    let error = result["error"].as_str().expect("a sentence");
    assert!(
        error.starts_with("no_model_call: ")
            && error.ends_with("(exit code 3) without one answered model call: nothing to say"),
        "{error}"
    );
    assert_eq!(result["trajectory"]["status"], "ERROR");
    assert_eq!(result["trajectory"]["traces"], json!([]));
    let document: Value = serde_json::from_slice(&fs::read(&bench.quarantined()[0]).expect("reads")).expect("JSON");
    assert!(document["findings"].to_string().contains("ADM1"), "{}", document["findings"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_the_run_and_keeps_what_could_be_built() {
    let bench = Bench::new(scripts()).await.bwrap();
    let mut body = task("t", "Hang on.", 1);
    body["timeout_seconds"] = json!(3.0);
    let result = one(&bench, &body).await;
    assert_eq!(result["status"], "TIMEOUT");
    assert_eq!(result["error"], "timeout: the agent ran longer than 3 s");
    assert_eq!(result["trajectory"]["status"], "TIMEOUT");
    assert_eq!(result["trajectory"]["traces"].as_array().map(Vec::len), Some(1), "one call was answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_ends_what_runs_and_what_waits() {
    let mut bench = Bench::new(scripts()).await.bwrap();
    (bench.config.workers.init, bench.config.workers.run, bench.config.workers.post) = (1, 1, 1);
    let api = bench.start().await;
    api.submit(&task("t", "Hang on.", 6)).await;
    api.until("/rollout/status", |status| status["pipeline"]["run"]["running"] == 1).await;
    let (code, _) = api.delete("/rollout/task/t").await;
    assert_eq!(code, 200);
    let status = api.ended("t").await;
    assert_eq!((&status["status"], &status["completed_sessions"]), (&json!("failed"), &json!(0)));
    let errors: Vec<&str> =
        status["results"].as_array().expect("results").iter().filter_map(|result| result["error"].as_str()).collect();
    assert_eq!(errors.len(), 6, "{status}");
    for state in ["RUNNING", "REGISTERED"] {
        let sentence = format!("cancelled: the task was cancelled while the session was {state}");
        assert!(errors.contains(&sentence.as_str()), "{state}: {errors:?}");
    }
    let (code, gone) = api.delete("/rollout/task/nobody").await;
    assert_eq!((code, gone), (404, json!({"detail": "Task not found"})));
    api.drain().await;
    assert!(bench.sessions_left().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_gone_is_named_without_secrets() {
    let mut bench = Bench::new(scripts()).await;
    bench.kill_engine();
    let result = one(&bench, &task("t", "Hello.", 1)).await;
    assert_eq!(result["status"], "ERROR");
    let error = result["error"].as_str().expect("a sentence");
    let url = bench.config.engine.base_url.as_deref().expect("set");
    assert!(error.contains(url), "the sentence names the engine: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_token_ids_end_the_session() {
    let bench = Bench::new(scripts()).await;
    let result = one(&bench, &task("t", "Blind flight.", 1)).await;
    assert_eq!(result["status"], "ERROR");
    assert!(result["error"].as_str().is_some_and(|error| error.contains("token ids")), "{}", result["error"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_case_or_timestep_that_is_not_there_is_said() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    let mut other = task("case", "Hello.", 1);
    other["agent"]["settings"]["case_id"] = json!("case_9999");
    let mut late = task("late", "Hello.", 1);
    late["agent"]["settings"]["timestep"] = json!(9);
    api.submit(&other).await;
    api.submit(&late).await;
    let case = api.ended("case").await;
    assert_eq!(case["results"][0]["error"], "case `case_9999` is not served here; there are: case_0001");
    let late = api.ended("late").await;
    let error = late["results"][0]["error"].as_str().expect("a sentence");
    assert!(error.contains("has no branch `timestep-9`"), "{error}");
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_ends_what_runs_with_a_result_that_says_so() {
    let bench = Bench::new(scripts()).await.bwrap();
    let api = bench.start().await;
    api.submit(&task("t", "Hang on.", 1)).await;
    api.until("/tasks/t/sessions", |sessions| sessions["sessions"][0]["status"] == "RUNNING").await;
    let begun = std::time::Instant::now();
    api.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    let again = bench.start().await;
    let status = again.ended("t").await;
    assert_eq!(status["results"][0]["error"], "interrupted: the server stopped while the session was RUNNING");
    again.drain().await;
}
