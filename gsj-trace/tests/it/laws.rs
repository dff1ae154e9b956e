use gsj_trace::canonical::canonical_text;
use gsj_trace::json::{Int, MAX_DEPTH, Object, ReadError, Value, ValueRef, float_text};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        "-?[1-9][0-9]{18,40}".prop_map(|digits| Value::Int(Int::from_decimal(&digits).expect("digits"))),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<u32>(), 1..6).prop_map(Value::from),
        prop::collection::vec(any::<f64>(), 1..6).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..24)
                .prop_map(|members| Value::from(members.into_iter().collect::<Object<'_>>())),
        ]
    })
}

proptest! {
    #[test]
    fn writing_and_reading_again_is_the_identity(value in value()) {
        let text = value.to_json();
        prop_assert!(Value::parse(text.as_bytes()).expect("own text") == value, "{}", text);
        let pretty = value.to_json_pretty();
        prop_assert_eq!(Value::parse(pretty.as_bytes()).expect("pretty text").to_json(), text);
    }

    #[test]
    fn canonical_text_is_a_fixed_point(value in value()) {
        if let Some(text) = canonical_text(value.as_ref()) {
            let again = Value::parse(text.as_bytes()).expect("canonical text");
            prop_assert!(again == value);
            prop_assert_eq!(canonical_text(again.as_ref()), Some(text.clone()));
            prop_assert_eq!(value.as_ref().show().is_empty(), text == "\"\"");
        }
    }

    #[test]
    fn floats_read_back(x in any::<f64>()) {
        let text = float_text(x);
        if x.is_finite() {
            prop_assert_eq!(text.parse::<f64>().expect("a float").to_bits(), x.to_bits());
        }
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"\\\\ud8-9cNaInfity.eE+\\- \n]{0,40}") {
        let _ = Value::parse(&bytes);
        let _ = Value::parse(text.as_bytes());
    }
}

#[test]
fn depth_is_limited_exactly() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Value::parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert!(matches!(Value::parse(nested(MAX_DEPTH + 1).as_bytes()), Err(ReadError::TooDeep { .. })));
    assert!(matches!(Value::parse("{\"a\":".repeat(12_000).as_bytes()), Err(ReadError::TooDeep { .. })));
}

#[test]
fn surrogates_survive_and_pair_up() {
    let read = |json: &str| Value::parse(json.as_bytes()).expect("json").into_owned();
    assert_eq!(read(r#""\ud83d\ude00""#).as_str(), Some("😀"));
    assert_eq!(read(r#""\ud83d\ud83d\ude00""#).to_json(), "\"\\ud83d😀\"");
    assert_eq!(read(r#""\ude00\ud83d""#).to_json(), "\"\\ude00\\ud83d\"");
    assert_eq!(read(r#""\ud83dA""#).as_str(), None);
    assert!(Value::parse(br#""\ud83d\u12""#).is_err());
}

#[test]
fn repeated_keys_keep_the_first_place_and_the_last_value() {
    let value = Value::parse(br#"{"a":1,"b":2,"\u0061":3}"#).expect("json");
    assert_eq!(value.to_json(), r#"{"a":3,"b":2}"#);
}

#[test]
fn arrays_of_numbers_are_packed() {
    let value =
        Value::parse(b"[[1, 2 ,4294967295],[0.5,-1e3, -0.0],[1,2.0],[1,4294967296],[1,null],[-1],[-Infinity,-1.0]]")
            .expect("json");
    let array = |i: usize| value.index(i).and_then(ValueRef::as_array).expect("array");
    assert_eq!(array(0).as_u32s(), Some(&[1, 2, u32::MAX][..]));
    assert_eq!(array(1).as_f64s(), Some(&[0.5, -1000.0, 0.0][..]));
    for i in 2..6 {
        assert_eq!((array(i).as_u32s(), array(i).as_f64s()), (None, None), "element {i}");
    }
    assert_eq!(array(6).as_f64s(), Some(&[f64::NEG_INFINITY, -1.0][..]));
    assert_eq!(
        value.to_json(),
        "[[1,2,4294967295],[0.5,-1000.0,-0.0],[1,2.0],[1,4294967296],[1,null],[-1],[-Infinity,-1.0]]"
    );
}

#[test]
fn an_empty_array_is_an_empty_array_of_anything() {
    for empty in [Value::from(Vec::<u32>::new()), Value::from(Vec::<f64>::new()), Value::from(Vec::<Value<'_>>::new())]
    {
        let array = empty.as_array().expect("array");
        assert_eq!((array.as_u32s(), array.as_f64s()), (Some(&[][..]), Some(&[][..])));
        assert_eq!(empty, Value::parse(b"[]").expect("json"));
        assert_eq!(empty.to_json(), "[]");
    }
}

#[test]
fn errors_say_where() {
    let error = Value::parse(b"{\n  \"a\": 1,\n}").expect_err("trailing comma");
    assert_eq!(error.to_string(), "expected a key in double quotes at line 3 column 1 (byte 12)");
    assert_eq!(error.code(), "invalid_json");
}

#[test]
fn borrowed_strings_are_not_copied() {
    let text = br#"{"key":"plain"}"#;
    let value = Value::parse(text).expect("json");
    let plain = value.get("key").and_then(ValueRef::as_str).expect("text");
    assert_eq!(plain.as_ptr(), text[8..].as_ptr(), "points into the input");
}
