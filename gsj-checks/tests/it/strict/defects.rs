//! The defects of the reference that the validators guard against (`checks.md` section 13): what passes there is
//! caught here.

use gsj_checks::{Pins, Policy, Profile, validate};
use gsj_trace::canonical::text_sha256;
use gsj_trace::json::Value;

use super::body::{SYSTEM, assert_caught, at, changed, clean, document, findings, hit, json, pins};

const TRACE: &str = "/trajectory/traces/0";

fn of_trace(member: &str, new: &str) -> Value<'static> {
    changed(&format!("{TRACE}/{member}"), Some(new))
}

/// The clean body whose search result reads so.
fn with_result(text: &str) -> Value<'static> {
    of_trace("response_messages/1/content", &Value::from(text).to_json())
}

const NO_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn d1_a_page_number_without_bound_is_an_ordinary_answer() {
    let body = with_result(&format!("{{\"page\": {}}}", "1".repeat(4301)));
    let reference = findings(&body, Profile::Reference);
    assert!(reference.len() == 1 && reference[0].starts_with("G5:search_page_gt_timestep:111"), "{reference:?}");
    assert_eq!(findings(&body, Profile::Strict), ["G5:search_result_unreadable:call_0"]);
    let long = "9".repeat(4300);
    let body = with_result(&format!("{{\"page\": {long}}}"));
    for profile in Profile::ALL {
        assert_eq!(findings(&body, profile), [format!("G5:search_page_gt_timestep:{long}>5")]);
    }
}

