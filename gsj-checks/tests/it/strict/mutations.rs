//! One change of the clean body, one finding.

use gsj_checks::{Policy, Profile};

use super::body::{assert_caught, changed, clean, findings, json, verdict};

const FIDELITY: &str = "/trajectory/metadata/gsj_fidelity";
const TURNS: &str = "/trajectory/traces/0/metadata/gsj_fidelity/turns";
const F1: &str = "F1:missing_evidence:gsj_fidelity";

#[test]
fn the_body_is_clean_under_both_profiles() {
    for profile in Profile::ALL {
        let verdict = verdict(&clean(), &Policy::of(profile));
        assert!(verdict.accepted(), "{profile}: {:?}", verdict.findings);
        assert_eq!(verdict.session_id.as_deref(), Some("sk-1"));
    }
}

#[test]
fn a_certificate_that_is_not_whole_is_missing_evidence() {
    for (pointer, new) in [
        (FIDELITY.to_owned(), None),
        (FIDELITY.to_owned(), Some("null")),
        (format!("{FIDELITY}/continuity"), Some(r#""loose""#)),
        (format!("{FIDELITY}/exact"), Some("-1")),
        (format!("{FIDELITY}/exact"), Some("2.0")),
        (format!("{FIDELITY}/superseded"), None),
        (format!("{FIDELITY}/tokenizer"), Some(r#""ab""#)),
        (format!("{FIDELITY}/tokenizer"), None),
        ("/trajectory/traces/0/metadata/gsj_fidelity".to_owned(), None),
        (TURNS.to_owned(), Some("[]")),
        (format!("{TURNS}/1"), None),
        (format!("{TURNS}/0/completion_id"), Some("7")),
        (format!("{TURNS}/1/kind"), Some(r#""similar""#)),
        (format!("{TURNS}/0/kind"), Some(r#""retokenized""#)),
        (format!("{TURNS}/1/context_sha256"), Some(r#""ABC""#)),
        (format!("{TURNS}/1/differing_tokens"), Some("3")),
        (format!("{TURNS}/1/differing_tokens"), None),
    ] {
        let body = changed(&pointer, new);
        assert_eq!(findings(&body, Profile::Reference), [""; 0], "{pointer}");
        assert_eq!(findings(&body, Profile::Strict), [F1], "{pointer}: {new:?}");
    }
    let tokenizer = format!("\"{}\"", "0a".repeat(20));
    assert!(findings(&changed(&format!("{FIDELITY}/tokenizer"), Some(&tokenizer)), Profile::Strict).is_empty());
}

#[test]
fn a_body_without_a_certificate_passes_where_none_is_asked_for() {
    let mut body = changed(FIDELITY, None);
    super::body::at(&mut body, "/trajectory/traces/0/metadata").as_object_mut().expect("object").remove("gsj_fidelity");
    assert_eq!(findings(&body, Profile::Strict), [F1, F1], "once for the session, once for the trace");
    let lenient = Policy { require_fidelity: false, ..Policy::default() };
    assert!(verdict(&body, &lenient).accepted());
    // One that is there is judged all the same.
    assert_eq!(verdict(&changed(FIDELITY, Some("7")), &lenient).findings, [F1]);
    let edited = changed("/trajectory/traces/0/response_ids/1", Some("103"));
    assert_eq!(verdict(&edited, &lenient).findings, ["F2:context_hash_mismatch:turn=2"]);
}

#[test]
fn an_edited_context_does_not_have_its_hash() {
    assert_caught(&changed("/trajectory/traces/0/response_ids/1", Some("103")), &["F2:context_hash_mismatch:turn=2"]);
    assert_caught(&changed("/trajectory/traces/0/response_ids/3", Some("53")), &["F2:context_hash_mismatch:turn=2"]);
    assert_caught(
        &changed("/trajectory/traces/0/prompt_ids/0", Some("4")),
        &["F2:context_hash_mismatch:turn=1", "F2:context_hash_mismatch:turn=2"],
    );
    // A bit of the mask at the end of a turn moves nothing that the certificate covers, but ends the run elsewhere.
    assert_caught(&changed("/trajectory/traces/0/loss_mask/2", Some("0")), &[]);
    // A turn that was sampled from another context has another hash: nothing can be compared.
    let mut body = changed(&format!("{TURNS}/1/kind"), Some(r#""retokenized""#));
    *super::body::at(&mut body, &format!("{TURNS}/1/context_sha256")) = json(&format!("\"{}\"", "0".repeat(64)));
    assert_caught(&body, &[]);
}

#[test]
fn turns_on_another_context_are_counted_against_the_limit() {
    for kind in ["template", "rewritten", "inexact"] {
        let body = changed(&format!("{TURNS}/1/kind"), Some(&format!("\"{kind}\"")));
        assert_caught(&body, &["F3:inexact_context:1>0"]);
        assert!(verdict(&body, &Policy { max_inexact_contexts: 1, ..Policy::default() }).accepted());
    }
    let retokenized = changed(&format!("{TURNS}/1/kind"), Some(r#""retokenized""#));
    assert_caught(&retokenized, &[]);
    let counting = Policy { count_retokenized: true, ..Policy::default() };
    assert_eq!(verdict(&retokenized, &counting).findings, ["F3:inexact_context:1>0"]);
}

#[test]
fn ids_that_are_no_ids_leave_no_context_to_hash() {
    let body = changed("/trajectory/traces/0/response_ids/1", Some("4294967296"));
    assert_caught(
        &body,
        &["TY1:token_id_not_an_integer:response_ids:first=1:count=1", "F2:context_hash_mismatch:turn=2"],
    );
}

/// The order of the table: session before trace, and each trace after the reference's findings on it.
#[test]
fn findings_come_in_the_order_of_the_table() {
    let mut body = changed("/trajectory/status", Some(r#""ERROR""#));
    for (pointer, new) in [
        ("/status", r#""ERROR""#),
        ("/trajectory/metadata/gsj_validation", "7"),
        ("/trajectory/metadata/reconstruction_stats/chains_total", "2"),
        ("/trajectory/metadata/gsj_fidelity", "{}"),
        ("/trajectory/traces/0/finish_reason", "null"),
        ("/trajectory/traces/0/prompt_ids/0", "null"),
        ("/trajectory/traces/0/reward", "NaN"),
        ("/trajectory/traces/0/prompt_messages/1/role", r#""developer""#),
        ("/trajectory/traces/0/response_messages/1/content", r#""md""#),
        ("/trajectory/traces/0/metadata/gsj_workspace/remotes", "false"),
        ("/trajectory/traces/0/metadata/prompt_source", r#""skill:beta""#),
    ] {
        *super::body::at(&mut body, pointer) = json(new);
    }
    assert_eq!(
        findings(&body, Profile::Strict)
            .iter()
            .map(|f| f.split(':').take(2).collect::<Vec<_>>().join(":"))
            .collect::<Vec<_>>(),
        [
            "ADM1:status_not_completed",
            "G7:chains_total_ne_1",
            "ADM6:trajectory_status_not_completed",
            "ADM7:missing_evidence",
            "ADM8:trace_count_ne_chains_total",
            "F1:missing_evidence",
            "TR1:finish_reason_not_allowed",
            "TY1:token_id_not_an_integer",
            "TY3:reward_not_a_number",
            "G2:system_prompt_hash_not_approved",
            "G5:search_result_unreadable",
            "G5:checkout_history_posture",
            "G1:skill_card_hash_not_for_skill",
            "F2:context_hash_mismatch",
            "F2:context_hash_mismatch",
        ]
    );
}
