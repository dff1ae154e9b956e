//! Sixteen episodes at once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::first_timestep;
use crate::support::{Estate, fixture, get, http, scripted_engine, until};

#[test]
fn sixteen_episodes_run_at_once() {
    let estate = Estate::new();
    estate.install("light");
    // Each answer waits long enough for all sixteen to be seen running together.
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &["--latency-ms", "4000"]);
    let config =
        estate.configure(&engine.url, "light", |config| config["workers"] = json!({"init": 4, "run": 16, "post": 2}));
    let server = estate.serve(&config);
    let timestep = first_timestep();
    let task = json!({
        "task_id": "sixteen", "instruction": "Summarise the case.", "num_samples": 16, "timeout_seconds": 300,
        "agent": {"harness": "light", "settings": {"case_id": "harbor-lease", "timestep": timestep}},
        "metadata": {"case_id": "harbor-lease", "timestep": timestep, "prompt_source": "free"},
    });
    let (status, answer) = http(&format!("{}/rollout/task/submit", server.url), "POST", Some(&task));
    assert_eq!(status, 200, "{answer}");
    until("sixteen RUNNING in one status", Duration::from_secs(120), || {
        let status = get(&format!("{}/rollout/status", server.url));
        (status["pipeline"]["run"]["running"] == 16).then_some(())
    });
    let ended = until("all to end", Duration::from_secs(300), || {
        let status = get(&format!("{}/rollout/task/sixteen", server.url));
        (status["status"] != "running").then_some(status)
    });
    let results = ended["results"].as_array().unwrap();
    assert_eq!(results.len(), 16);
    for result in results {
        assert_eq!(result["status"], "COMPLETED", "{}", result["error"]);
        let around = &result["metadata"]["gsj_overhead_ms"];
        assert!(around.is_number(), "{}", result["metadata"]);
        eprintln!("{} {around} ms around agent and engine", result["session_id"].as_str().unwrap());
    }
    let traces = std::fs::read_dir(estate.path("state/traces")).unwrap().count();
    assert_eq!(traces, 16, "all accepted: {:?}", quarantined(&estate));
}

fn quarantined(estate: &Estate) -> Vec<Value> {
    std::fs::read_dir(estate.path("state/quarantine"))
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|e| serde_json::from_slice::<Value>(&std::fs::read(e.path()).ok()?).ok())
                .map(|v| v["findings"].clone())
                .collect()
        })
        .unwrap_or_default()
}
