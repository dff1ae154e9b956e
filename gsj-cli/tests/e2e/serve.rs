//! `gsj serve` and `gsj submit` together.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{ENGINE_KEY, Estate, SECRET, file_with, fixture, gsj, output, scripted_engine, text};

pub(crate) fn submit(estate: &Estate, config: &Path, url: &str, more: &[&str]) -> std::process::Output {
    output(
        gsj()
            .args(["submit", "--format", "json", "--server", url, "--config"])
            .arg(config)
            .args([
                "--case",
                "harbor-lease",
                "--timestep",
                &first_timestep().to_string(),
                "--prompt",
                "Summarise the case.",
            ])
            .arg("--out")
            .arg(estate.path("results"))
            .args(more),
    )
}

pub(crate) fn first_timestep() -> u32 {
    std::fs::read_dir(fixture("corpus/train/cases/harbor-lease"))
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_string_lossy().strip_prefix("timestep-").and_then(|t| t.parse().ok()))
        .min()
        .unwrap()
}

#[test]
fn four_episodes_are_collected() {
    let estate = Estate::new();
    estate.install("light");
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let config = estate.configure(&engine.url, "light", |_| {});
    let mut server = estate.serve(&config);
    let ran = submit(&estate, &config, &server.url, &["--episodes", "4", "--task-id", "four"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let lines: Vec<Value> =
        String::from_utf8_lossy(&ran.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["status"] == "accepted"), "{lines:?}");
    let results = std::fs::read_dir(estate.path("results")).unwrap().count();
    assert_eq!(results, 4, "a file each");

    // What lies in the results folder passes the same check by hand, and what came is what the server stored.
    let checked = output(
        gsj()
            .args(["check", "--format", "json", "--pins"])
            .arg(fixture("pins/light.thinking-off.json"))
            .arg(estate.path("results")),
    );
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
    let session = lines[0]["session_id"].as_str().unwrap();
    let ours = std::fs::read(estate.path("results").join(format!("{session}.json"))).unwrap();
    let theirs = std::fs::read_dir(estate.path("state/traces"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_string_lossy().starts_with(session))
        .unwrap();
    assert_eq!(ours, std::fs::read(theirs).unwrap(), "the same bytes on disk and over HTTP");

    // The same task id again finds the task ended and collects what is there; nothing runs anew.
    let again = submit(&estate, &config, &server.url, &["--episodes", "4", "--task-id", "four"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let sessions = |lines: &[Value]| {
        lines.iter().map(|l| l["session_id"].as_str().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let second: Vec<Value> =
        String::from_utf8_lossy(&again.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(sessions(&second), sessions(&lines));

    for canary in [SECRET, ENGINE_KEY] {
        assert_eq!(file_with(estate.home.path(), canary.as_bytes()), None);
    }
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().success(), "SIGTERM ends the server cleanly");
}

#[test]
fn a_changed_word_in_a_tools_description_is_rejected() {
    let estate = Estate::new();
    estate.install("light");
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let tools = std::fs::read_to_string(crate::support::project().join("gsj-retrieval/data/tools.json")).unwrap();
    let mut tools: Value = serde_json::from_str(&tools).unwrap();
    let list = tools.pointer_mut("/tools/0/description").unwrap();
    *list = json!(format!("{} Really.", list.as_str().unwrap()));
    std::fs::write(estate.path("tools.json"), tools.to_string()).unwrap();
    let config = estate.configure(&engine.url, "light", |config| {
        config["retrieval"] = json!({"tools_file": estate.path("tools.json")});
    });
    let server = estate.serve(&config);
    let ran = submit(&estate, &config, &server.url, &[]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(line["status"], "rejected");
    assert!(line["findings"][0].as_str().unwrap().starts_with("G3:tool_roster_hash_not_approved:"), "{line}");
    assert_eq!(std::fs::read_dir(estate.path("state/quarantine")).unwrap().count(), 1, "it lies in quarantine");
}

/// Each fault of an engine, and what the session's error must say.
#[test]
fn a_session_says_what_its_engine_did_wrong() {
    let faults = [
        (json!([{"content": "x", "fault": "no_token_ids", "fault_times": 99}]), "token id"),
        (json!([{"content": "x", "fault": "no_logprobs", "fault_times": 99}]), "logprob"),
        (json!([{"content": "x", "fault": "http_500", "fault_times": 99}]), "500"),
    ];
    for (script, word) in faults {
        let estate = Estate::new();
        estate.install("light");
        std::fs::write(estate.path("script.json"), script.to_string()).unwrap();
        let engine = scripted_engine(&estate.path("script.json"), &[]);
        let config = estate.configure(&engine.url, "light", |_| {});
        failed_with(&estate, &config, &[&engine.url, word]);
    }
    let estate = Estate::new();
    estate.install("light");
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let config = estate.configure(&engine.url, "light", |config| config["engine"]["model"] = json!("no-such-model"));
    failed_with(&estate, &config, &[&engine.url, "no-such-model"]);
    let config = estate.configure(&engine.url, "light", |config| config["engine"]["api_key_env"] = json!("HOME"));
    failed_with(&estate, &config, &[&engine.url, "key"]);
    let gone = engine.url.clone();
    drop(engine);
    let config = estate.configure(&gone, "light", |_| {});
    failed_with(&estate, &config, &[&gone, "reach"]);
}

fn failed_with(estate: &Estate, config: &Path, words: &[&str]) {
    let server = estate.serve(config);
    let ran = submit(estate, config, &server.url, &[]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran)));
    assert_eq!(line["status"], "ERROR", "{line}");
    let error = line["error"].as_str().unwrap();
    for word in words {
        assert!(error.contains(word), "`{word}` in: {error}");
    }
    assert!(!error.contains(ENGINE_KEY), "{error}");
}
