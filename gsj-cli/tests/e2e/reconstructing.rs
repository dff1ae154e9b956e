//! `gsj reconstruct` on sessions and on gateway logs.

use serde_json::{Value, json};

use crate::support::{gsj, output, text};

/// A completion whose prompt is `prompt` and whose reply is `reply`.
fn record(n: usize, prompt: &[u32], reply: &[u32]) -> Value {
    let logprobs: Vec<Value> = reply.iter().map(|id| json!({"token_id": id, "logprob": -0.5})).collect();
    let messages = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]);
    json!({
        "completion_id": format!("c{n:06}"), "sequence": n, "timestamp": "2026-11-29T00:00:00Z", "outcome": "completed",
        "original_request": {"messages": messages, "tools": [{}], "stream": true},
        "request": {"messages": messages, "tools": [{}]},
        "response": {"prompt_token_ids": prompt, "choices": [{"finish_reason": "stop", "token_ids": reply,
            "message": {"role": "assistant", "content": "r"}, "logprobs": {"content": logprobs}}]},
        "metadata": {"case_id": "c", "gsj_timing": {"total_ms": 1}}, "error": null, "raw": "data: [DONE]"
    })
}

#[test]
fn a_gateways_log_becomes_one_trajectory() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("ses_7");
    std::fs::create_dir(&folder).unwrap();
    let mut refused = record(3, &[1], &[]);
    refused["outcome"] = json!("refused");
    let lines = [record(1, &[7, 8], &[4, 9]), record(2, &[7, 8, 4, 9, 5], &[6, 9]), refused];
    let text_of: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(folder.join("session.log"), text_of.join("\n")).unwrap();

    let run = |format: &str| {
        output(gsj().args(["reconstruct", "--eot", "9", "--format", format]).arg(folder.join("session.log")))
    };
    let ran = run("json");
    assert!(ran.status.success(), "{}", text(&ran));
    let trajectory: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(trajectory["metadata"]["session_id"], "ses_7", "the folder names the session");
    assert_eq!(trajectory["metadata"]["task_metadata"], json!({"case_id": "c"}));
    assert_eq!(trajectory["metadata"]["record_count"], 2, "a refused call is no completion");
    assert_eq!(trajectory["traces"][0]["response_ids"], json!([4, 9, 5, 6, 9]));
    assert_eq!(trajectory["traces"][0]["loss_mask"], json!([1, 1, 0, 1, 1]));
    assert!(text(&ran).contains("1 call without a whole answer"), "{}", text(&ran));

    let shown = String::from_utf8(run("human").stdout).unwrap().replace(&format!("{}/", home.path().display()), "");
    insta::assert_snapshot!(shown, @r"
    ✓ ses_7/session.log  ses_7
        COMPLETED
        1 chain from 2 completions, 2 merged; 2 prompt ids, 5 response ids, 4 trained on
        contexts: 2 exact
    ");
}

#[test]
fn what_is_no_session_is_told_in_its_place() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.jsonl");
    let good = json!({"session_id": "a", "completions": [record(1, &[7, 8], &[4, 9])]});
    let none = json!({"session_id": "b", "completions": []});
    std::fs::write(&path, format!("{good}\n{{\n[]\n{none}\n")).unwrap();
    let ran = output(gsj().args(["reconstruct", "--eot", "9", "--format", "json"]).arg(&path));
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let lines: Vec<Value> =
        String::from_utf8_lossy(&ran.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|l| (l["status"].as_str(), l["error"].as_str())).collect();
    assert_eq!(
        told,
        [
            (Some("COMPLETED"), None),
            (None, Some("invalid_json")),
            (None, Some("not_an_object")),
            (Some("ERROR"), Some("no completions")),
        ]
    );
    assert!(lines[1]["source"].as_str().unwrap().ends_with("sessions.jsonl:2"), "{}", lines[1]);
    let human = output(gsj().args(["reconstruct", "--eot", "9", "--format", "human"]).arg(&path));
    assert!(text(&human).contains("4 sessions, 3 not complete"), "{}", text(&human));
}

#[test]
fn raw_answers_lose_no_token_silently() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("session.json");
    let mut call = record(1, &[7, 8], &[]);
    // One element of three is unusable: the reference drops its token without a word.
    call["response"] = json!({"choices": [{"finish_reason": "stop", "input_token_ids": [7, 8],
        "message": {"role": "assistant", "content": "r"}, "logprobs": {"content": [{}, {}, {}]},
        "meta_info": {"output_token_logprobs": [[-0.5, 4, "a"], [-0.5, null, "b"], [-0.5, 9, "c"]]}}]});
    std::fs::write(&path, json!({"session_id": "a", "completions": [call]}).to_string()).unwrap();
    let findings = |continuity: &str| {
        let mut command = gsj();
        command.args(["reconstruct", "--engine=sglang", "--eot=9", "--format=json", "--continuity", continuity]);
        let ran = output(command.arg(&path));
        let trajectory: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran)));
        (ran.status.code(), trajectory["metadata"]["gsj_validation"]["findings"].clone())
    };
    assert_eq!(findings("reference"), (Some(0), json!([])));
    let (code, found) = findings("same_text");
    assert_eq!(code, Some(1), "{found}");
    assert!(found.to_string().contains("S15:token_id_not_an_integer"), "{found}");
}
