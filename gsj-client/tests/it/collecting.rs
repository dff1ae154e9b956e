use gsj_client::{Client, ClientError, Pins, Policy, Profile};
use gsj_trace::canonical::{canonical_sha256, text_sha256};
use gsj_trace::json::Value;
use serde_json::json;

use crate::server::Server;

const TOOLS: &str = r#"[{"type":"function","function":{"name":"read"}}]"#;
const SETTINGS: &str = r#"{"compaction":{"enabled":false}}"#;

fn hash(text: &str) -> String {
    canonical_sha256(Value::parse(text.as_bytes()).expect("JSON").as_ref()).expect("can be hashed")
}

fn pins() -> Pins {
    let other = "0".repeat(64);
    let document = json!({"format": "gsj-pins/1", "pins": {
        "tool_roster_hash": [hash(TOOLS)], "settings_hash": [hash(SETTINGS)], "system_prompt_hash": [text_sha256("Be exact.")],
        "skill_card_hash": [other], "g6_expected_tail_ids": [[5, 6]], "tokenizer_hash": ["0".repeat(40)],
        "chat_template_hash": [other], "g6_expected_tail": ["<t>"],
    }});
    Pins::from_bytes("test pins", document.to_string().into_bytes())
}

/// A result that passes, spelled in a way that no JSON library would write again.
fn result(session: &str, system: &str) -> String {
    format!(
        r#"{{ "session_id":"{session}", "task_id":"t","status":"COMPLETED","error":null,"metadata":{{}},"timing":{{"run_ms":1.50}},"trajectory":{{"status":"COMPLETED","error":null,
        "metadata":{{"reconstruction_stats":{{"chains_total":1,"chains_reconstructed_full":1,"chains_reconstructed_truncated":0,"raw_completions_total":1,"completions_total":1,"completions_merged":1}},"gsj_validation":{{"builder":"b","findings":[],"glue_stitched":0}}}},
        "traces":[{{"prompt_ids":[1,5,6],"response_ids":[7,9],"loss_mask":[1,1],"response_logprobs":[-0.50,-2.5e-1],"finish_reason":"stop","reward":null,"tools":{TOOLS},
        "prompt_messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"go"}}],"response_messages":[{{"role":"assistant","content":"done"}}],
        "metadata":{{"case_id":"c","timestep":3,"prompt_source":"free","gsj_settings":{SETTINGS},"gsj_workspace":{{"branch":"timestep-3","shallow":true,"commits":1,"remotes":0,"pages":{{"count":3,"min":1,"max":3}}}}}}}}]}}}}"#
    )
}

fn policy() -> Policy {
    Policy { profile: Profile::Reference, ..Policy::default() }
}

fn answer(total: usize, results: &[String]) -> String {
    format!(
        r#"{{"task_id":"t","status":"completed","total_sessions":{total},"completed_sessions":{},"results":[{}],"result_paths":[]}}"#,
        results.len(),
        results.join(",\n")
    )
}

#[tokio::test]
async fn results_are_judged_from_their_own_bytes() {
    let good = result("s1", "Be exact.");
    let rewritten = result("s2", "Be very exact.");
    let failed = r#"{"session_id":"s3","status":"ERROR","error":"no_model_call","trajectory":{"status":"ERROR","metadata":{},"traces":[],"error":null}}"#.to_owned();
    let nan = result("s4", "Be exact.").replace("-2.5e-1", "NaN");
    let unreadable = r#"{"session_id":"s5","status":"COMPLETED" 5}"#.to_owned();
    let server = Server::answering(200, answer(7, &[good.clone(), rewritten, failed, nan, unreadable])).await;
    let collected = Client::new(&server.url).unwrap().collect("t", &pins(), &policy()).await.unwrap();

    let accepted: Vec<(Option<&str>, &[u8])> =
        collected.accepted.iter().map(|i| (i.session_id.as_deref(), &i.bytes[..])).collect();
    assert_eq!(accepted, [(Some("s1"), good.as_bytes())], "the bytes are those of the answer, not written again");
    assert_eq!(collected.accepted[0].parse().unwrap().pointer("/timing/run_ms").and_then(|v| v.as_f64()), Some(1.5));

    let rejected: Vec<(Option<&str>, String)> =
        collected.rejected.iter().map(|r| (r.item.session_id.as_deref(), r.findings.join(" "))).collect();
    let g2 = format!("G2:system_prompt_hash_not_approved:{}", text_sha256("Be very exact."));
    assert_eq!(
        rejected,
        [
            (Some("s2"), g2),
            (Some("s4"), "LP4:nonfinite_logprob:first=1:count=1".to_owned()),
            (None, "invalid_json".to_owned())
        ]
    );

    let failed = &collected.failed[0];
    assert_eq!(
        (failed.item.session_id.as_deref(), failed.status.as_str(), failed.error.as_deref()),
        (Some("s3"), "ERROR", Some("no_model_call"))
    );
    assert!(failed.findings.contains(&"ADM1:status_not_completed:ERROR".to_owned()), "{:?}", failed.findings);
    assert_eq!((collected.missing, collected.is_complete()), (2, false));
}

#[tokio::test]
async fn of_two_results_of_a_session_the_last_counts() {
    let server = Server::answering(200, answer(1, &[result("s1", "Be exact."), result("s1", "x")])).await;
    let collected = Client::new(&server.url).unwrap().collect("t", &pins(), &policy()).await.unwrap();
    assert_eq!((collected.accepted.len(), collected.rejected.len()), (0, 1));

    let server = Server::answering(200, answer(1, &[result("s1", "x"), result("s1", "Be exact.")])).await;
    let collected = Client::new(&server.url).unwrap().collect("t", &pins(), &policy()).await.unwrap();
    assert!(collected.is_complete() && collected.accepted.len() == 1);
}

#[tokio::test]
async fn unusable_pins_judge_nothing() {
    let server = Server::answering(200, answer(1, &[result("s1", "Be exact.")])).await;
    let client = Client::new(&server.url).unwrap();
    let error = client.collect("t", &Pins::from_fault("missing.json", "no such file"), &policy()).await.unwrap_err();
    assert!(matches!(error, ClientError::Pins { .. }), "{error:?}");
}
