//! Arrays of bare numbers have rules' shorter ways; those say what the ways for any array say.

use gsj_checks::{Pins, Policy, Profile, validate_parsed};
use gsj_trace::json::{Array, Object, Value};
use proptest::prelude::*;

/// The same array element by element.
fn unpacked(array: Value<'static>) -> Value<'static> {
    match array {
        Value::Array(array) => Value::from(array.into_vec()),
        other => other,
    }
}

fn body(arrays: [Value<'static>; 4]) -> Value<'static> {
    let keys = ["prompt_ids", "response_ids", "loss_mask", "response_logprobs"];
    let trace = Object::from_iter(keys.into_iter().zip(arrays));
    Value::from(Object::from_iter([("trajectory", Object::from_iter([("traces", Array::from_iter([trace]))]))]))
}

fn ids(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![4 => 1_u32..4, 1 => any::<u32>()], 0..most)
}

fn logprob() -> impl Strategy<Value = f64> {
    prop_oneof![
        20 => -9.0..0.0,
        4 => prop_oneof![Just(0.0), Just(-0.0)],
        1 => prop_oneof![Just(0.5), Just(-9000.0), Just(-9999.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn bare_numbers_are_judged_as_any_others(
        prompt in ids(5),
        response in ids(24),
        mask in prop_oneof![prop::collection::vec(0_u32..2, 0..24), prop::collection::vec(0_u32..3, 0..24)],
        logprobs in prop::collection::vec(logprob(), 0..24),
        threshold in prop_oneof![Just(-9000.0), Just(-1.0), Just(f64::NEG_INFINITY), Just(1.0)],
        cut in any::<bool>(),
    ) {
        let (mut response, mut mask, mut logprobs) = (response, mask, logprobs);
        if cut {
            // Of one length, as they should be.
            let length = response.len().min(mask.len()).min(logprobs.len());
            response.truncate(length);
            mask.truncate(length);
            logprobs.truncate(length);
        }
        let pins = r#"{"pins":{"settings_hash":["a"],"tool_roster_hash":["a"],"system_prompt_hash":["a"],"skill_card_hash":["a"],"g6_expected_tail_ids":[[1,2],[3],[2,2,1]]}}"#;
        let pins = Pins::from_bytes("pins", pins.as_bytes().to_vec());
        let policy = Policy { profile: Profile::Reference, sentinel_threshold: threshold, ..Policy::default() };
        let packed = [Value::from(prompt), Value::from(response), Value::from(mask), Value::from(logprobs)];
        let loose = packed.clone().map(unpacked);
        let verdict = validate_parsed(body(packed).as_ref(), &pins, &policy);
        prop_assert!(verdict.is_ok());
        prop_assert_eq!(verdict, validate_parsed(body(loose).as_ref(), &pins, &policy));
    }
}
