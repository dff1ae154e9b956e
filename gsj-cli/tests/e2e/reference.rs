//! The Python reference's own files, with only addresses and folders changed.

use serde_json::Value;

use crate::support::{Estate, agents_state, fixture, gsj, open_engine, output, shared, text};

#[test]
fn the_references_yaml_and_request_end_in_a_result() {
    let (Some(yaml), Some(request)) =
        (shared("data/rollout.reference.yaml"), shared("data/task_request.reference.json"))
    else {
        return;
    };
    let Some(state) = agents_state() else { return };
    let Some(corpus) = shared("data/staging-corpus") else { return };
    let estate = Estate::of(&corpus);
    let engine = open_engine(&fixture("scripts/demo.json"), &["--model", "Qwen/Qwen3-0.6B"]);
    // Addresses and folders, nothing else.
    let config = std::fs::read_to_string(yaml)
        .unwrap()
        .replace("http://host.docker.internal:3000/gsj-staging/{case_id}.git", &estate.clone_url())
        .replace("http://127.0.0.1:8021", &engine.url)
        .replace("/tmp/gsj-artifacts", estate.path("artifacts").to_str().unwrap())
        .replace("/tmp/gsj-traces", estate.path("traces").to_str().unwrap());
    let path = estate.path("rollout.yaml");
    std::fs::write(&path, config).unwrap();
    let mut request: Value = serde_json::from_str(&std::fs::read_to_string(request).unwrap()).unwrap();
    request["callback_url"] = Value::Null;
    std::fs::write(estate.path("request.json"), request.to_string()).unwrap();

    std::fs::create_dir_all(estate.path("state")).unwrap();
    std::os::unix::fs::symlink(state.join("agents"), estate.path("state/agents")).unwrap();

    // The server's own places come from the environment here: the reference's file has no keys for them.
    let with = |command: &mut std::process::Command| {
        command.env("GSJ_STATE_DIR", estate.path("state")).env("GSJ_PINS_PATH", fixture("pins/thinking-off.json"));
    };
    let mut serve = gsj();
    with(serve.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&path).env_remove("GSJ_TEST_ENGINE_KEY"));
    let server = crate::support::Process::start(&mut serve);
    let mut submit = gsj();
    with(submit.args(["submit", "--format", "json", "--server", &server.url, "--config"]).arg(&path));
    let ran = output(submit.arg("--request").arg(estate.path("request.json")));
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran)));
    // It went the whole way; the staging corpus has an AGENTS.md of its own, so its system prompt is not the pinned one.
    // The end-of-turn id and the glue are Qwen3's, which no tokenizer here has: contexts are proved without them.
    assert_eq!(line["status"], "rejected", "{line}");
    assert!(line["session_id"].as_str().is_some_and(|id| !id.is_empty()));
    let findings: Vec<&str> = line["findings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(findings.len() == 1 && findings[0].starts_with("G2:system_prompt_hash_not_approved:"), "{line}");
}
