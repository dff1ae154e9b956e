//! A session result that the strict profile accepts, made here from its parts, and ways to change it.

use gsj_checks::{Pins, Policy, Profile, Verdict, validate, validate_parsed};
use gsj_pins::derive::Derivation;
use gsj_trace::canonical::{ContextHash, text_sha256};
use gsj_trace::json::Value;

pub(crate) const SYSTEM: &str = "You are a careful clerk.";
/// What opens every turn.
const TAIL: [u32; 2] = [11, 12];
/// What ends one.
pub(crate) const END: u32 = 9;
pub(crate) const PROMPT: [u32; 5] = [1, 2, 3, 11, 12];
pub(crate) const RESPONSE: [u32; 9] = [101, 102, END, 50, 51, 11, 12, 201, END];
/// Where the runs of trained tokens start.
pub(crate) const STARTS: [usize; 2] = [0, 7];
const ROSTER: &str =
    r#"[{"type":"function","function":{"name":"read"}},{"type":"function","function":{"name":"mcp_gsj_search_case"}}]"#;
const SETTINGS: &str = r#"{"compaction":{"enabled":false}}"#;

/// A hit as the retrieval service writes it.
pub(crate) fn hit(page: u64, text: &str) -> String {
    let text = Value::from(text).to_json();
    format!(
        "{{\n  \"page\": {page},\n  \"file\": \"md/page_{page:04}.md\",\n  \"score\": 0.25,\n  \"text\": {text}\n}}"
    )
}

/// SHA-256 of the context of the turn that starts at an index of the response.
pub(crate) fn context(prompt: &[u32], response: &[u32], start: usize) -> String {
    let mut hash = ContextHash::new();
    hash.add(prompt);
    hash.add(&response[..start]);
    hash.digest()
}

/// The clean body: two turns, one search between them, timestep 5.
pub(crate) fn clean() -> Value<'static> {
    let [first, second] = STARTS.map(|start| context(&PROMPT, &RESPONSE, start));
    let text = format!(
        r#"{{"session_id":"sk-1","task_id":"t","status":"COMPLETED","trajectory":{{"status":"COMPLETED","error":null,
        "metadata":{{
          "reconstruction_stats":{{"chains_total":1,"chains_reconstructed_full":1,"chains_reconstructed_truncated":0,
            "raw_completions_total":2,"completions_total":2,"completions_merged":2}},
          "gsj_validation":{{"builder":"b","findings":[],"glue_stitched":0}},
          "gsj_fidelity":{{"continuity":"same_text","completions":2,"exact":2,"retokenized":0,"template":0,"rewritten":0,
            "inexact":0,"superseded":0,"tokenizer":null}}}},
        "traces":[{{
          "prompt_ids":{prompt:?},"response_ids":{response:?},"loss_mask":[1,1,1,0,0,0,0,1,1],
          "response_logprobs":[-0.5,-0.5,-0.5,0.0,0.0,0.0,0.0,-0.5,-0.5],
          "prompt_messages":[{{"role":"system","content":{system}}},{{"role":"user","content":[{{"type":"text","text":"go"}}]}}],
          "response_messages":[
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"call_0","type":"function",
              "function":{{"name":"mcp_gsj_search_case","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"call_0","content":{hits}}},
            {{"role":"assistant","content":"done"}}],
          "tools":{ROSTER},"finish_reason":"stop","reward":null,
          "metadata":{{"case_id":"case_0001","timestep":5,"prompt_source":"skill:alpha","skill_card_hash":"{alpha}",
            "gsj_settings":{SETTINGS},
            "gsj_workspace":{{"branch":"timestep-5","shallow":true,"remotes":0,"pages":{{"count":5,"min":1,"max":5}}}},
            "gsj_fidelity":{{"turns":[
              {{"completion_id":"c1","kind":"exact","context_sha256":"{first}","differing_tokens":0}},
              {{"completion_id":"c2","kind":"exact","context_sha256":"{second}","differing_tokens":0}}]}}}}}}]}}}}"#,
        prompt = PROMPT,
        response = RESPONSE,
        system = Value::from(SYSTEM).to_json(),
        hits = Value::from(format!("{}\n{}", hit(2, "a page"), hit(5, "another"))).to_json(),
        alpha = text_sha256("alpha"),
    );
    json(&text)
}

pub(crate) fn json(text: &str) -> Value<'static> {
    Value::parse(text.as_bytes()).expect("json of the test").into_owned()
}

/// Pins that approve the clean body, with `skill_cards` and `end_of_turn_ids`.
pub(crate) fn document() -> Value<'static> {
    let mut derivation = Derivation::new();
    derivation.system_prompt("p", SYSTEM);
    derivation.settings("s", json(SETTINGS).as_ref()).expect("settings");
    derivation.roster("r", json(ROSTER).as_ref()).expect("roster");
    derivation.skill_card("alpha", "a", b"alpha");
    derivation.skill_card("beta", "b", b"beta");
    derivation.tail("t", "tail", &TAIL).expect("tail");
    derivation.end_of_turn_ids("t", "00", &[END]);
    derivation.document()
}

pub(crate) fn pins() -> Pins {
    Pins::from_bytes("pins.json", document().to_json().into_bytes())
}

/// The member or element that a pointer leads to.
pub(crate) fn at<'v>(value: &'v mut Value<'static>, pointer: &str) -> &'v mut Value<'static> {
    pointer.split('/').skip(1).fold(value, |value, step| match step.parse::<usize>() {
        Ok(index) => &mut value.as_array_mut().expect("an array")[index],
        Err(_) => value.as_object_mut().expect("an object").get_mut(step).expect(step),
    })
}

/// The clean body with one place changed, or, for `None`, taken out.
pub(crate) fn changed(pointer: &str, new: Option<&str>) -> Value<'static> {
    let mut body = clean();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    let parent = at(&mut body, parent);
    match (new, parent.as_object_mut()) {
        (Some(new), Some(object)) => drop(object.insert(last.to_owned(), json(new))),
        (None, Some(object)) => drop(object.remove(last).expect("a member to take out")),
        (Some(new), None) => {
            let list = parent.as_array_mut().expect("an array");
            match last.parse::<usize>() {
                Ok(index) if index < list.len() => list[index] = json(new),
                _ => list.push(json(new)),
            }
        }
        (None, None) => drop(parent.as_array_mut().expect("an array").remove(last.parse().expect("an index"))),
    }
    body
}

pub(crate) fn verdict(body: &Value<'_>, policy: &Policy) -> Verdict {
    let pins = pins();
    let verdict = validate_parsed(body.as_ref(), &pins, policy).expect("pins are whole");
    assert_eq!(
        Ok(&verdict),
        validate(body.to_json().as_bytes(), &pins, policy).as_ref(),
        "both ways in give one answer"
    );
    verdict
}

pub(crate) fn findings(body: &Value<'_>, profile: Profile) -> Vec<String> {
    verdict(body, &Policy::of(profile)).findings
}

/// What the strict profile finds, where the reference finds nothing.
#[track_caller]
pub(crate) fn assert_caught(body: &Value<'_>, expected: &[&str]) {
    assert_eq!(findings(body, Profile::Reference), [""; 0], "the reference lets it pass");
    assert_eq!(findings(body, Profile::Strict), expected);
}
