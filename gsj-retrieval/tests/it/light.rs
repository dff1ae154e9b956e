//! The small agent of `agents/light` against this service and a model of three turns.

use crate::support::{library, service_of, token};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// What the model says, turn by turn; after that, that it has no more to say.
fn script() -> Vec<Value> {
    let first = [
        call("a", "mcp_gsj_search_case", r#"{"query": "SN-0100031"}"#),
        call("b", "bash", r#"{"command": "echo from bash; env | grep GSJ_; exit 3"}"#),
        call("c", "mcp_gsj_case_status", ""),
    ];
    let second = [call("d", "mcp_gsj_search_case", "{broken"), call("e", "write", "{}")];
    vec![
        json!({"role": "assistant", "content": null, "tool_calls": first}),
        json!({"role": "assistant", "content": "so far", "tool_calls": second}),
        json!({"role": "assistant", "content": "the answer"}),
    ]
}

struct Ran {
    success: bool,
    events: Vec<Value>,
    requests: Vec<Value>,
}

/// Runs the agent with a token for `timestep`, against a model that plays `script`.
async fn run(script: Vec<Value>, timestep: u32) -> Option<Ran> {
    if !Path::new("/usr/bin/python3").exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
        {
            eprintln!("SKIPPED: /usr/bin/python3 is not there");
        }
        return None;
    }
    let asked = Arc::new(Mutex::new(Vec::<Value>::new()));
    let seen = Arc::clone(&asked);
    let model = move |Json(request): Json<Value>| {
        let mut seen = seen.lock().expect("not poisoned");
        let choices: Vec<Value> =
            script.get(seen.len()).map(|message| json!({"message": message})).into_iter().collect();
        seen.push(request);
        std::future::ready(Json(json!({"choices": choices})))
    };
    let app = Router::new().route("/v1/chat/completions", post(model)).fallback_service(service_of(library()).router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut agent = tokio::process::Command::new("/usr/bin/python3")
        .args(["-I", "-S", "-B", concat!(env!("CARGO_MANIFEST_DIR"), "/../agents/light/agent.py")])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("GSJ_MODEL", "m")])
        .env("GSJ_MODEL_BASE_URL", format!("{base}/v1"))
        .env("GSJ_MCP_URL", format!("{base}/mcp/{}", token("alpha", timestep)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python starts");
    let mut stdin = agent.stdin.take().expect("piped");
    stdin.write_all("Prüfe die Akte.".as_bytes()).await.expect("written");
    drop(stdin);
    let output = tokio::time::timeout(Duration::from_secs(60), agent.wait_with_output());
    let output = output.await.expect("it ends").expect("it ran");
    server.abort();
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let events = text.lines().map(|line| serde_json::from_str(line).expect("one JSON event a line")).collect();
    let requests = asked.lock().expect("not poisoned").clone();
    Some(Ran { success: output.status.success(), events, requests })
}

#[tokio::test]
async fn the_small_agent_works_through_its_tools_and_settles() {
    let Some(ran) = run(script(), 3).await else { return };
    assert!(ran.success);
    let (last, before) = ran.events.split_last().expect("events");
    assert_eq!(*last, json!({"type": "agent_settled"}));
    let message = &before.last().expect("a message")["message"];
    assert_eq!((&message["role"], &message["stopReason"]), (&json!("assistant"), &json!("stop")));

    let offered: Vec<&Value> =
        ran.requests[0]["tools"].as_array().expect("tools").iter().map(|tool| &tool["function"]["name"]).collect();
    let expected =
        ["bash", "mcp_gsj_search_case", "mcp_gsj_search_decisions", "mcp_gsj_case_status", "mcp_gsj_decision_stats"];
    assert_eq!(offered, expected);
    let first = ran.requests[0]["messages"].as_array().expect("messages");
    assert_eq!(first[0]["role"], "system");
    assert_eq!(first[1], json!({"role": "user", "content": "Prüfe die Akte."}));

    let history = ran.requests.last().expect("three requests")["messages"].as_array().expect("messages");
    assert!(history.starts_with(first), "what was said stays as it was");
    assert_eq!(history[2], script()[0], "calls are echoed with the arguments as they were written");
    let results: Vec<(&str, &str)> = history
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| (message["tool_call_id"].as_str().expect("an id"), message["content"].as_str().expect("text")))
        .collect();
    assert_eq!(results.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    assert!(results[0].1.contains("\"page\": 2") && results[2].1.contains("\"max_visible_page\": 3"));
    assert_eq!(results[1].1, "from bash\n\n[exit code 3]", "bash does not get the agent's own variables");
    assert!(results[3].1.starts_with("The call failed") && results[4].1.contains("no tool named write"));
}

#[tokio::test]
async fn the_small_agent_says_when_it_cannot_go_on_and_shows_no_token() {
    let Some(ran) = run(Vec::new(), 3).await else { return };
    assert!(!ran.success, "the model gave no choice");
    assert_eq!(ran.events.last().expect("an event")["message"]["stopReason"], "error");
    let Some(refused) = run(script(), 99).await else { return };
    assert_eq!(refused.requests.len(), 0, "without retrieval there is no model call");
    let message = refused.events.last().expect("an event")["message"]["errorMessage"].to_string();
    assert!(message.contains("401") && !message.contains("/mcp/"), "{message}");
}
