//! Pins from traces and from a model's own configuration files.

use gsj_pins::derive::{Derivation, DeriveError, Tail};
use gsj_pins::verify::Outcome;
use gsj_pins::{Key, Pins};
use gsj_trace::canonical::bytes_sha256;
use gsj_trace::json::Value;
use gsj_trace::tokens::TokenText;

use crate::{PROMPT_HASH, TAIL, TAIL_IDS, shared};

/// Qwen3's tokens of the tail.
#[derive(Debug)]
struct Qwen;

impl TokenText for Qwen {
    fn bytes(&self, id: u32) -> Option<&[u8]> {
        Some(match id {
            151_644 => b"<|im_start|>",
            77_091 => b"assistant",
            198 => b"\n",
            151_667 => b"<think>",
            271 => b"\n\n",
            151_668 => b"</think>",
            _ => return None,
        })
    }

    fn is_control(&self, id: u32) -> bool {
        id >= 151_643
    }

    fn identity(&self) -> &'static str {
        "qwen"
    }
}

const TRACE: &str = r#"{"session_id":"s","status":"COMPLETED","trajectory":{"status":"COMPLETED","metadata":{},"traces":[{
  "prompt_ids":[5,151644,77091,198],"response_ids":[9,9],"loss_mask":[1,1],
  "tools":[{"name":"read"}],
  "prompt_messages":[{"role":"system","content":[{"type":"text","text":"Be "},{"type":"text","text":"exact."}]},{"role":"user","content":"go"}],
  "response_messages":[{"role":"developer","content":"More."},{"role":"assistant","content":"done"}],
  "metadata":{"prompt_source":"skill:alpha","skill_card_hash":"8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d","gsj_settings":{"b":1}}}]}}"#;

