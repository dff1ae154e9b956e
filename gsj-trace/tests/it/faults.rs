//! What an engine's answer may have wrong, and what building says of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gsj_trace::engine::{Dialect, normalize_response, normalize_whole};
use gsj_trace::json::Value;
use gsj_trace::reconstruct::Options;

use crate::toy::{Built, END, Log, USER, same_text, trained};

/// One call whose choice has these members.
fn choice(members: &str) -> Log {
    let mut log = Log::default();
    log.call(&[1, 2], &[3, END], USER).response(|response| {
        let text = format!(r#"{{"choices":[{{"finish_reason":"stop","message":{{"role":"assistant"}},{members}}}]}}"#);
        *response = Value::parse(text.as_bytes()).unwrap().into_owned();
    });
    log
}

fn both(log: &Log) -> [Built; 2] {
    [log.reference(), log.build(&same_text())]
}

#[test]
fn content_that_makes_the_reference_fail_is_named() {
    // D5; `reference` says so as well, where the reference itself throws.
    let mut log = choice(r#""prompt_token_ids":[1,2],"token_ids":[3,1e999]"#);
    log.0[0].as_object_mut().unwrap().insert("metadata", Value::parse(br#"{"policy_version":[1]}"#).unwrap());
    for built in both(&log) {
        assert_eq!(
            built.findings(),
            [
                "S6:empty_response_ids:c0",
                "S15:token_id_not_an_integer:c0:response:first=1",
                "S19:policy_version_not_a_scalar:c0"
            ]
        );
        assert_eq!((built.status().as_str(), built.traces().len()), ("ERROR", 1), "what could be read is there");
    }
    let deep = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
    let mut log = Log::default();
    log.call(&[1, 2], &[3, END], &format!(r#"{{"role":"user","content":{deep}}}"#));
    for built in both(&log) {
        assert_eq!(built.findings(), ["S18:message_nested_too_deep:c0"]);
    }
    let huge = "9".repeat(400);
    let log = choice(&format!(
        r#""prompt_token_ids":[1,2],"token_ids":[3],"logprobs":{{"content":[{{"token_id":3,"logprob":-{huge}}}]}}"#
    ));
    for built in both(&log) {
        assert_eq!(built.findings(), ["S16:logprob_not_finite:c0:first=0"]);
    }
}

#[test]
fn ids_are_integers_in_prompts_and_replies_alike() {
    // D6
    let log = choice(r#""prompt_token_ids":[1,"2"],"token_ids":[3.7,true]"#);
    let [reference, ours] = both(&log);
    assert_eq!(reference.findings(), [""; 0]);
    assert_eq!(reference.at("/traces/0/response_ids").to_json(), "[3,1]", "cut and converted");
    assert_eq!(
        ours.findings(),
        [
            "S1:empty_prompt_ids:c0",
            "S6:empty_response_ids:c0",
            "S15:token_id_not_an_integer:c0:prompt:first=1",
            "S15:token_id_not_an_integer:c0:response:first=0",
        ]
    );
    assert_eq!(ours.counts(), "completions 1, inexact 1", "no ids prove nothing");
    let [_, ours] = both(&choice(
        r#""prompt_token_ids":[1,4294967296],"token_ids":[4294967295],"logprobs":{"content":[{"logprob":-1}]}"#,
    ));
    assert_eq!(ours.findings(), ["S1:empty_prompt_ids:c0", "S15:token_id_not_an_integer:c0:prompt:first=1"]);
}

fn normalised(members: &str, normalise: fn(Dialect, &mut Value<'_>)) -> Log {
    let mut log = choice(members);
    log.response(|response| normalise(Dialect::Sglang, response));
    log
}

#[test]
fn no_token_and_no_logprob_is_lost_between_lists() {
    // D10: an unusable pair.
    let broken = r#""prompt_token_ids":[1,2],"meta_info":{"output_token_logprobs":[[-0.5,3,null],[-0.5,null,null],[-0.5,1001,null]]}"#;
    let reference = normalised(broken, normalize_response).reference();
    assert_eq!(trained(reference.traces()[0]), [3, END], "a token is missing and nothing says so");
    assert_eq!(reference.findings(), [""; 0]);
    let ours = normalised(broken, normalize_whole).build(&same_text());
    assert_eq!(ours.findings(), ["S6:empty_response_ids:c0", "S15:token_id_not_an_integer:c0:response:first=1"]);

    // Fewer logprobs in the one list than in the other.
    let short = r#""prompt_token_ids":[1,2],"logprobs":{"content":[{"logprob":-0.5}]},"meta_info":{"output_token_logprobs":[[-0.5,3,null],[-0.25,1001,null]]}"#;
    let reference = normalised(short, normalize_response).reference();
    assert!(reference.at("/traces/0/response_logprobs").is_null(), "they were there");
    let ours = normalised(short, normalize_whole).build(&same_text());
    assert_eq!(ours.findings(), [""; 0]);
    assert_eq!(ours.at("/traces/0/response_logprobs").to_json(), "[-0.5,-0.25]");

    // A list that is short everywhere.
    let partial = choice(
        r#""prompt_token_ids":[1,2],"token_ids":[3,4,1001],"logprobs":{"content":[{"token_id":3,"logprob":-1.0},{"token_id":4,"logprob":-1.0}]}"#,
    );
    let [reference, ours] = both(&partial);
    assert_eq!((reference.findings(), ours.findings()), (vec![], vec!["S14:logprobs_incomplete:c0:2!=3".to_owned()]));
    assert!(ours.at("/traces/0/response_logprobs").is_null());
}

#[test]
fn logprobs_that_are_no_numbers_do_not_survive() {
    // D17
    for bad in ["NaN", "-Infinity", "null", "\"-1\"", "-1e999"] {
        let log = choice(&format!(
            r#""prompt_token_ids":[1,2],"token_ids":[3,4],"logprobs":{{"content":[{{"token_id":3,"logprob":-1.0}},{{"token_id":4,"logprob":{bad}}}]}}"#
        ));
        let [reference, ours] = both(&log);
        assert_eq!(reference.findings(), [""; 0], "{bad}");
        assert_eq!(ours.findings(), ["S16:logprob_not_finite:c0:first=1"], "{bad}");
        assert!(ours.at("/traces/0/response_logprobs").is_null());
    }
}

#[test]
fn a_choice_that_is_nothing_is_no_choice() {
    // D18
    let mut log = Log::default();
    log.call(&[1, 2], &[3, END], USER);
    log.0[0].get_mut("response").unwrap().as_object_mut().unwrap().insert("choices", vec![Value::Null]);
    let [reference, ours] = both(&log);
    let s8 = "S8:choices_len_ne_1:c0:0".to_owned();
    assert!(!reference.findings().contains(&s8) && ours.findings().contains(&s8));
}

#[test]
fn usage_is_compared_with_the_ids() {
    let with_usage = |tokens: &str| {
        let mut log = Log::default();
        log.call(&[1, 2], &[3, 4, END], USER).response(|response| {
            let usage = Value::parse(format!("{{\"completion_tokens\":{tokens}}}").as_bytes()).unwrap().into_owned();
            response.as_object_mut().unwrap().insert("usage", usage);
        });
        log.build(&same_text()).findings()
    };
    assert_eq!(with_usage("3"), [""; 0]);
    assert_eq!(with_usage("4"), ["S13:usage_mismatch:c0:3!=4"]);
    assert_eq!(with_usage("-100000000000000000000"), ["S13:usage_mismatch:c0:3!=-100000000000000000000"]);
    assert_eq!(with_usage("\"4\""), [""; 0], "the engine does not state it");
}

#[test]
fn findings_of_a_record_stand_in_order_and_only_once() {
    let mut log = Log::default();
    log.call(&[1, 2], &[3, END], USER);
    log.call(&[1, 9], &[], r#"{"role":"assistant","content":"x"}"#);
    log.0[1]
        .get_mut("response")
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert("usage", Value::parse(br#"{"completion_tokens":1}"#).unwrap());
    log.call(&[1, 9], &[3, END], USER);
    for record in &mut log.0 {
        record.get_mut("request").unwrap().as_object_mut().unwrap().remove("stream");
        let choices = record.get_mut("response").unwrap().get_mut("choices").unwrap();
        choices.as_array_mut().unwrap()[0].as_object_mut().unwrap().insert("finish_reason", "length");
    }
    let options = Options { end_of_turn_token_id: None, ..same_text() };
    assert_eq!(
        log.build(&options).findings(),
        [
            "A15:end_of_turn_token_id_not_configured",
            "S7:mid_chain_finish_length:c0",
            "A12:non_agent_shape:c0",
            "S6:empty_response_ids:c1",
            "S7:mid_chain_finish_length:c1",
            "A12:non_agent_shape:c1",
            "S13:usage_mismatch:c1:0!=1",
            "S3:duplicate_consecutive_prompt:c2",
            "A12:non_agent_shape:c2",
            "S10:context_rewritten:c2",
            "A12:completion_filter_excluded_nonempty:c1",
        ]
    );
}
