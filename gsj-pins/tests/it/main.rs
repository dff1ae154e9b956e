//! Derivation against a real estate's artifacts.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod fixtures;
mod traces;

use std::path::PathBuf;

use gsj_pins::derive::{Derivation, DeriveError};
use gsj_pins::{Key, Pins};
use gsj_trace::canonical::bytes_sha256;
use gsj_trace::json::{Value, ValueRef};

fn shared(name: &str) -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", path.display());
            None
        }
    }
}

const TAIL: &str = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
const TAIL_IDS: [u32; 7] = [151_644, 77_091, 198, 151_667, 271, 151_668, 271];
const PROMPT_HASH: &str = "f56e8a6e9ea9dd1c19be89c6754a4e8d3d1c0f89e04bb21f60237aa2e8837df4";

#[test]
fn deriving_from_the_reference_estates_artifacts_gives_its_pins() {
    let (Some(template), Some(roster), Some(summarize), Some(analyze), Some(expected)) = (
        shared("data/qwen3_training.jinja"),
        shared("data/tools.captured.json"),
        shared("data/staging-corpus/skills/summarize/SKILL.md"),
        shared("data/staging-corpus/skills/analyze/SKILL.md"),
        shared("vectors/checks/pins/gsj.json"),
    ) else {
        return;
    };
    let settings = Value::parse(br#"{"compaction": {"enabled": false}}"#).expect("json");
    let roster = Value::parse(&roster).expect("json");
    let mut derivation = Derivation::new();
    derivation.chat_template("qwen3_training.jinja", &template);
    derivation.settings("settings.json", settings.as_ref()).expect("settings");
    derivation.roster("tools.captured.json", roster.as_ref()).expect("roster");
    derivation.skill_card("summarize", "skills/summarize/SKILL.md", &summarize);
    derivation.skill_card("analyze", "skills/analyze/SKILL.md", &analyze);
    derivation.tail("tail.txt", TAIL, &TAIL_IDS).expect("tail");
    assert_eq!(derivation.missing(), [Key::SystemPrompt]);

    let (document, expected) = (derivation.document(), Value::parse(&expected).expect("json"));
    for key in Key::ALL.into_iter().filter(|key| ![Key::Tokenizer, Key::SystemPrompt].contains(key)) {
        let pointer = format!("/pins/{key}");
        assert_eq!(document.pointer(&pointer), expected.pointer(&pointer), "{key}");
    }
    assert_eq!(
        document.pointer("/provenance/chat_template_hash/0/sha256").and_then(ValueRef::as_str),
        Some(bytes_sha256(&template).as_str())
    );
    let pins = Pins::from_bytes("gsj.json", expected.to_json().into_bytes());
    assert_eq!(pins.check_whole(), Ok(()), "the reference estate's document is whole");
    assert!(pins.approved(Key::SystemPrompt).expect("set").contains_digest(Some(PROMPT_HASH)));
}

#[test]
fn the_same_artifacts_give_the_same_bytes() {
    let derive = || {
        let settings = Value::parse(br#"{"b":1,"a":2}"#).expect("json");
        let mut derivation = Derivation::new();
        derivation.mode("thinking-on").expect("mode");
        derivation.tokenizer("tokenizer.json", b"hello\n");
        derivation.settings("s.json", settings.as_ref()).expect("settings");
        derivation.roster("r.json", ValueRef::Array(&[settings].into_iter().collect())).expect("roster");
        derivation.system_prompt("p.txt", "hi").system_prompt("p.txt", "hi");
        derivation.tail("t.txt", "x", &[1, 2]).expect("tail");
        derivation.end_of_turn_ids("tokenizer.json", "00", &[7, 7]);
        derivation.skill_card("a", "a/SKILL.md", b"card");
        derivation.to_text()
    };
    let text = derive();
    assert_eq!(text, derive());
    let pins = Pins::from_bytes("p", text.clone().into_bytes());
    assert_eq!(pins.check_whole(), Ok(()));
    assert_eq!(pins.mode(), "thinking-on");
    insta::assert_snapshot!(text, @r#"
    {
      "format": "gsj-pins/1",
      "mode": "thinking-on",
      "pins": {
        "tokenizer_hash": [
          "ce013625030ba8dba906f756967f9e9ca394464a"
        ],
        "settings_hash": [
          "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
        ],
        "tool_roster_hash": [
          "82c9656ed6aa58d0ca5d00081451bfd33f9edd2a45f27c647781c8783759541d"
        ],
        "system_prompt_hash": [
          "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"
        ],
        "skill_card_hash": [
          "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"
        ],
        "g6_expected_tail": [
          "x"
        ],
        "g6_expected_tail_ids": [
          [1, 2]
        ],
        "skill_cards": {
          "a": [
            "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"
          ]
        },
        "end_of_turn_ids": [7]
      },
      "provenance": {
        "tokenizer_hash": [
          {
            "value": "ce013625030ba8dba906f756967f9e9ca394464a",
            "artifact": "tokenizer.json",
            "sha256": "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
          }
        ],
        "settings_hash": [
          {
            "value": "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772",
            "artifact": "s.json",
            "sha256": "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
          }
        ],
        "tool_roster_hash": [
          {
            "value": "82c9656ed6aa58d0ca5d00081451bfd33f9edd2a45f27c647781c8783759541d",
            "artifact": "r.json",
            "sha256": "82c9656ed6aa58d0ca5d00081451bfd33f9edd2a45f27c647781c8783759541d"
          }
        ],
        "system_prompt_hash": [
          {
            "value": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
            "artifact": "p.txt",
            "sha256": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"
          }
        ],
        "skill_card_hash": [
          {
            "value": "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d",
            "artifact": "a/SKILL.md",
            "sha256": "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"
          }
        ],
        "g6_expected_tail": [
          {
            "value": "x",
            "artifact": "t.txt",
            "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
          }
        ],
        "g6_expected_tail_ids": [
          {
            "value": [1, 2],
            "artifact": "t.txt",
            "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
          }
        ],
        "end_of_turn_ids": [
          {
            "value": 7,
            "artifact": "tokenizer.json",
            "sha256": "00"
          }
        ]
      }
    }
    "#);
}

#[test]
fn useless_artifacts_are_refused() {
    let mut derivation = Derivation::new();
    let nan = Value::parse(br#"{"a":NaN}"#).expect("json");
    assert!(matches!(derivation.settings("s", nan.as_ref()), Err(DeriveError::Unhashable { .. })));
    assert!(matches!(derivation.settings("s", ValueRef::Null), Err(DeriveError::Shape { .. })));
    assert!(matches!(derivation.roster("r", nan.as_ref()), Err(DeriveError::Shape { .. })));
    assert!(derivation.tail("t", "x", &[]).is_err());
    assert!(derivation.mode("../x").is_err());
    assert_eq!(derivation.document().pointer("/provenance"), Some(ValueRef::Object(&gsj_trace::json::Object::new())));
}

#[test]
fn documents_of_any_shape_can_be_looked_at() {
    let shapes = [
        r#"{"pins":{}}"#,
        r#"{"pins":{"settings_hash":[null,1.5,[[]],{"a":NaN},"\ud800","\ud800"],"skill_cards":[1],"end_of_turn_ids":{}}}"#,
        r#"{"pins":{"skill_cards":{"\udc00":["\ud800",7],"a":"b"},"skill_card_hash":"x"},"provenance":7}"#,
        r#"{"pins":{"g6_expected_tail":[7],"g6_expected_tail_ids":[[],[-1],[1e400],7]},"provenance":{"g6_expected_tail_ids":
            [7,{},{"value":[-1]},{"value":[-1],"artifact":3},{"value":[-1],"artifact":"a","part":"no pointer"}]}}"#,
        r#"{"pins":{"tool_roster_hash":["a"]},"mode":3,"provenance":{"tool_roster_hash":{"value":"a"}}}"#,
    ];
    let all: Vec<Pins> = shapes.iter().map(|text| Pins::from_bytes("p", text.as_bytes().to_vec())).collect();
    for pins in &all {
        let values = pins.values().expect("usable");
        assert!(values.iter().all(|pinned| !pinned.text().is_empty()), "{}", pins.label());
        for artifact in [&b""[..], b"{", b"[1]", br#"{"trajectory":{}}"#, b"\xff"] {
            assert!(pins.verify(|_| Ok(artifact.to_vec()), None).is_ok_and(|found| found.fault.is_some()));
        }
        for other in &all {
            let moved = gsj_pins::diff::diff(pins, other).expect("usable");
            let back = gsj_pins::diff::diff(other, pins).expect("usable");
            assert_eq!(moved.sets.len(), back.sets.len(), "a move is seen from both sides");
        }
        assert_eq!(gsj_pins::diff::diff(pins, pins).expect("usable").sets, [], "a document equals itself");
    }
}