#[test]
fn a_trace_gives_what_it_was_made_with() {
    let mut derivation = Derivation::new();
    derivation.mode("thinking-on").expect("a mode");
    let tail = Tail { text: "<|im_start|>assistant\n", tokens: &Qwen };
    let ids = derivation.from_trace("t.json", TRACE.as_bytes(), Some(tail)).expect("an accepted trace");
    assert_eq!(ids, [[151_644, 77_091, 198]]);
    assert_eq!(derivation.missing(), []);
    let digest = bytes_sha256(TRACE.as_bytes());
    let text = derivation.to_text();
    insta::assert_snapshot!(text.replace(&digest, "<digest of t.json>"), @r#"
    {
      "format": "gsj-pins/1",
      "mode": "thinking-on",
      "pins": {
        "settings_hash": [
          "eb8ed3ccb5023093b56f490a46501e88d09736687e609fdbc1c71b3df8b9ccd3"
        ],
        "tool_roster_hash": [
          "ed946e00d82719d1d4d4c3fdcb9f7aeedff8ae809034109018c3af899dc81039"
        ],
        "system_prompt_hash": [
          "68ae8231a95595f01afc3b461256b94b37a5e9c74f14d2a2f7438fe1b8e14b98",
          "2e823667482aae3d8353944b920f4eabeeb9c2b7347ba19f05d4d16a32bd460d"
        ],
        "skill_card_hash": [
          "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"
        ],
        "g6_expected_tail": [
          "<|im_start|>assistant\n"
        ],
        "g6_expected_tail_ids": [
          [151644, 77091, 198]
        ],
        "skill_cards": {
          "alpha": [
            "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"
          ]
        }
      },
      "provenance": {
        "settings_hash": [
          {
            "value": "eb8ed3ccb5023093b56f490a46501e88d09736687e609fdbc1c71b3df8b9ccd3",
            "artifact": "t.json",
            "part": "/trajectory/traces/0/metadata/gsj_settings",
            "sha256": "<digest of t.json>"
          }
        ],
        "tool_roster_hash": [
          {
            "value": "ed946e00d82719d1d4d4c3fdcb9f7aeedff8ae809034109018c3af899dc81039",
            "artifact": "t.json",
            "part": "/trajectory/traces/0/tools",
            "sha256": "<digest of t.json>"
          }
        ],
        "system_prompt_hash": [
          {
            "value": "68ae8231a95595f01afc3b461256b94b37a5e9c74f14d2a2f7438fe1b8e14b98",
            "artifact": "t.json",
            "part": "/trajectory/traces/0/prompt_messages/0",
            "sha256": "<digest of t.json>"
          },
          {
            "value": "2e823667482aae3d8353944b920f4eabeeb9c2b7347ba19f05d4d16a32bd460d",
            "artifact": "t.json",
            "part": "/trajectory/traces/0/response_messages/0",
            "sha256": "<digest of t.json>"
          }
        ],
        "skill_card_hash": [
          {
            "value": "8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d",
            "artifact": "t.json",
            "part": "/trajectory/traces/0/metadata/skill_card_hash",
            "sha256": "<digest of t.json>"
          }
        ],
        "g6_expected_tail": [
          {
            "value": "<|im_start|>assistant\n",
            "artifact": "t.json",
            "sha256": "fb3832354a86f4328bdfbf33691473fc7c08824ff6bd056f4b90c95d7fe9eaa4"
          }
        ],
        "g6_expected_tail_ids": [
          {
            "value": [151644, 77091, 198],
            "artifact": "t.json",
            "part": "/trajectory/traces/0",
            "sha256": "<digest of t.json>"
          }
        ]
      }
    }
    "#);

    let pins = Pins::from_bytes("p", text.into_bytes());
    assert_eq!(pins.check_whole(), Ok(()));
    let read = |_: &str| Ok(TRACE.as_bytes().to_vec());
    let verified = pins.verify(read, None).expect("usable");
    let unsure: Vec<_> = verified.checks.iter().filter(|check| check.outcome != Outcome::Confirmed).collect();
    assert!(matches!(&unsure[..], [check] if check.set == Key::Tail.into()), "the text alone: {unsure:?}");
    let read = |_: &str| Ok(TRACE.replace("exact", "quick").into_bytes());
    let verified = pins.verify(read, None).expect("usable");
    let problems: Vec<_> = verified.checks.iter().filter(|check| check.outcome.is_problem()).collect();
    assert!(matches!(&problems[..], [check] if check.set == Key::SystemPrompt.into()), "{problems:?}");
}

#[test]
fn what_an_artifact_gave_keeps_that_artifact() {
    let settings = Value::parse(br#"{"b":1}"#).expect("json");
    let mut derivation = Derivation::new();
    derivation.settings("settings.json", settings.as_ref()).expect("settings");
    derivation.from_trace("t.json", TRACE.as_bytes(), None).expect("accepted");
    derivation.from_trace("u.json", TRACE.as_bytes(), None).expect("accepted");
    let document = derivation.document();
    let artifact = |pointer: &str| document.pointer(pointer).and_then(|a| a.as_str().map(str::to_owned));
    assert_eq!(artifact("/provenance/settings_hash/0/artifact").as_deref(), Some("settings.json"));
    assert_eq!(artifact("/provenance/settings_hash/1/artifact"), None);
    assert_eq!(artifact("/provenance/tool_roster_hash/0/artifact").as_deref(), Some("t.json"));
    assert_eq!(artifact("/provenance/tool_roster_hash/1/artifact"), None, "the second trace adds nothing");
    assert_eq!(derivation.missing(), [Key::TailIds], "a trace does not say how long the tail is");
}

#[test]
fn only_accepted_traces_are_taken() {
    let refused = |from: &str, to: &str| {
        let body = TRACE.replace(from, to);
        assert_ne!(body, TRACE, "`{from}` is in the trace");
        let mut derivation = Derivation::new();
        let error = derivation.from_trace("t.json", body.as_bytes(), None).expect_err(to);
        assert_eq!(derivation.document(), Derivation::new().document(), "nothing was added");
        error.to_string()
    };
    let completed = r#"{"session_id":"s","status":"COMPLETED""#;
    assert!(refused(completed, r#"{"status":"ERROR""#).ends_with("`status` is ERROR"));
    assert!(
        refused(r#"{"status":"COMPLETED","metadata":{}"#, r#"{"metadata":{}"#)
            .ends_with("`trajectory.status` is missing")
    );
    let found =
        refused(r#""metadata":{},"traces""#, r#""metadata":{"gsj_validation":{"findings":["S6:x:c1"]}},"traces""#);
    assert!(found.ends_with("its builder found S6:x:c1"), "{found}");
    assert!(refused(r#""tools":[{"name":"read"}],"#, "").ends_with("which tools were offered"));
    assert!(
        refused(r#"{"name":"read"}"#, r#"{"name":"\ud800"}"#)
            .ends_with("`trajectory.traces[0].tools` cannot be hashed")
    );
    assert!(refused(r#""gsj_settings":{"b":1}"#, r#""gsj_settings":{}"#).ends_with("which settings the agent had"));
    assert!(refused(r#""skill_card_hash""#, r#""card""#).contains("no hash of its card"));
    assert!(refused(r#""prompt_source":"skill:alpha","#, "").ends_with("where its prompt came from"));
    assert!(refused(completed, r#"{"session_result":{},"status":"COMPLETED""#).ends_with("a file of the quarantine"));
    assert!(refused("{\"session_id\"", "\"session_id\"").ends_with("is not JSON"));

    let promptless = TRACE.replace(r#""role":"system""#, r#""role":"user""#).replace("developer", "assistant");
    let error = Derivation::new().from_trace("t.json", promptless.as_bytes(), None).expect_err("no prompt").to_string();
    assert!(error.ends_with("no system prompt"), "{error}");

    let mut derivation = Derivation::new();
    let tail = Tail { text: TAIL, tokens: &Qwen };
    let error = derivation.from_trace("t.json", TRACE.as_bytes(), Some(tail)).expect_err("thinking on");
    assert!(matches!(error, DeriveError::Tail { .. }), "{error}");
}

#[test]
fn the_record_of_a_call_gives_the_first_pins() {
    let record = br#"{"completion_id":"c000001","outcome":"completed","request":{"tools":[{"name":"read"}],
        "messages":[{"role":"system","content":"Be exact."},{"role":"user","content":"go"}]},
        "metadata":{"prompt_source":"free","gsj_settings":{"b":1}}}"#;
    let mut derivation = Derivation::new();
    derivation.from_record("session.log:1", record).expect("a call");
    assert_eq!(derivation.missing(), [Key::TailIds]);
    let pins = Pins::from_bytes("p", derivation.to_text().into_bytes());
    let checks = pins.verify(|_| Ok(record.to_vec()), None).expect("usable").checks;
    assert_eq!(checks.len(), 3);
    assert!(checks.iter().all(|check| check.outcome == Outcome::Confirmed), "{checks:?}");
    let error = derivation.from_record("x", br#"{"request":{}}"#).expect_err("no call").to_string();
    assert_eq!(error, "`x` says too little of how it was made: it does not say which tools were offered");
}

#[test]
fn a_real_body_gives_the_reference_estates_pins() {
    let (Some(body), Some(expected)) = (
        shared("vectors/checks/real/h200-fidelity_callback_session_result.json"),
        shared("vectors/checks/pins/gsj.json"),
    ) else {
        return;
    };
    let expected = Value::parse(&expected).expect("json");
    let mut derivation = Derivation::new();
    let tail = Tail { text: TAIL, tokens: &Qwen };
    let ids = derivation.from_trace("body.json", &body, Some(tail)).expect("accepted");
    assert_eq!(ids, [TAIL_IDS]);
    let document = derivation.document();
    for key in [Key::Settings, Key::ToolRoster, Key::TailIds, Key::Tail] {
        let pointer = format!("/pins/{key}");
        assert_eq!(document.pointer(&pointer), expected.pointer(&pointer), "{key}");
    }
    let prompt = document.pointer("/pins/system_prompt_hash/0").and_then(|v| v.as_str());
    assert_eq!(prompt, Some(PROMPT_HASH));
}

#[test]
fn a_models_configuration_gives_template_and_end_of_turn() {
    let config = br#"{"chat_template":"{{ x }}","eos_token":{"content":"<|im_end|>"}}"#;
    let mut derivation = Derivation::new();
    derivation.chat_template_of_config("tokenizer_config.json", config).expect("a template");
    let error = derivation.end_of_turn_of_config("tokenizer_config.json", config, None).expect_err("no id");
    assert!(error.to_string().contains("give the tokenizer too"), "{error}");
    let tokenizer = br#"{"added_tokens":[{"id":7,"content":"<|im_end|>","special":true}]}"#;
    let with = Some(("tokenizer.json", &tokenizer[..]));
    derivation.end_of_turn_of_config("tokenizer_config.json", config, with).expect("an id");
    derivation.end_of_turn_of_config("generation_config.json", br#"{"eos_token_id":[7,8]}"#, None).expect("ids");
    let document = derivation.document();
    assert_eq!(document.pointer("/pins/end_of_turn_ids").map(|ids| ids.to_json()).as_deref(), Some("[7,8]"));
    let pins = Pins::from_bytes("p", derivation.to_text().into_bytes());
    let read = |name: &str| match name {
        "tokenizer_config.json" => Ok(config.to_vec()),
        "tokenizer.json" => Ok(tokenizer.to_vec()),
        _ => Ok(br#"{"eos_token_id":[7]}"#.to_vec()),
    };
    let checks = pins.verify(read, None).expect("usable").checks;
    let told: Vec<String> = checks
        .iter()
        .map(|check| format!("{} {}: {}", check.value, check.artifact.as_deref().unwrap_or("-"), check.outcome.name()))
        .collect();
    let template = gsj_trace::canonical::text_sha256("{{ x }}");
    assert_eq!(
        told,
        [
            format!("{template} tokenizer_config.json#/chat_template: confirmed"),
            "7 tokenizer.json: recorded".to_owned(),
            "8 generation_config.json#/eos_token_id: differs".to_owned(),
        ]
    );
    let several = br#"{"chat_template":[{"name":"rag","template":"r"},{"name":"default","template":"{{ x }}"}]}"#;
    let mut derivation = Derivation::new();
    derivation.chat_template_of_config("c.json", several).expect("a default");
    let part = derivation
        .document()
        .pointer("/provenance/chat_template_hash/0/part")
        .and_then(|p| p.as_str().map(str::to_owned));
    assert_eq!(part.as_deref(), Some("/chat_template/1/template"));
    assert!(derivation.chat_template_of_config("c.json", b"{}").is_err());
}

#[test]
fn what_an_engine_said_of_itself_gives_tail_and_end_and_is_verified() {
    let said = br#"{"opening": {"prompt_ids": [5, 6, 1, 2]}, "tail_ids": [1, 2], "eos_token_id": 6}"#;
    let mut derivation = Derivation::new();
    derivation.from_engine("engine.json", said).expect("all three are there");
    assert!(!derivation.missing().contains(&Key::TailIds));
    let pins = Pins::from_bytes("p", derivation.to_text().into_bytes());
    assert_eq!(pins.end_of_turn_ids().expect("usable"), Some([6].as_slice()));
    let outcomes = |bytes: &'static [u8]| -> Vec<Outcome> {
        let found = pins.verify(|_| Ok(bytes.to_vec()), None).expect("usable");
        found.checks.into_iter().map(|check| check.outcome).collect()
    };
    assert_eq!(outcomes(said), [Outcome::Confirmed, Outcome::Confirmed]);
    let other = outcomes(br#"{"opening": {"prompt_ids": [5, 6, 1, 3]}, "tail_ids": [1, 3], "eos_token_id": 7}"#);
    assert!(other.iter().all(Outcome::is_problem), "{other:?}");
    for bad in [
        "{}",
        r#"{"opening": {"prompt_ids": [1]}, "tail_ids": [], "eos_token_id": 6}"#,
        r#"{"opening": {"prompt_ids": [1, 2]}, "tail_ids": [1], "eos_token_id": 6}"#,
        r#"{"opening": {"prompt_ids": [1, 2]}, "tail_ids": [2]}"#,
    ] {
        let mut derivation = Derivation::new();
        assert!(derivation.from_engine("e", bad.as_bytes()).is_err(), "{bad}");
        assert_eq!(derivation.to_text(), Derivation::new().to_text(), "nothing was added");
    }
}
