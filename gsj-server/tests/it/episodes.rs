//! Episodes that go well, and what is kept of them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::support::{Bench, CANARY, CASE, bash, call, files, holds, task};

const WRITES: &str = "mkdir -p out && echo done > out/report.md && ln -s /etc/hostname out/link && ls md";

fn scripts() -> Value {
    json!({"scripts": {"Summarise": [
        call("mcp_gsj_search_case", json!({"query": "wall"})),
        bash(WRITES),
        {"content": "The wall was built."},
    ]}, "default": [{"content": "Done."}]})
}

fn accepted(result: &Value) {
    assert_eq!(result["status"], "COMPLETED", "{}", result["error"]);
    let trajectory = &result["trajectory"];
    assert_eq!(trajectory["status"], "COMPLETED", "{}", trajectory["error"]);
    let trace = &trajectory["traces"][0];
    assert_eq!(trajectory["traces"].as_array().map(Vec::len), Some(1));
    let length = |key: &str| trace[key].as_array().map(Vec::len);
    assert_eq!(length("response_ids"), length("loss_mask"));
    assert!(trace["loss_mask"].as_array().expect("a mask").contains(&json!(1)));
    let metadata = &trace["metadata"];
    assert_eq!(metadata["session_id"], result["session_id"]);
    assert_eq!(metadata["completion_metadata"].as_array().map(Vec::len), Some(3));
    assert_eq!(metadata["gsj_workspace"]["pages"], json!({"count": 2, "min": 1, "max": 2}));
    assert_eq!(metadata["gsj_workspace"]["commits"], 1);
    assert_eq!(metadata["gsj_agent"]["name"], "light");
    assert_eq!(metadata["gsj_engine"]["kind"], "scripted");
    assert_eq!(metadata["gsj_substituted"], json!([]));
    assert!(result["metadata"]["gsj_overhead_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{}", result["metadata"]);
    for part in ["register_to_init_queue_ms", "init_ms", "run_ms", "postrun_ms"] {
        assert!(result["timing"][part].as_f64().is_some_and(|ms| ms >= 0.0), "{part}: {}", result["timing"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_sessions_complete_behind_walls_and_are_kept_as_they_are_answered() {
    let bench = Bench::new(scripts()).await.bwrap();
    let api = bench.start().await;
    let (code, told) = api.submit(&task("t", "Summarise the case.", 4)).await;
    assert_eq!((code, &told["status"]), (200, &json!("running")), "{told}");
    let status = api.ended("t").await;
    assert_eq!(status["status"], "completed", "{status}");
    assert_eq!((&status["total_sessions"], &status["completed_sessions"]), (&json!(4), &json!(4)));
    let results = status["results"].as_array().expect("results");
    for result in results {
        accepted(result);
        assert_eq!(result["trajectory"]["traces"][0]["metadata"]["gsj_sandbox"]["network"], "none");
        let messages = result["trajectory"]["traces"][0]["response_messages"].to_string();
        assert!(messages.contains("page_0002.md") && !messages.contains("page_0003.md"), "{messages}");
        assert!(messages.contains("number2") && !messages.contains("number3"), "nothing of page 3: {messages}");
    }

    // What is answered is what is stored.
    let stored: Vec<Value> = bench
        .traces()
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path).expect("reads")).expect("JSON"))
        .collect();
    assert_eq!(stored.len(), 4, "quarantined: {:?}", first_quarantined(&bench));
    for result in results {
        assert!(stored.contains(result), "the stored result and the answered one are the same");
        let session = result["session_id"].as_str().expect("an id");
        let artifacts = bench.artifacts(session);
        assert_eq!(fs::read_to_string(artifacts.join("out/report.md")).expect("harvested"), "done\n");
        assert!(!artifacts.join("out/link").exists(), "no link is harvested");
        let deliverables = &result["metadata"]["gsj_deliverables"];
        assert_eq!(deliverables["files"], json!(["report.md"]));
        assert_eq!(deliverables["skipped"], json!(["link: a link"]));
        assert!(artifacts.join("session.log").is_file() && artifacts.join("pi_transcript.jsonl").is_file());
    }
    assert!(bench.quarantined().is_empty());
    let (code, sessions) = api.get("/tasks/t/sessions").await;
    assert_eq!(code, 200);
    assert!(sessions["sessions"].as_array().expect("a list").iter().all(|session| session["status"] == "COMPLETED"));
    api.drain().await;
    assert!(bench.sessions_left().is_empty(), "workspaces are dropped: {:?}", bench.sessions_left());
    assert!(files(&bench.root.path().join("state/run")).is_empty(), "no sandbox is left behind");
    assert_eq!(holds(bench.root.path(), CANARY), None, "the signing secret is in no file");
}

fn first_quarantined(bench: &Bench) -> Option<Value> {
    let path = bench.quarantined().into_iter().next()?;
    let document: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some(json!([document["findings"], document["session_result"]["error"]]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_walls_an_episode_runs_and_says_so() {
    let bench = Bench::new(scripts()).await;
    let api = bench.start().await;
    api.submit(&task("t", "Summarise the case.", 1)).await;
    let status = api.ended("t").await;
    let result = &status["results"][0];
    accepted(result);
    let sandbox = &result["trajectory"]["traces"][0]["metadata"]["gsj_sandbox"];
    assert_eq!((&sandbox["backend"], &sandbox["network"]), (&json!("none"), &json!("host")));
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_sessions_run_at_once() {
    let gate = tempfile::tempdir().expect("a folder");
    fs::set_permissions(gate.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let go = gate.path().join("go");
    let wait = format!("while [ ! -e {} ]; do sleep 0.2; done", go.display());
    let bench = Bench::new(json!([bash(&wait), {"content": "Done."}])).await;
    let api = bench.start().await;
    api.submit(&task("t", "Wait for the others.", 16)).await;
    let status = api.until("/rollout/status", |status| status["pipeline"]["run"]["running"] == 16).await;
    assert_eq!((&status["tasks"]["t"], &status["nodes"][0]["running"]), (&json!("running"), &json!(16)));
    let running = |sessions: &Value| {
        sessions["sessions"].as_array().is_some_and(|list| list.iter().all(|session| session["status"] == "RUNNING"))
    };
    api.until("/tasks/t/sessions", running).await;
    fs::write(&go, "").expect("opens the gate");
    let status = api.ended("t").await;
    assert_eq!((&status["status"], &status["completed_sessions"]), (&json!("completed"), &json!(16)));
    for result in status["results"].as_array().expect("results") {
        let (metadata, timing) = (&result["metadata"], &result["timing"]);
        eprintln!("around agent and engine: {} ms of {timing}", metadata["gsj_overhead_ms"]);
    }
    api.drain().await;
    assert!(bench.sessions_left().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finding_quarantines_the_result_and_the_answer_is_its_very_bytes() {
    let mut bench = Bench::new(scripts()).await;
    // Another roster than the approved one.
    bench.config.harness.tools_allowlist = vec!["bash".to_owned()];
    let api = bench.start().await;
    api.submit(&task("t", "Say something.", 1)).await;
    let status = api.ended("t").await;
    assert_eq!(status["results"][0]["status"], "COMPLETED");
    assert!(bench.traces().is_empty(), "a finding keeps it out of the traces");
    let path = bench.quarantined().pop().expect("quarantined");
    let bytes = fs::read(&path).expect("reads");
    let document: Value = serde_json::from_slice(&bytes).expect("JSON");
    let findings = document["findings"].to_string();
    assert!(findings.contains("G3"), "the finding names the roster: {findings}");
    assert_eq!(document["session_result"], status["results"][0]);
    let text = api.client.get(api.url("/rollout/task/t")).send().await.expect("answers").text().await.expect("text");
    let stored = String::from_utf8(bytes).expect("text");
    let body = stored.split_once("\"session_result\":").expect("a body").1.strip_suffix('}').expect("ends");
    assert!(text.contains(body), "byte for byte");
    assert_eq!(status["result_paths"], json!([path]));
    api.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workspaces_are_kept_when_asked() {
    let mut bench = Bench::new(scripts()).await;
    bench.config.server.workspaces = gsj_server::config::WorkspacePolicy::Keep;
    let api = bench.start().await;
    api.submit(&task("t", "Summarise the case.", 1)).await;
    let status = api.ended("t").await;
    let session = status["results"][0]["session_id"].as_str().expect("an id");
    api.drain().await;
    let kept = bench.root.path().join("state/sessions").join(session).join("workspace");
    assert!(kept.join("md/page_0002.md").is_file() && !kept.join("md/page_0003.md").exists(), "{CASE}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_of_a_task_samples_with_a_seed_of_its_own() {
    let mut bench = Bench::new(scripts()).await;
    bench.config.engine.sampling.seed = Some(41);
    let api = bench.start().await;
    api.submit(&task("t", "Say something.", 3)).await;
    let status = api.ended("t").await;
    let mut seeds = Vec::new();
    for result in status["results"].as_array().expect("results") {
        let log = bench.artifacts(result["session_id"].as_str().expect("an id")).join("session.log");
        let text = fs::read_to_string(log).expect("the gateway's record");
        let record: Value = serde_json::from_str(text.lines().next().expect("a call")).expect("JSON");
        assert_eq!(record["request"]["seed"], record["metadata"]["gsj_sampling"]["seed"], "recorded as sent");
        seeds.push(record["request"]["seed"].as_i64());
    }
    seeds.sort_unstable();
    assert_eq!(seeds, [Some(41), Some(42), Some(43)]);
    api.drain().await;
}

/// The permission bits of a path.
fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// Asserts that nothing below a folder is open to other users.
fn closed(folder: &std::path::Path) {
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    for path in files(folder) {
        if path.is_dir() {
            closed(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_and_answers_are_for_the_servers_user_only() {
    let mut bench = Bench::new(scripts()).await.bwrap();
    bench.config.server.workspaces = gsj_server::config::WorkspacePolicy::Keep;
    let api = bench.start().await;
    api.submit(&task("t", "Summarise the case.", 1)).await;
    let status = api.ended("t").await;
    accepted(&status["results"][0]);
    let state = bench.root.path().join("state");
    for name in ["gsj.sqlite", "gsj.sqlite-wal", "gsj.sqlite-shm", "gsj.lock"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
    for name in ["artifacts", "traces", "quarantine"] {
        closed(&state.join(name));
    }
    let session = state.join("sessions").join(status["results"][0]["session_id"].as_str().expect("an id"));
    for name in ["workspace", "agent"] {
        assert_eq!(mode(&session.join(name)), 0o700, "{name}");
    }
    assert_eq!((mode(&state) & 0o001, mode(&session)), (0o001, 0o711), "the sandbox's user passes through");
    api.drain().await;
}