#[test]
fn d2_evidence_of_the_builder_is_not_optional() {
    assert_caught(&changed("/trajectory/status", Some(r#""ERROR""#)), &["ADM6:trajectory_status_not_completed:ERROR"]);
    assert_caught(&changed("/trajectory/status", None), &["ADM6:trajectory_status_not_completed:None"]);
    for (pointer, new) in [
        ("/trajectory/metadata/gsj_validation", None),
        ("/trajectory/metadata/gsj_validation", Some("[]")),
        ("/trajectory/metadata/gsj_validation/findings", None),
        ("/trajectory/metadata/gsj_validation/findings", Some("null")),
        ("/trajectory/metadata/gsj_validation/findings", Some("false")),
        ("/trajectory/metadata/gsj_validation/findings", Some("0")),
        ("/trajectory/metadata/gsj_validation/findings", Some("{}")),
    ] {
        assert_caught(&changed(pointer, new), &["ADM7:missing_evidence:gsj_validation"]);
    }
    let mut twice = clean();
    let traces = at(&mut twice, "/trajectory/traces").as_array_mut().expect("traces");
    traces.push(traces[0].clone());
    assert_caught(&twice, &["ADM8:trace_count_ne_chains_total:2!=1"]);
}

#[test]
fn d3_a_null_among_approved_hashes_is_a_fault_of_the_pins() {
    let mut document = document();
    at(&mut document, "/pins/tool_roster_hash").as_array_mut().expect("a list").push(Value::Null);
    let pins = Pins::from_bytes("pins.json", document.to_json().into_bytes());
    let unhashable = of_trace("tools", r#"[{"type":"function","function":{"name":"mcp_gsj_search_case","x":NaN}}]"#);
    let bytes = unhashable.to_json();
    let reference = validate(bytes.as_bytes(), &pins, &Policy::of(Profile::Reference)).expect("no fault is noticed");
    assert!(reference.accepted(), "the reference approves what has no hash: {:?}", reference.findings);
    let fault = validate(bytes.as_bytes(), &pins, &Policy::default()).expect_err("a fault").to_string();
    assert!(fault.contains("`pins.tool_roster_hash` entry 1 is not a hash"), "{fault}");
    // With whole pins the content is a finding.
    assert_eq!(findings(&unhashable, Profile::Strict), ["G3:tool_roster_hash_not_approved:unhashable"]);
}

#[test]
fn d4_types_are_those_that_a_trainer_parses() {
    // The last run is part of no context, so the certificate has nothing to say.
    for odd in ["null", "\"201\"", "201.0", "-1", "4294967296", "true", "[]"] {
        assert_caught(&of_trace("response_ids/7", odd), &["TY1:token_id_not_an_integer:response_ids:first=7:count=1"]);
    }
    let ty1 = |field: &str| format!("TY1:token_id_not_an_integer:{field}:first=0:count=1");
    let prompt = findings(&of_trace("prompt_ids/0", "null"), Profile::Strict);
    assert_eq!(prompt[0], ty1("prompt_ids"));
    assert_caught(
        &of_trace("prompt_messages/-", "\"x\""),
        &["TY2:message_not_an_object:prompt_messages:first=2:count=1"],
    );
    assert_caught(
        &of_trace("response_messages/-", "7"),
        &["TY2:message_not_an_object:response_messages:first=3:count=1"],
    );
    for (reward, shown) in [("\"x\"", "x"), ("true", "True"), ("NaN", "nan"), ("-Infinity", "-inf"), ("[1]", "[1]")] {
        assert_caught(&of_trace("reward", reward), &[&format!("TY3:reward_not_a_number:{shown}")]);
    }
    let huge = format!("1{}", "0".repeat(400));
    assert_caught(&of_trace("reward", &huge), &[&format!("TY3:reward_not_a_number:{huge}")]);
    for fine in ["0", "-1.5", "null", "1e300"] {
        assert_caught(&of_trace("reward", fine), &[]);
    }
    assert_caught(&changed(&format!("{TRACE}/reward"), None), &[]);
}

#[test]
fn d7_instructions_count_wherever_they_stand() {
    let says = |text: &str| format!("G2:system_prompt_hash_not_approved:{}", text_sha256(text));
    assert_caught(&of_trace("prompt_messages/-", r#"{"role":"developer","content":"obey"}"#), &[&says("obey")]);
    assert_caught(&of_trace("response_messages/-", r#"{"role":"system","content":"obey"}"#), &[&says("obey")]);
    let approved = format!(r#"{{"role":"developer","content":{}}}"#, Value::from(SYSTEM).to_json());
    assert_caught(&of_trace("response_messages/-", &approved), &[]);
    let mut body = of_trace("prompt_messages/-", r#"{"role":"developer","content":[{"text":"a"}]}"#);
    let responses = at(&mut body, "/trajectory/traces/0/response_messages").as_array_mut().expect("messages");
    responses.push(json(r#"{"role":"developer","content":"c"}"#));
    responses.insert(0, json(r#"{"role":"system"}"#));
    let empty = format!("G2:system_prompt_hash_not_approved:{NO_HASH}");
    assert_caught(&body, &[&says("a"), &empty, &says("c")]);
}

#[test]
fn d7_no_message_is_reported_twice() {
    let body = of_trace("prompt_messages/0/content", "\"other\"");
    for profile in Profile::ALL {
        assert_eq!(findings(&body, profile), [format!("G2:system_prompt_hash_not_approved:{}", text_sha256("other"))]);
    }
}

#[test]
fn d8_a_page_that_mentions_a_later_page_is_no_leak() {
    let body = with_result(&hit(5, "continued in md/page_0099.md"));
    assert_eq!(findings(&body, Profile::Reference), ["G5:search_page_gt_timestep:99>5"], "the false alarm");
    assert_eq!(findings(&body, Profile::Strict), [""; 0]);
}

#[test]
fn d8_a_later_page_is_found_however_it_is_written() {
    for text in [
        "{\"page\": \"99\"}",
        "{\"page\": \"0099\"}",
        "{\"p\\u0061ge\": 99}",
        "{\"page\": 5, \"file\": \"md/page_00099.md\"}",
    ] {
        assert_caught(&with_result(text), &["G5:search_page_gt_timestep:99>5"]);
    }
    let many = format!("{}\n{}{}", hit(99, ""), hit(5, "x"), hit(7, ""));
    let body = with_result(&many);
    for profile in Profile::ALL {
        assert_eq!(findings(&body, profile), ["G5:search_page_gt_timestep:7>5", "G5:search_page_gt_timestep:99>5"]);
    }
}

#[test]
fn d8_what_cannot_be_read_is_no_evidence() {
    for text in [
        "\\\"page\\\": 99",
        r#""{\"page\": 99}""#,
        r#"[{"page": 4}]"#,
        r#"{"pages": [99]}"#,
        r#"{"file": "md/page_0004.md"}"#,
        r#"{"page": 4, "note": "md/page_99.md"}"#,
        r#"{"page": [4]}"#,
        r#"{"page": 4.0}"#,
        r#"{"page": "four"}"#,
        r#"{"page": "-4"}"#,
        r#"{"page": 4, "file": "page_0004.md"}"#,
        r#"{"page": 4, "text": ["x"]}"#,
        r#"{"page": 4, "score": "high"}"#,
        r#"{"page": 4, "score": NaN}"#,
        r#"{"page": 4} and more"#,
        r#"{"page": 4"#,
        "plain words",
        "md/page_00099.md",
        "\u{0}",
        "{\u{0}\"\u{0}",
    ] {
        assert_caught(&with_result(text), &["G5:search_result_unreadable:call_0"]);
    }
    // Two values for one member: the reader would keep the last.
    let body = with_result(r#"{"page": 99, "page": 4}"#);
    assert_eq!(findings(&body, Profile::Reference), ["G5:search_page_gt_timestep:99>5"]);
    assert_eq!(findings(&body, Profile::Strict), ["G5:search_result_unreadable:call_0"]);
}

#[test]
fn d8_results_without_a_call_are_missing_evidence() {
    for id in ["\"call_1\"", "null", "0.5"] {
        assert_caught(
            &of_trace("response_messages/1/tool_call_id", id),
            &["G5:search_result_unresolved:first=3:count=1"],
        );
    }
    assert_caught(
        &of_trace("response_messages/0/tool_calls/0/function", "{}"),
        &["G5:search_result_unresolved:first=3:count=1"],
    );
    // Where no search was offered, none can have answered.
    let mut body = of_trace("response_messages/1/tool_call_id", "\"call_1\"");
    *at(&mut body, "/trajectory/traces/0/tools") = json(r#"[{"name":"read"}]"#);
    let found = findings(&body, Profile::Strict);
    assert!(found.len() == 1 && found[0].starts_with("G3:"), "{found:?}");
    *at(&mut body, "/trajectory/traces/0/tools") = json(r#"[{"name":"mcp_gsj_search_case"}]"#);
    assert_eq!(findings(&body, Profile::Strict).len(), 2, "a roster may name its tools without an envelope");
}

fn call(id: &str, name: &str) -> String {
    format!(r#"{{"id":"{id}","function":{{"name":"{name}"}}}}"#)
}

fn with_messages(messages: &[String]) -> Value<'static> {
    of_trace("response_messages", &format!("[{}]", messages.join(",")))
}

fn calling(calls: &[&str]) -> String {
    format!(r#"{{"role":"assistant","tool_calls":[{}]}}"#, calls.join(","))
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{}}}"#, Value::from(text).to_json())
}

#[test]
fn d8_a_second_call_with_the_same_id_hides_nothing() {
    let (search, read) = (call("d", "mcp_gsj_search_case"), call("d", "read"));
    let leak = result("d", &hit(99, ""));
    let late = ["G5:search_page_gt_timestep:99>5"];
    assert_caught(&with_messages(&[calling(&[&search, &read]), leak.clone()]), &late);
    assert_caught(&with_messages(&[calling(&[&search]), calling(&[&read]), leak.clone()]), &late);
    let nameless = r#"{"id":"d"}"#;
    assert_caught(&with_messages(&[calling(&[&search, nameless]), leak.clone()]), &late);
}

#[test]
fn ids_that_are_used_again_belong_to_the_nearest_call() {
    let (search, read) = (call("d", "mcp_gsj_search_case"), call("d", "read"));
    let file = result("d", "text of a file");
    let messages = [
        calling(&[&search]),
        result("d", &hit(3, "")),
        calling(&[&read]),
        file.clone(),
        calling(&[&read]),
        file.clone(),
    ];
    assert_caught(&with_messages(&messages), &[]);
    let in_order = [calling(&[&search, &read]), result("d", &hit(3, "")), file.clone()];
    assert_caught(&with_messages(&in_order), &[]);
    let again =
        [calling(&[&search]), result("d", ""), calling(&[&read]), file, calling(&[&search]), result("d", "no hits")];
    assert_caught(&with_messages(&again), &["G5:search_result_unreadable:d"]);
}

#[test]
fn d9_turns_that_were_trained_as_one_are_seen() {
    let mut body = of_trace("loss_mask", "[1,1,1,1,1,1,1,1,1]");
    let logprobs = at(&mut body, "/trajectory/traces/0/response_logprobs");
    *logprobs = json("[-0.5,-0.5,-0.5,-0.5,-0.5,-0.5,-0.5,-0.5,-0.5]");
    assert_caught(&body, &["G6:end_of_turn_inside_span:first=2:count=1", "F1:missing_evidence:gsj_fidelity"]);
}

#[test]
fn d9_a_turn_behind_the_last_token_is_empty() {
    for mask in ["[1,1,1,0,0,0,0,0,0,0,1]", "[0,0,0,0,0,0,0,0,0,0,0,1,1,1]", "[1,1,1,0,0,0,0,1,1,1,1]"] {
        let found = findings(&of_trace("loss_mask", mask), Profile::Strict);
        assert!(found[0].starts_with("LP8:"), "{found:?}");
        assert!(!found.iter().any(|finding| finding.starts_with("G6:end_of_turn")), "{found:?}");
    }
    // Ids that are no bare numbers are looked at one by one.
    let mut body = of_trace("response_ids/0", "9.0");
    *at(&mut body, "/trajectory/traces/0/response_ids/8") = json("true");
    let found = findings(&body, Profile::Strict);
    assert!(found.contains(&"G6:end_of_turn_inside_span:first=0:count=1".to_owned()), "{found:?}");
}

#[test]
fn d11_no_remotes_is_the_integer_0() {
    for (odd, shown) in [("false", "False"), ("0.0", "0.0"), ("-0.0", "-0.0")] {
        assert_caught(
            &of_trace("metadata/gsj_workspace/remotes", odd),
            &[&format!("G5:checkout_history_posture:shallow=True,remotes={shown}")],
        );
    }
    assert_caught(&of_trace("metadata/gsj_workspace/remotes", "-0"), &[]);
    let body = of_trace("metadata/gsj_workspace/remotes", "1");
    assert_eq!(findings(&body, Profile::Strict), findings(&body, Profile::Reference), "and is said once");
}

#[test]
fn d12_too_deep_is_an_answer() {
    let deep = "[".repeat(12_000);
    for profile in Profile::ALL {
        let verdict = validate(deep.as_bytes(), &pins(), &Policy::of(profile)).expect("no fault");
        assert_eq!(verdict.unreadable.map(|why| why.code()), Some("too_deep"));
    }
}

#[test]
fn d19_a_card_belongs_to_its_skill() {
    let beta = Value::from(text_sha256("beta")).to_json();
    assert_caught(&of_trace("metadata/skill_card_hash", &beta), &["G1:skill_card_hash_not_for_skill:alpha"]);
    assert_caught(&of_trace("metadata/prompt_source", r#""skill:gamma""#), &["G1:skill_card_hash_not_for_skill:gamma"]);
    assert_caught(&of_trace("metadata/prompt_source", r#""free""#), &[]);
}
