use gsj_checks::{Pins, Policy, Profile, validate, validate_parsed};
use gsj_trace::json::{Object, Value};
use proptest::prelude::*;

fn odd_value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        prop_oneof![Just(0.0), Just(-0.0), Just(1.0), Just(f64::NAN), Just(-1e4)].prop_map(Value::from),
        prop_oneof![Just("tool"), Just("system"), Just("free"), Just("skill:a"), Just("\"page\": 9"), Just("")]
            .prop_map(Value::from),
        prop::collection::vec(0_u32..3, 0..6).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let key = prop_oneof![
            Just("role"),
            Just("content"),
            Just("text"),
            Just("tool_calls"),
            Just("tool_call_id"),
            Just("id"),
            Just("function"),
            Just("name"),
            Just("timestep"),
            Just("gsj_workspace"),
            Just("gsj_settings"),
            Just("pages"),
            Just("min"),
            Just("max"),
            Just("count"),
            Just("prompt_source"),
            Just("task_metadata"),
            Just("gsj_fidelity"),
            Just("turns"),
            Just("kind"),
            Just("remotes"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|members| Value::from(members.into_iter().collect::<Object<'_>>())),
        ]
    })
}

fn trace() -> impl Strategy<Value = Value<'static>> {
    const KEYS: [&str; 9] = [
        "prompt_ids",
        "response_ids",
        "loss_mask",
        "prompt_messages",
        "response_messages",
        "tools",
        "finish_reason",
        "response_logprobs",
        "metadata",
    ];
    prop::collection::vec(prop::option::of(odd_value()), KEYS.len()).prop_map(|values| {
        let members = KEYS.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
        Value::from(members.collect::<Object<'_>>())
    })
}

const SETS: &str = r#"{"pins":{"settings_hash":["0"],"tool_roster_hash":["0"],"system_prompt_hash":["0"],"skill_card_hash":["0"],"g6_expected_tail_ids":[[1]],"end_of_turn_ids":[2],"skill_cards":{"a":["0"]}}}"#;

proptest! {
    /// Content never makes a validator fail, parsing and having parsed agree, and the same body
    /// gets the same answer.
    #[test]
    fn any_trace_gets_a_stable_answer(trace in trace()) {
        let pins = SETS.replace("\"0\"", &format!("\"{}\"", "0".repeat(64)));
        let pins = Pins::from_bytes("pins", pins.into_bytes());
        let body = Value::from(Object::from_iter([("trajectory", Object::from_iter([("traces", vec![trace])]))]));
        for profile in Profile::ALL {
            let policy = Policy::of(profile);
            let verdict = validate_parsed(body.as_ref(), &pins, &policy);
            prop_assert!(verdict.is_ok());
            prop_assert_eq!(&verdict, &validate(body.to_json().as_bytes(), &pins, &policy));
            prop_assert!(!verdict.is_ok_and(|verdict| verdict.accepted()), "a body without a status is never accepted");
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..48)) {
        let pins = Pins::from_fault("pins", "gone");
        let verdict = validate(&bytes, &pins, &Policy::of(Profile::Reference));
        prop_assert!(verdict.is_ok(), "no trace, so the pins are never asked");
    }
}
