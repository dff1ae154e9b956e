//! Trajectories against the vectors, and laws that hold for every session.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::PathBuf;

use gsj_trace::engine::{Dialect, normalize_response};
use gsj_trace::json::{Value, ValueRef};
use gsj_trace::reconstruct::{BuildError, Continuity, Options, build};
use proptest::prelude::*;

use crate::vectors::lines;

/// A text that is the same for two values exactly when they are the same but for the order of members.
pub(crate) fn ordered(value: ValueRef<'_>) -> String {
    let mut out = String::new();
    write_ordered(value, &mut out);
    out
}

fn write_ordered(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, member) in members {
                let _ = write!(out, "{}:", ValueRef::Str(key).to_json());
                write_ordered(member, out);
                out.push(',');
            }
            out.push('}');
        }
        ValueRef::Array(array) => {
            out.push('[');
            for element in array {
                write_ordered(element, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_json()),
    }
}

fn options(builder: ValueRef<'_>) -> Options {
    let glue = builder.get("generation_prompt_glue_ids").and_then(ValueRef::as_array);
    Options {
        continuity: Continuity::Reference,
        end_of_turn_token_id: builder.get("end_of_turn_token_id").and_then(ValueRef::as_i64),
        glue_ids: glue.into_iter().flat_map(|g| g.iter()).filter_map(ValueRef::as_i64).collect(),
        ..Options::default()
    }
}

/// The reference's mode with an id that ends a turn.
fn reference(end_of_turn: u32) -> Options {
    Options {
        continuity: Continuity::Reference,
        end_of_turn_token_id: Some(i64::from(end_of_turn)),
        ..Options::default()
    }
}

fn run(input: ValueRef<'_>) -> Result<Value<'static>, BuildError> {
    let mut session = input.get("session").unwrap().to_owned();
    if let Some(name) = input.get("engine").and_then(ValueRef::as_str) {
        let dialect = Dialect::from_name(name).unwrap();
        for record in session.get_mut("completions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(response) = record.get_mut("response") {
                normalize_response(dialect, response);
            }
        }
    }
    build(&session, &options(input.get("builder").unwrap()))
}

