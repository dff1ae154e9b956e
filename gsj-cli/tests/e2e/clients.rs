//! The official MCP clients against `gsj retrieval serve`.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Process, fixture, gsj, output, project, text};

/// The harbor case has more pages than that.
const TIMESTEP: &str = "12";

fn served() -> (Process, String) {
    let corpus = fixture("corpus");
    let server = Process::start(gsj().args(["retrieval", "serve", "--port", "0", "--corpus"]).arg(corpus));
    let minted =
        output(gsj().args(["token", "mint", "--case", "harbor-lease", "--timestep", TIMESTEP, "--episode", "clients"]));
    assert!(minted.status.success(), "{}", text(&minted));
    let token = String::from_utf8(minted.stdout).unwrap();
    let url = format!("{}/mcp/{}", server.url, token.trim());
    (server, url)
}

/// Runs a client and checks all that it says.
fn check(client: &mut Command, url: &str) {
    let calls = json!([
        {"name": "search_case", "arguments": {"query": "drying shed", "k": 3}},
        {"name": "search_case", "arguments": {"query": "zebra"}},
        {"name": "case_status", "arguments": {}},
        {"name": "search_decisions", "arguments": {"query": "storage", "k": 2}},
        {"name": "decision_stats", "arguments": {}},
        {"name": "search_case", "arguments": {"query": "drying shed", "k": 2.5}},
    ]);
    let ran = output(client.env("MCP_URL", url).env("MCP_CALLS", calls.to_string()));
    assert!(ran.status.success(), "{}", text(&ran));
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&said["server"], &said["version"]), (&json!("gsj"), &json!("2025-11-25")), "{said}");
    assert_eq!(said["tools"], json!(["search_case", "search_decisions", "case_status", "decision_stats"]));
    assert_eq!(said["schemas"], json!(["object", "object", "object", "object"]));
    assert_eq!((&said["prompts"], &said["resources"]), (&json!(0), &json!(0)));
    let calls = said["calls"].as_array().unwrap();
    let texts = |call: usize| calls[call]["texts"].as_array().unwrap();
    let parsed =
        |call: usize, text: usize| -> Value { serde_json::from_str(texts(call)[text].as_str().unwrap()).unwrap() };
    assert_eq!(texts(0).len(), 3);
    for (place, hit) in calls[0]["structured"]["result"].as_array().unwrap().iter().enumerate() {
        assert_eq!(*hit, parsed(0, place), "one text for each hit");
        assert!(hit["page"].as_u64().unwrap() <= TIMESTEP.parse().unwrap());
    }
    assert_eq!((texts(1).len(), &calls[1]["structured"]), (0, &json!({"result": []})));
    assert_eq!(parsed(2, 0)["max_visible_page"], json!(12));
    assert_eq!(calls[2]["structured"], Value::Null);
    assert!((1..=2).contains(&texts(3).len()));
    assert!(parsed(4, 0)["total"].as_u64().unwrap() > 0);
    assert_eq!(calls[5]["is_error"], true);
    assert!(texts(5)[0].as_str().unwrap().starts_with("Error executing tool search_case:"));
}

#[test]
fn the_official_python_client_lists_and_calls_the_tools() {
    let Some(python) = std::env::var_os("GSJ_TEST_MCP_PYTHON") else {
        eprintln!("SKIPPED: no Python client of MCP here; `cargo xtask test --all` installs one");
        return;
    };
    let (_server, url) = served();
    check(Command::new(python).arg(project().join("gsj-cli/tests/clients/client.py")), &url);
}

#[test]
fn the_official_typescript_client_lists_and_calls_the_tools() {
    let Some(sdk) = std::env::var_os("GSJ_TEST_MCP_SDK") else {
        eprintln!("SKIPPED: no TypeScript client of MCP here; `cargo xtask test --all` installs one");
        return;
    };
    let (_server, url) = served();
    let node = std::env::var_os("GSJ_TEST_NODE").unwrap_or_else(|| OsString::from("node"));
    check(Command::new(node).arg(project().join("gsj-cli/tests/clients/client.mjs")).env("MCP_SDK", sdk), &url);
}

/// The reference held such a connection for ever.
#[test]
fn a_get_is_405_at_once_and_the_connection_stays_of_use() {
    let (server, url) = served();
    let address = server.url.trim_start_matches("http://");
    let path = url.trim_start_matches(&server.url);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for last in [false, true] {
        let close = if last { "connection: close\r\n" } else { "" };
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n{close}\r\n").unwrap();
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 405 ").count(), 2, "{answers}");
}
