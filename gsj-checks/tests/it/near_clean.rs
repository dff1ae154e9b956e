//! Laws on bodies that are clean but for a few changes: where the two profiles part.

use gsj_checks::{FindingKind, Policy, Profile, validate_parsed};
use gsj_trace::json::Value;
use proptest::prelude::*;

use crate::strict::body::{at, clean, json, pins};

/// Places of the clean body that rules look at.
const PLACES: [&str; 24] = [
    "/status",
    "/trajectory/status",
    "/trajectory/metadata/gsj_validation",
    "/trajectory/metadata/gsj_validation/findings",
    "/trajectory/metadata/reconstruction_stats/chains_total",
    "/trajectory/metadata/gsj_fidelity/exact",
    "/trajectory/traces/0/prompt_ids",
    "/trajectory/traces/0/prompt_ids/4",
    "/trajectory/traces/0/response_ids/6",
    "/trajectory/traces/0/response_ids/7",
    "/trajectory/traces/0/loss_mask/2",
    "/trajectory/traces/0/loss_mask/5",
    "/trajectory/traces/0/response_logprobs/1",
    "/trajectory/traces/0/reward",
    "/trajectory/traces/0/prompt_messages/0/role",
    "/trajectory/traces/0/prompt_messages/1",
    "/trajectory/traces/0/response_messages/0/tool_calls/0/id",
    "/trajectory/traces/0/response_messages/0/tool_calls/0/function/name",
    "/trajectory/traces/0/response_messages/1/tool_call_id",
    "/trajectory/traces/0/response_messages/2/role",
    "/trajectory/traces/0/metadata/timestep",
    "/trajectory/traces/0/metadata/prompt_source",
    "/trajectory/traces/0/metadata/gsj_workspace/remotes",
    "/trajectory/traces/0/metadata/gsj_fidelity/turns/1/kind",
];

const VALUES: [&str; 22] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "0.0",
    "1.0",
    "NaN",
    "4294967296",
    "\"\"",
    "\"call_0\"",
    "\"tool\"",
    "\"developer\"",
    "\"system\"",
    "\"free\"",
    "\"skill:beta\"",
    "\"template\"",
    "\"mcp_gsj_search_case\"",
    "[]",
    "{}",
];

/// What search results are made of, whole hits and their ruins.
const PIECES: [&str; 22] = [
    "{\"page\": 2}",
    "{\n  \"page\": 5,\n  \"file\": \"md/page_0005.md\",\n  \"score\": 0.5,\n  \"text\": \"a \\\"page\\\": 9\"\n}",
    "{\"page\": 9}",
    "{\"page\": \"9\"}",
    "{\"page\": 9, \"page\": 2}",
    "{\"page\": 2, \"file\": \"md/page_0009.md\"}",
    "{\"page\": 2, \"file\": \"x/md/page_0009.md\"}",
    "{\"page\": 2, \"note\": {\"page\": 9}}",
    "{\"page\": 2, \"text\": {\"page\": 9}}",
    "{\"page\": 2, \"md/page_0009.md\": 1}",
    "\"page\": 9",
    "\"page\": ",
    "md/page_0009.md",
    "{\"page\"",
    ": 9}",
    "\n",
    " ",
    "\\",
    "\"",
    "Error executing tool search_case: ",
    "The call failed: ",
    "(no tool output)",
];

/// The same, and a page that mentions another one: D8's false alarm.
const MENTION: &str = "{\"page\": 2, \"text\": \"see md/page_0009.md\"}";

/// Messages between the first assistant message and the last.
fn exchange() -> impl Strategy<Value = Vec<String>> {
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..4).prop_map(|pieces| pieces.concat());
    let id = prop::sample::select(vec!["\"d\"", "\"e\"", "1", "true", "null"]);
    let name = prop::sample::select(vec!["\"mcp_gsj_search_case\"", "\"read\"", "null"]);
    let calls = prop::collection::vec((id.clone(), name), 0..3).prop_map(|calls| {
        let calls: Vec<String> =
            calls.iter().map(|(id, name)| format!(r#"{{"id":{id},"function":{{"name":{name}}}}}"#)).collect();
        format!(r#"{{"role":"assistant","tool_calls":[{}]}}"#, calls.join(","))
    });
    let result = (id, text).prop_map(|(id, text)| {
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{}}}"#, Value::from(text).to_json())
    });
    prop::collection::vec(prop_oneof![calls, result], 0..6)
}

fn body() -> impl Strategy<Value = Value<'static>> {
    let changes = prop::collection::vec((prop::sample::select(&PLACES[..]), prop::sample::select(&VALUES[..])), 0..3);
    let order = prop::option::weighted(0.3, changes);
    (order, exchange()).prop_map(|(changes, exchange)| {
        let mut body = clean();
        for (place, value) in changes.into_iter().flatten() {
            // An earlier change may have taken the place away.
            if body.pointer(place).is_some() {
                *at(&mut body, place) = json(value);
            }
        }
        let messages = at(&mut body, "/trajectory/traces/0/response_messages").as_array_mut().expect("messages");
        for (offset, message) in exchange.iter().enumerate() {
            messages.insert(2 + offset, json(message));
        }
        body
    })
}

fn findings(body: &Value<'_>, profile: Profile) -> Vec<String> {
    validate_parsed(body.as_ref(), &pins(), &Policy::of(profile)).expect("pins are whole").findings
}

fn is_page(finding: &str) -> bool {
    finding.starts_with("G5:search_page_gt_timestep:")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Strict takes nothing away: the reference's findings are among its own in their order, pages that search results
    /// show excepted, which it reads otherwise.
    #[test]
    fn strict_finds_what_the_reference_finds(body in body()) {
        let (strict, reference) = (findings(&body, Profile::Strict), findings(&body, Profile::Reference));
        let mut rest = strict.iter();
        for finding in reference.iter().filter(|finding| !is_page(finding)) {
            prop_assert!(rest.any(|found| found == finding), "{finding} is missing or out of order in {strict:?}");
        }
        if reference.iter().any(|finding| is_page(finding)) {
            let seen = |finding: &String| is_page(finding) || finding.starts_with("G5:search_result_unreadable:");
            prop_assert!(strict.iter().any(seen), "{reference:?} are seen in {strict:?}");
        }
        prop_assert_eq!(&strict, &findings(&body, Profile::Strict), "the same body gets the same answer");
        // What stands in the builder's list is repeated whatever it is.
        if !reference.iter().any(|finding| finding.starts_with("ADM2:")) {
            prop_assert!(strict.iter().all(|finding| FindingKind::of(finding).is_some()), "all are in the catalogue");
        }
    }

    /// The one case where the reference has more: prose that names a later page's file.
    #[test]
    fn only_the_false_alarm_parts_them(body in body()) {
        let mut body = body;
        *at(&mut body, "/trajectory/traces/0/response_messages/1/content") = Value::from(MENTION);
        let (strict, reference) = (findings(&body, Profile::Strict), findings(&body, Profile::Reference));
        if strict.is_empty() {
            prop_assert!(reference.iter().all(|finding| is_page(finding)), "{reference:?}");
        }
    }
}