#[test]
fn every_vector_gives_its_trajectory() {
    let Some(lines) = lines("reconstruct.jsonl") else { return };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks");
    let mut wrong = Vec::new();
    for line in &lines {
        let vector = Value::parse(line.as_bytes()).unwrap();
        let name = vector.get("name").unwrap().show();
        let file = vector.get("input_file").map(|f| std::fs::read(folder.join(f.show())).unwrap());
        let parsed = file.as_deref().map(|bytes| Value::parse(bytes).unwrap());
        let got = run(parsed.as_ref().map_or_else(|| vector.get("input").unwrap(), Value::as_ref)).unwrap();
        let text = vector.get("expected_json").map(ValueRef::show);
        let expected = text.as_ref().map(|text| Value::parse(text.as_bytes()).unwrap());
        let expected = expected.as_ref().map_or_else(|| vector.get("expected").unwrap(), Value::as_ref);
        match expected.get("trajectory") {
            Some(want) if ordered(want) != ordered(got.as_ref()) => {
                wrong.push(format!("{name}:\n want {}\n  got {}", ordered(want), ordered(got.as_ref())));
            }
            Some(_) => {}
            // The reference fails here; ours says what is wrong.
            None => {
                let findings = got.pointer("/metadata/gsj_validation/findings").unwrap().as_array().unwrap();
                if got.get("status").unwrap().show() != "ERROR" || findings.is_empty() {
                    wrong.push(format!("{name}: no finding, {}", got.to_json()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} vectors differ:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

#[test]
fn what_the_reference_fails_on_is_named() {
    let findings = |session: &str| {
        let session = Value::parse(session.as_bytes()).unwrap();
        let built = build(&session, &reference(9)).unwrap();
        built.pointer("/metadata/gsj_validation/findings").unwrap().to_json()
    };
    let with = |record: &str| {
        findings(&format!(
            r#"{{"session_id":"s","completions":[{{"completion_id":"c","original_request":{{"messages":[{{"role":"system"}},{{}}],"tools":[1],"stream":true}},{record}}}]}}"#
        ))
    };
    assert_eq!(
        findings(r#"{"metadata":null,"task_id":5,"completion_count":"x","completions":[7]}"#),
        r#"["S17:session_field_invalid:session_id","S17:session_field_invalid:task_id","S17:session_field_invalid:completion_count","S17:session_field_invalid:metadata","S17:session_field_invalid:completions[0]"]"#
    );
    assert_eq!(
        with(r#""response":{"choices":[{"input_token_ids":[1,null],"token_ids":[2,1e999]}]}"#),
        r#"["S1:empty_prompt_ids:c","S6:empty_response_ids:c","S15:token_id_not_an_integer:c:prompt:first=1","S15:token_id_not_an_integer:c:response:first=1"]"#
    );
    let huge = "9".repeat(400);
    assert_eq!(
        with(&format!(
            r#""metadata":{{"policy_version":[1]}},"response":{{"choices":[{{"input_token_ids":[1],"token_ids":[2],"logprobs":{{"content":[{{"token_id":2,"logprob":{huge}}}]}}}}]}}"#
        )),
        r#"["S16:logprob_not_finite:c:first=0","S19:policy_version_not_a_scalar:c"]"#
    );
    let deep = format!("{}{}", r#"{"a":"#.repeat(300), "1".to_owned() + &"}".repeat(300));
    assert_eq!(
        with(&format!(r#""response":{{"choices":[{{"message":{deep},"input_token_ids":[1],"token_ids":[2]}}]}}"#)),
        r#"["S18:message_nested_too_deep:c"]"#
    );
    assert_eq!(build(&Value::Null, &Options::default()).err(), Some(BuildError::NotAnObject));
}

/// As the reference: ids, reasons and versions are strings of code points, whatever stands in them.
#[test]
fn lone_surrogates_stay_what_they_are() {
    let record = |id: &str, version: &str| {
        format!(
            r#"{{"completion_id":"{id}","timestamp":"{id}","metadata":{{"policy_version":"{version}"}},"response":{{"choices":[{{"finish_reason":"\ud800","input_token_ids":[1],"token_ids":[2]}}]}}}}"#
        )
    };
    let records = [record(r"\ud800", r"\udfff"), record("z", "inf"), record(r"\uffff", "inf")].join(",");
    let session = format!(r#"{{"session_id":"s","completions":[{records},{{"completion_id":"\udc00"}}]}}"#);
    let session = Value::parse(session.as_bytes()).unwrap();
    let built = build(&session, &reference(9)).unwrap();
    let findings = built.pointer("/metadata/gsj_validation/findings").unwrap().as_array().unwrap();
    let on_ids: Vec<String> = findings.iter().map(ValueRef::to_json).filter(|f| !f.contains("A12:non")).collect();
    assert_eq!(
        on_ids,
        [
            r#""S1:empty_prompt_ids:\udc00""#,
            r#""S6:empty_response_ids:\udc00""#,
            r#""S8:choices_len_ne_1:\udc00:0""#,
            r#""S3:duplicate_consecutive_prompt:\ud800""#,
            "\"S3:duplicate_consecutive_prompt:\u{ffff}\"",
            r#""S9:policy_version_mixed:None,inf,\udfff""#,
            r#""A12:completion_filter_excluded_nonempty:\udc00""#,
        ],
        "in the order of code points, written as JSON escapes"
    );
    assert_eq!(built.pointer("/traces/0/finish_reason").unwrap().to_json(), r#""\ud800""#);
    let excluded = built.pointer("/metadata/completion_filter/excluded/0/completion_id").unwrap();
    assert_eq!(excluded.to_json(), r#""\udc00""#);
}

const EOT: u32 = 9;

/// A session of an agent whose template renders history exactly as it was prompted: per turn the sampled ids (without
/// the end of turn), whether the reply was cut, and what stands between it and the next.
fn symmetric(first: &[u32], turns: &[(Vec<u32>, bool, Vec<u32>)]) -> (Value<'static>, Vec<u32>) {
    let mut context = first.to_vec();
    let mut records = Vec::new();
    for (i, (sampled, cut, between)) in turns.iter().enumerate() {
        let prompt = context.clone();
        let mut reply = sampled.clone();
        if !cut {
            reply.push(EOT);
        }
        let logprobs: Vec<f64> = reply.iter().map(|id| -f64::from(*id) / 8.0).collect();
        context.extend(&reply);
        let end = context.len();
        if *cut {
            context.push(EOT);
        }
        context.extend(between);
        let pairs: Vec<Value<'static>> = reply
            .iter()
            .zip(&logprobs)
            .map(|(id, lp)| Value::from(vec![Value::from(*lp), Value::from(*id), Value::Null]))
            .collect();
        let text = format!(
            r#"{{"completion_id":"c{i}","timestamp":"{i:04}","request":{{"messages":[],"tools":[{{}}],"stream":true}},"response":{{"choices":[{{"finish_reason":"stop","prompt_token_ids":{},"token_ids":{},"meta_info":{{"output_token_logprobs":{}}}}}]}}}}"#,
            Value::from(prompt).to_json(),
            Value::from(reply).to_json(),
            Value::from(pairs).to_json(),
        );
        records.push(Value::parse(text.as_bytes()).unwrap().into_owned());
        if i + 1 == turns.len() {
            context.truncate(end);
        }
    }
    let mut session = Value::parse(br#"{"session_id":"s"}"#).unwrap().into_owned();
    session.as_object_mut().unwrap().insert("completions", records);
    (session, context)
}

fn numbers(trace: ValueRef<'_>, key: &str) -> Vec<u32> {
    trace.get(key).unwrap().as_array().unwrap().iter().map(|v| u32::try_from(v.as_i64().unwrap()).unwrap()).collect()
}

fn span() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec((0u32..200).prop_filter("is no end of turn", |id| *id != EOT), 1..12)
}

proptest! {
    #[test]
    fn with_a_symmetric_template_the_trace_is_the_whole_context(
        first in span(),
        turns in proptest::collection::vec((span(), any::<bool>(), span()), 1..12),
    ) {
        let (session, context) = symmetric(&first, &turns);
        let built = build(&session, &reference(EOT)).unwrap();
        let trace = built.pointer("/traces/0").unwrap();
        let mut ids = numbers(trace, "prompt_ids");
        prop_assert_eq!(&ids, &first);
        let response = numbers(trace, "response_ids");
        ids.extend(&response);
        prop_assert_eq!(&ids, &context, "prompt and response ids are what the engine saw and said");
        let mask = numbers(trace, "loss_mask");
        let sampled: Vec<u32> = response.iter().zip(&mask).filter(|(_, m)| **m == 1).map(|(id, _)| *id).collect();
        let said: Vec<u32> = turns.iter().flat_map(|(s, cut, _)| s.iter().copied().chain((!cut).then_some(EOT))).collect();
        prop_assert_eq!(sampled, said, "mask 1 marks exactly what was sampled");
        for ((id, mask), lp) in response.iter().zip(&mask).zip(trace.get("response_logprobs").unwrap().as_array().unwrap().iter()) {
            let want = if *mask == 1 { -f64::from(*id) / 8.0 } else { 0.0 };
            prop_assert_eq!(lp.as_f64(), Some(want));
        }
        prop_assert_eq!(built.pointer("/metadata/reconstruction_stats/completions_merged").unwrap().as_i64(), i64::try_from(turns.len()).ok());
    }

    #[test]
    fn glue_that_history_lacks_is_put_back(first in span(), turns in proptest::collection::vec((span(), Just(false), span()), 2..8)) {
        const GLUE: u32 = 500;
        let (session, _) = symmetric(&first, &turns);
        let options = Options { glue_ids: vec![i64::from(GLUE)], ..reference(EOT) };
        // What the engine is given before a turn ends with the glue; history never has it.
        let mut glued = session.clone();
        for record in glued.get_mut("completions").and_then(Value::as_array_mut).unwrap() {
            let choice = &mut record.get_mut("response").and_then(|r| r.get_mut("choices")).and_then(Value::as_array_mut).unwrap()[0];
            choice.get_mut("prompt_token_ids").and_then(Value::as_array_mut).unwrap().push(Value::from(GLUE));
        }
        let built = build(&glued, &options).unwrap();
        prop_assert_eq!(built.pointer("/metadata/gsj_validation/glue_stitched").unwrap().as_i64(), i64::try_from(turns.len() - 1).ok());
        prop_assert_eq!(built.get("traces").unwrap().as_array().unwrap().len(), 1);
        prop_assert_eq!(numbers(built.pointer("/traces/0").unwrap(), "loss_mask").iter().filter(|m| **m == 1).count(),
            turns.iter().map(|(s, _, _)| s.len() + 1).sum::<usize>());
    }

    #[test]
    fn no_document_makes_the_builder_fail(members in proptest::collection::vec((0usize..14, 0usize..12), 1..10)) {
        let keys = ["session_id", "completions", "metadata", "completion_id", "response", "choices", "token_ids", "logprobs",
            "content", "meta_info", "output_token_logprobs", "input_token_ids", "messages", "request"];
        let leaves = ["null", "1", "-1.5", "\"x\"", "[]", "{}", "[1,2]", "[null]", "1e999", "[[1,2],[3]]", "[{\"token_id\":1,\"logprob\":\"nan\"}]", "\"\\ud800\""];
        let mut text = "1".to_owned();
        for (key, leaf) in members {
            let key = keys[key];
            text = format!("{{\"{key}\":[{{\"{key}\":{text}}},{}],\"session_id\":\"s\",\"completions\":[{{\"completion_id\":\"c\",\"response\":{{\"choices\":[{{\"{key}\":{text}}}]}}}}]}}", leaves[leaf]);
            if text.len() > 20_000 { break; }
        }
        let session = Value::parse(text.as_bytes()).unwrap();
        for continuity in [Continuity::Exact, Continuity::SameText, Continuity::Reference] {
            let options = Options { continuity, ..Options::default() };
            prop_assert!(build(&session, &options).is_ok());
        }
    }
}
