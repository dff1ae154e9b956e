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

/// Elements and gaps as arrays have them, and as they should not have them.
fn number_array() -> impl Strategy<Value = String> {
    let element = prop_oneof![
        8 => prop_oneof![Just(0_u64), Just(1), 0_u64..10, 0_u64..200_000, any::<u32>().prop_map(u64::from), any::<u64>()]
            .prop_map(|n| n.to_string()),
        4 => Just("0.0".to_owned()),
        4 => (any::<f64>(), -30_i32..3).prop_map(|(x, scale)| float_text(x % 10_f64.powi(scale))),
        2 => "-?(0|[1-9][0-9]{0,9})\\.[0-9]{1,24}([eE][+-]?[0-9]{1,2})?",
        1 => "-?[1-9][0-9]{0,8}",
        1 => prop_oneof![Just("null"), Just("true"), Just("false"), Just("\"x\""), Just("[1]"), Just("{}")]
            .prop_map(str::to_owned),
        1 => prop_oneof![
            Just(""), Just("01"), Just("-"), Just("1."), Just(".5"), Just("1e"), Just("1.5e+"), Just("+1"), Just("0x1"),
            Just("1_0"), Just("--1"), Just("00.5"), Just("1.5.2"), Just("12:4"), Just("1/2"), Just("-a"), Just("nul"),
            Just("1]"), Just("5\u{1}"), Just("7?"), Just("1.2;"), Just("3e5x"),
        ].prop_map(str::to_owned),
    ];
    let gap = prop_oneof![
        6 => Just(", "),
        6 => Just(","),
        6 => Just(",\n            "),
        1 => prop_oneof![Just(" , "), Just(",\t"), Just(",\r\n"), Just(",,"), Just(" "), Just(",                    ")],
    ];
    let texts = |range| prop::collection::vec(range, 0..150);
    let elements = prop_oneof![
        4 => prop::collection::vec(element, 0..12),
        1 => texts((0_u32..2).boxed()).prop_map(|mask| mask.iter().map(u32::to_string).collect::<Vec<_>>()),
        1 => texts((0_u32..200_000).boxed()).prop_map(|ids| ids.iter().map(u32::to_string).collect()),
        1 => (0_usize..150).prop_map(|zeros| vec!["0.0".to_owned(); zeros]),
    ];
    // Long stretches of one gap, as they are, and now and then a change.
    prop::collection::vec((gap, elements), 0..4).prop_map(|parts| {
        let mut text = "[".to_owned();
        for (gap, elements) in parts {
            for element in elements {
                if text.len() > 1 {
                    text.push_str(gap);
                }
                text.push_str(&element);
            }
        }
        text + "]"
    })
}

fn same_as_serde(ours: ValueRef<'_>, theirs: &serde_json::Value) -> bool {
    match (ours, theirs) {
        (ValueRef::Array(ours), serde_json::Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same_as_serde(a, b))
        }
        (ValueRef::Float(x), theirs) => theirs.is_f64() && theirs.as_f64().map(f64::to_bits) == Some(x.to_bits()),
        (ValueRef::Int(n), theirs) => !theirs.is_f64() && *n.to_string() == *theirs.to_string(),
        (ours, theirs) => *ours.to_json() == *theirs.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The ways for plain elements give what the ways for any element give.
    #[test]
    fn arrays_of_numbers_are_read_as_another_reader_reads_them(text in number_array()) {
        let padded = format!("{text}{}", " ".repeat(20));
        for text in [text, padded] {
            match (Value::parse(text.as_bytes()), serde_json::from_str::<serde_json::Value>(&text)) {
                (Ok(ours), Ok(theirs)) => prop_assert!(same_as_serde(ours.as_ref(), &theirs), "{}", text),
                (ours, theirs) => prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{}", text),
            }
        }
    }

    /// Floats are read as std reads them, bit for bit.
    #[test]
    fn floats_are_rounded_correctly(tokens in prop::collection::vec(prop_oneof![
        "-?(0|[1-9][0-9]{0,6})\\.[0-9]{1,22}",
        "-?(0|[1-9][0-9]{0,6})\\.[0-9]{1,22}[eE][+-]?[0-9]{1,3}",
        "-?0\\.0{0,12}[0-9]{1,20}",
        any::<f64>().prop_map(|x| format!("{:?}", x % 1e6)).prop_filter("with a point", |text| text.contains('.')),
        any::<f32>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{:?}", f64::from(x) % 1e4)).prop_filter("with a point", |text| text.contains('.')),
    ], 2..20)) {
        let text = format!("[{}]", tokens.join(", "));
        let value = Value::parse(text.as_bytes()).expect("numbers");
        for (token, read) in tokens.iter().zip(value.as_array().expect("array")) {
            let expected: f64 = token.parse().expect("a float");
            prop_assert_eq!(read.as_f64().map(f64::to_bits), Some(expected.to_bits()), "{}", token);
        }
    }

    /// In the middle of two doubles, and as close to it as a cut text comes.
    #[test]
    fn middles_are_rounded_correctly(m in 1_u64 << 52..1 << 53, places in 1_u32..28, cut in 0_usize..12, nudge in 0_u8..3) {
        // (2m + 1) / 2^places, which is (2m + 1) * 5^places / 10^places.
        let digits = (u128::from(2 * m + 1) * 5_u128.pow(places)).to_string();
        let point = digits.len() - places as usize;
        let mut text = format!("{}.{}", &digits[..point], &digits[point..]);
        text.truncate(text.len().saturating_sub(cut).max(point + 2));
        if nudge > 0 {
            text.push_str(&nudge.to_string());
        }
        let array = format!("[{text}, -{text}, {text}e-3, {text}]");
        let value = Value::parse(array.as_bytes()).expect("numbers");
        let texts = [text.clone(), format!("-{text}"), format!("{text}e-3"), text];
        for (text, read) in texts.iter().zip(value.as_array().expect("array")) {
            let expected: f64 = text.parse().expect("a float");
            prop_assert_eq!(read.as_f64().map(f64::to_bits), Some(expected.to_bits()), "{}", text);
        }
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
    // Mixed ones are packed too, but not as bare numbers of one kind.
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
