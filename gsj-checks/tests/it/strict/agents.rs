//! What our agents put in place of a search result when a call fails, measured by running them against a service that
//! fails in each of these ways.

use std::path::PathBuf;

use gsj_trace::json::Value;

use super::body::{assert_caught, changed, findings};

const CONTENT: &str = "/trajectory/traces/0/response_messages/1/content";

/// pi 0.83.0 with agents/pi/gsj-mcp.js.
const PI: [&str; 14] = [
    // The service refused; its answer held no text; its answer held no hit.
    "Error executing tool search_case: query must be a text",
    "mcp_gsj_search_case failed",
    "(no tool output)",
    // The service was not reached, or answered something else.
    r#"tools/call: the retrieval service answered 401: {"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"unauthorized"}}"#,
    "tools/call: method not found",
    "tools/call: the retrieval service sent no answer",
    "fetch failed",
    "terminated",
    "This operation was aborted",
    // pi itself did not make the call.
    "Operation aborted",
    "Tool execution was blocked",
    "Tool mcp_gsj_search_case not found",
    "Validation failed for tool \"mcp_gsj_search_case\":\n  - query: must have required properties query\n\nReceived \
     arguments:\n{\n  \"k\": 3\n}",
    "Tool call \"mcp_gsj_search_case\" was not executed: the response hit the output token limit, so its arguments may be \
     truncated. Re-issue the tool call with complete arguments.",
];

/// agents/light/agent.py.
const LIGHT: [&str; 8] = [
    "",
    "Error executing tool search_case: x",
    "The call failed: KeyError: 'result'",
    "The call failed: HTTPError: HTTP Error 401: Unauthorized",
    "The call failed: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "The call failed: RemoteDisconnected: Remote end closed connection without response",
    "The call failed: JSONDecodeError: Expecting ':' delimiter: line 1 column 9 (char 8)",
    "There is no tool named mcp_gsj_search_case.",
];

#[test]
fn the_text_of_a_failed_call_is_readable() {
    for text in PI.into_iter().chain(LIGHT) {
        assert_caught(&changed(CONTENT, Some(&Value::from(text).to_json())), &[]);
    }
}

#[test]
fn the_text_of_a_failed_call_speaks_of_no_later_page() {
    use gsj_checks::Profile;
    for text in [
        "Error executing tool search_case: {\"page\": 99}",
        "The call failed: md/page_0099.md",
        "Validation failed for tool \"mcp_gsj_search_case\":\n  - query: x\n\nReceived arguments:\n{\n  \"page\": 99\n}",
    ] {
        let body = changed(CONTENT, Some(&Value::from(text).to_json()));
        assert_eq!(findings(&body, Profile::Reference), ["G5:search_page_gt_timestep:99>5"]);
        assert_eq!(findings(&body, Profile::Strict), ["G5:search_result_unreadable:call_0"], "{text}");
    }
    let early = Value::from("Error executing tool search_case: {\"page\": 5}").to_json();
    assert_caught(&changed(CONTENT, Some(&early)), &[]);
}

/// The agents still say these words: who changes them there meets this test.
#[test]
fn the_agents_word_their_errors_so() {
    let agents = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../agents");
    let (Ok(pi), Ok(light)) =
        (std::fs::read_to_string(agents.join("pi/gsj-mcp.js")), std::fs::read_to_string(agents.join("light/agent.py")))
    else {
        return eprintln!("SKIPPED: no agents in {}", agents.display());
    };
    for thrown in [
        "throw new Error(`${message.method}: the retrieval service answered ${response.status}: ",
        "throw new Error(`${method}: the retrieval service sent no answer`)",
        "throw new Error(`${method}: ${answer.error.message",
        "throw new Error(content.map((part) => part.text).join(\"\\n\") || `${name} failed`)",
        "client.call(\"tools/call\"",
    ] {
        assert!(pi.contains(thrown), "gsj-mcp.js no longer has `{thrown}`: look at strict/hits.rs");
    }
    for said in ["f\"There is no tool named {name}.\"", "f\"The call failed: {type(error).__name__}: {error}\""] {
        assert!(light.contains(said), "agent.py no longer has `{said}`: look at strict/hits.rs");
    }
}
