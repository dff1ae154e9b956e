//! Text of a later page in a trace, by whatever way it came there.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Bench, bash, task};

/// A page that the session must not see says this; the estate of these tests is made of such sentences.
const LATER: &str = "The witness of page 3 saw the wall number3 being built.";

fn scripts() -> Value {
    json!({"scripts": {
        "Quote": [{"content": format!("It is said that:\n> {}", LATER.to_uppercase().replace(' ', "\n"))}],
        "Echo": [bash(&format!("echo '{}'", LATER.replace("'", ""))), {"content": "Done."}],
        "Visible": [bash("cat md/page_0001.md md/page_0002.md"), {"content": "The witness of page 2 saw the wall number2 being built."}],
    }, "default": [{"content": LATER}]})
}

fn findings(bench: &Bench) -> Vec<Vec<String>> {
    let read =
        |path: &std::path::PathBuf| -> Value { serde_json::from_slice(&fs::read(path).expect("reads")).expect("JSON") };
    let of = |file: Value| serde_json::from_value(file["findings"].clone()).expect("findings");
    bench.quarantined().iter().map(read).map(of).collect()
}

/// Runs one session with a prompt and gives the findings of what was quarantined, and how many were accepted.
async fn judged(prompt: &str, scan: bool) -> (Vec<Vec<String>>, usize) {
    let mut bench = Bench::new(scripts()).await;
    bench.config.checks.leak_scan = scan;
    let api = bench.start().await;
    let (code, told) = api.submit(&task("t", prompt, 1)).await;
    assert_eq!(code, 200, "{told}");
    api.ended("t").await;
    (findings(&bench), bench.traces().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_quotes_a_later_page_is_a_finding() {
    let (quarantined, accepted) = judged("Quote it.", true).await;
    assert_eq!(accepted, 0);
    let [findings] = &quarantined[..] else { panic!("one result: {quarantined:?}") };
    // The system prompt and the user's are messages 0 and 1.
    assert_eq!(findings, &["G8:later_page_text:3:2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_showed_a_later_page_is_a_finding() {
    let (quarantined, _) = judged("Echo it.", true).await;
    let found: Vec<&String> = quarantined.iter().flatten().filter(|finding| finding.starts_with("G8:")).collect();
    // The call that was written, and what came of it.
    assert_eq!(found, ["G8:later_page_text:3:2", "G8:later_page_text:3:3"], "{quarantined:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_seen_is_no_finding_and_the_scan_can_be_switched_off() {
    assert_eq!(judged("Visible pages, please.", true).await, (vec![], 1));
    assert_eq!(judged(&format!("Is this so? {LATER}"), true).await, (vec![], 1), "the prompt says so itself");
    assert_eq!(judged("Quote it.", false).await, (vec![], 1));
}
