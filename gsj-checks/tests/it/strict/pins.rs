use gsj_checks::{Pins, Policy, Profile, validate, validate_many};
use gsj_trace::json::Value;

use super::body::{at, changed, clean, document, json};

fn with(pointer: &str, new: &str) -> Pins {
    let mut document = document();
    *at(&mut document, pointer) = json(new);
    Pins::from_bytes("pins.json", document.to_json().into_bytes())
}

/// A fault is found by any body, not by the first gate that asks.
#[test]
fn pins_are_whole_before_anything_is_read() {
    for (pointer, new) in [
        ("/pins/settings_hash", "[]"),
        ("/pins/system_prompt_hash", "\"ab\""),
        ("/pins/skill_card_hash", "[null]"),
        ("/pins/g6_expected_tail_ids", "[[]]"),
        ("/pins/g6_expected_tail_ids", "[[\"1\"]]"),
        ("/pins/skill_cards", "[]"),
        ("/pins/end_of_turn_ids", "[]"),
        ("/mode", "\"a/b\""),
    ] {
        let pins = with(pointer, new);
        for body in ["{", "[]", "{}"] {
            assert!(validate(body.as_bytes(), &pins, &Policy::default()).is_err(), "{pointer}: {new}");
            assert!(validate(body.as_bytes(), &pins, &Policy::of(Profile::Reference)).is_ok(), "{pointer}: {new}");
        }
    }
}

#[test]
fn an_estate_without_skills_approves_no_card() {
    let mut document = document();
    *at(&mut document, "/pins/skill_card_hash") = json("[]");
    at(&mut document, "/pins").as_object_mut().expect("sets").remove("skill_cards");
    let pins = Pins::from_bytes("pins.json", document.to_json().into_bytes());
    let found = |body: &Value<'_>| {
        validate(body.to_json().as_bytes(), &pins, &Policy::default()).expect("pins are whole").findings
    };
    let with_skill = found(&clean());
    assert!(with_skill.len() == 1 && with_skill[0].starts_with("G1:skill_card_hash_not_approved:"), "{with_skill:?}");
    assert_eq!(found(&changed("/trajectory/traces/0/metadata/prompt_source", Some("\"free\""))), [""; 0]);
}

/// What the optional keys arm is quiet without them.
#[test]
fn optional_keys_arm_their_rules() {
    let mut document = document();
    let sets = at(&mut document, "/pins").as_object_mut().expect("sets");
    sets.remove("end_of_turn_ids");
    sets.remove("skill_cards");
    let pins = Pins::from_bytes("pins.json", document.to_json().into_bytes());
    let mut body = changed("/trajectory/traces/0/metadata/prompt_source", Some("\"skill:beta\""));
    *at(&mut body, "/trajectory/traces/0/response_ids/7") = json("9");
    let verdict = validate(body.to_json().as_bytes(), &pins, &Policy::default()).expect("pins are whole");
    assert!(verdict.accepted(), "{:?}", verdict.findings);
}

#[test]
fn an_archive_is_answered_in_order_in_the_callers_pool() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    let (pins, policy) = (super::body::pins(), Policy::default());
    let bodies: Vec<String> = (0..300)
        .map(|n| {
            let mut body = clean();
            *at(&mut body, "/session_id") = Value::from(format!("s{n}"));
            if n % 7 == 0 {
                *at(&mut body, "/status") = Value::from("ERROR");
            }
            body.to_json()
        })
        .collect();
    let one_by_one: Vec<_> = bodies.iter().map(|body| validate(body.as_bytes(), &pins, &policy)).collect();
    let many: Vec<_> = pool.install(|| validate_many(&bodies, &pins, &policy).collect());
    assert_eq!(many, one_by_one);
    let faulty = Pins::from_fault("pins.json", "gone");
    let stopped: Result<Vec<_>, _> = validate_many(&bodies, &faulty, &policy).collect();
    assert!(stopped.is_err());
}
