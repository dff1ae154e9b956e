//! Session results made from choices: clean ones with a few things changed.

use arbitrary::{Result, Unstructured};
use gsj_trace::json::{Object, Value};
use gsj_trace::reconstruct::{Continuity, Options, build};

use crate::documents::object;
use crate::sessions::planned;
use crate::vocabulary::{END, vocabulary};

/// Most changes of one body.
const CHANGES: usize = 3;
/// Where changes are made: pointers below the first trace, or below the body where they begin with `//`.
const PLACES: [&str; 44] = [
    "//status",
    "//trajectory/status",
    "//trajectory/metadata/gsj_validation",
    "//trajectory/metadata/gsj_validation/findings",
    "//trajectory/metadata/gsj_fidelity",
    "//trajectory/metadata/gsj_fidelity/continuity",
    "//trajectory/metadata/gsj_fidelity/exact",
    "//trajectory/metadata/reconstruction_stats/chains_total",
    "//trajectory/metadata/reconstruction_stats/completions_merged",
    "/prompt_ids",
    "/prompt_ids/0",
    "/response_ids",
    "/response_ids/0",
    "/response_ids/2",
    "/loss_mask",
    "/loss_mask/0",
    "/loss_mask/1",
    "/response_logprobs",
    "/response_logprobs/0",
    "/response_logprobs/1",
    "/prompt_messages",
    "/prompt_messages/0/role",
    "/prompt_messages/0/content",
    "/prompt_messages/1",
    "/response_messages/0",
    "/response_messages/0/role",
    "/tools",
    "/tools/0",
    "/finish_reason",
    "/reward",
    "/metadata/timestep",
    "/metadata/split",
    "/metadata/prompt_source",
    "/metadata/skill_card_hash",
    "/metadata/reasoning_loss_mask",
    "/metadata/gsj_settings",
    "/metadata/gsj_workspace/shallow",
    "/metadata/gsj_workspace/remotes",
    "/metadata/gsj_workspace/branch",
    "/metadata/gsj_workspace/pages/max",
    "/metadata/gsj_fidelity",
    "/metadata/gsj_fidelity/turns",
    "/metadata/gsj_fidelity/turns/0/context_sha256",
    "/metadata/gsj_fidelity/turns/0/kind",
];
/// What is put there.
const ODD: [&str; 30] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "3",
    "1.0",
    "0.0",
    "-0.0",
    "-0.5",
    "-9999.0",
    "NaN",
    "1e999",
    "4294967296",
    "100000000000000000000",
    "\"\"",
    "\"COMPLETED\"",
    "\"skill:a\"",
    "\"tool\"",
    "\"developer\"",
    "\"\\ud800\"",
    "\"template\"",
    "[]",
    "{}",
    "[0,1]",
    "[[1]]",
    "[null]",
    "{\"role\":\"system\",\"content\":\"x\"}",
];
/// What search results say.
const RESULTS: [&str; 12] = [
    "",
    "(no tool output)",
    "{\"page\": 2, \"score\": 0.5, \"text\": \"x\"}",
    "{\"page\": 2}\n{\"page\": 3, \"file\": \"md/page_0003.md\"}",
    "{\"page\": 3, \"text\": \"see md/page_0009.md\"}",
    "{\"page\": 9}",
    "{\"page\": \"9\"}",
    "{\"page\": 2, \"page\": 9}",
    "{\"file\": \"md/page_0009.md\", \"page\": 1}",
    "Error executing tool search: \"page\": 9",
    "fetch failed",
    "prose",
];
const IDS: [&str; 6] = ["\"k\"", "\"l\"", "1", "true", "1.0", "null"];
const TOOLS: [&str; 4] = ["mcp_gsj_search_case", "mcp_gsj_search_case", "read", "mcp_gsj_case_status"];

/// Makes a session result of the choices that are left.
pub(crate) fn body(u: &mut Unstructured<'_>) -> Result<Value<'static>> {
    let calls = u.int_in_range(0..=2)?;
    let chatter: Vec<Value<'static>> = (0..calls).map(|_| search(u)).collect::<Result<Vec<_>>>()?.concat();
    let mut changes = Vec::new();
    for _ in 0..u.int_in_range(0..=CHANGES)? {
        changes.push((*u.choose(&PLACES)?, parsed(u.choose(&ODD)?)));
    }
    let tokens = vocabulary();
    let plan = planned(u, &*tokens)?;
    let options = Options {
        continuity: Continuity::SameText,
        end_of_turn_token_id: Some(i64::from(END)),
        tokenizer: Some(tokens),
        ..Options::default()
    };
    let mut trajectory = build(&plan.session, &options).expect("a session is an object");
    for trace in trajectory.get_mut("traces").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(messages) = trace.get_mut("response_messages").and_then(Value::as_array_mut) {
            messages.extend(chatter.iter().cloned());
        }
        if let Some(metadata) = trace.get_mut("metadata").and_then(Value::as_object_mut) {
            add_evidence(metadata);
        }
    }
    let mut body = object([("status", Value::from("COMPLETED")), ("trajectory", trajectory)]);
    for (place, value) in changes {
        put(&mut body, place, value);
    }
    Ok(body)
}

fn parsed(text: &'static str) -> Value<'static> {
    Value::parse(text.as_bytes()).expect("a constant above").into_owned()
}

/// What a clean trace says of where it was made.
fn add_evidence(metadata: &mut Object<'static>) {
    let evidence = parsed(
        r#"{"timestep":3,"prompt_source":"free","gsj_settings":{"a":1},"gsj_workspace":{"branch":"timestep-3",
            "shallow":true,"remotes":0,"pages":{"count":3,"min":1,"max":3}}}"#,
    );
    for (key, value) in evidence.as_object().expect("an object") {
        metadata.insert(key.to_str().into_owned(), value.to_owned());
    }
}

/// A call and a result, which may not belong together.
fn search(u: &mut Unstructured<'_>) -> Result<Vec<Value<'static>>> {
    let (called, answered) = if u.ratio(3, 4)? { (0, 0) } else { (u.int_in_range(0..=5)?, u.int_in_range(0..=5)?) };
    let call = object([("id", parsed(IDS[called])), ("function", object([("name", Value::from(*u.choose(&TOOLS)?))]))]);
    Ok(vec![
        object([("role", Value::from("assistant")), ("tool_calls", Value::from(vec![call]))]),
        object([
            ("role", Value::from("tool")),
            ("tool_call_id", parsed(IDS[answered])),
            ("content", Value::from(*u.choose(&RESULTS)?)),
        ]),
    ])
}

/// Replaces what stands at a place, or adds it; what is on the way must be there.
fn put(body: &mut Value<'static>, place: &str, value: Value<'static>) {
    let place = match place.strip_prefix("//") {
        Some(place) => place.to_owned(),
        None => format!("trajectory/traces/0{place}"),
    };
    let mut steps: Vec<&str> = place.split('/').collect();
    let Some(last) = steps.pop() else { return };
    let mut at = body;
    for step in steps {
        let Some(next) = step_into(at, step) else { return };
        at = next;
    }
    match step_into(at, last) {
        Some(there) => *there = value,
        None => {
            if let Some(object) = at.as_object_mut() {
                object.insert(last.to_owned(), value);
            }
        }
    }
}

fn step_into<'v>(at: &'v mut Value<'static>, step: &str) -> Option<&'v mut Value<'static>> {
    match step.parse::<usize>() {
        Ok(index) => at.as_array_mut().and_then(|array| array.get_mut(index)),
        Err(_) => at.get_mut(step),
    }
}
