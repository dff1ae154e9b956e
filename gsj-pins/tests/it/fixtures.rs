//! The project's own pins against the artifacts they were made from.

use std::path::{Path, PathBuf};

use gsj_pins::derive::Derivation;
use gsj_pins::verify::{Outcome, Verification};
use gsj_pins::{Key, Pins, Set};
use gsj_trace::canonical::{bytes_sha256, git_blob_sha1};
use gsj_trace::json::Value;
use gsj_trace::tokens::TokenText;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

fn fixture(name: &str) -> Vec<u8> {
    read(name).expect(name)
}

fn read(name: &str) -> Result<Vec<u8>, String> {
    std::fs::read(fixtures().join(name)).map_err(|error| error.kind().to_string())
}

/// The few tokens of the tail, as the fixtures' tokenizer has them.
#[derive(Debug)]
struct TailTokens(String);

impl TokenText for TailTokens {
    fn bytes(&self, id: u32) -> Option<&[u8]> {
        Some(match id {
            1 => b"<|im_start|>",
            2083 => b"assistant",
            207 => b"\n",
            3 => b"<think>",
            301 => b"\n\n",
            4 => b"</think>",
            _ => return None,
        })
    }

    fn is_control(&self, id: u32) -> bool {
        id < 5
    }

    fn identity(&self) -> &str {
        &self.0
    }
}

#[test]
fn the_fixtures_pins_derive_to_the_same_bytes() {
    for (agent, prefix) in [("pi", ""), ("light", "light.")] {
        let tails: [(&str, &str, &[u32]); 2] = [
            ("thinking-off", "<|im_start|>assistant\n<think>\n\n</think>\n\n", &[1, 2083, 207, 3, 301, 4, 301]),
            ("thinking-on", "<|im_start|>assistant\n", &[1, 2083, 207]),
        ];
        for (mode, tail, ids) in tails {
            let tokenizer = fixture("tokenizer/tokenizer.json");
            let roster = fixture(&format!("agent/{agent}/roster.json"));
            let prompt = String::from_utf8(fixture(&format!("agent/{agent}/system_prompt.txt"))).expect("text");
            let settings = Value::parse(br#"{"compaction":{"enabled":false}}"#).expect("json");
            let mut derivation = Derivation::new();
            derivation.mode(mode).expect("a mode");
            derivation.tokenizer("tokenizer/tokenizer.json", &tokenizer);
            derivation.chat_template("template/chat_template.jinja", &fixture("template/chat_template.jinja"));
            for skill in ["chronology", "summarize"] {
                let card = format!("corpus/skills/{skill}/SKILL.md");
                derivation.skill_card(skill, &card, &fixture(&card));
            }
            derivation.settings("harness.settings (the default)", settings.as_ref()).expect("settings");
            let roster = Value::parse(&roster).expect("json");
            derivation.roster(&format!("agent/{agent}/roster.json"), roster.as_ref()).expect("roster");
            derivation.system_prompt(&format!("agent/{agent}/system_prompt.txt"), &prompt);
            derivation.tail("template/chat_template.jinja", tail, ids).expect("tail");
            derivation.end_of_turn_ids("tokenizer/tokenizer.json", &bytes_sha256(&tokenizer), &[2]);
            assert_eq!(derivation.missing(), []);
            let name = format!("pins/{prefix}{mode}.json");
            assert_eq!(derivation.to_text().as_bytes(), fixture(&name), "{name}");
        }
    }
}

fn verified(pins: &Pins, tokens: Option<&dyn TokenText>) -> Verification {
    pins.verify(read, tokens).expect("usable")
}

#[test]
fn the_fixtures_confirm_their_pins() {
    let pins = Pins::read(&fixtures().join("pins/thinking-off.json"));
    let tokens = TailTokens(git_blob_sha1(&fixture("tokenizer/tokenizer.json")));
    let found = verified(&pins, Some(&tokens));
    assert!(found.is_clean(), "{found:?}");
    let told: Vec<String> =
        found.checks.iter().map(|check| format!("{} {}", check.set, check.outcome.name())).collect();
    assert_eq!(
        told,
        [
            "tokenizer_hash confirmed",
            "chat_template_hash confirmed",
            "settings_hash unread",
            "tool_roster_hash confirmed",
            "system_prompt_hash confirmed",
            "skill_card_hash confirmed",
            "skill_card_hash confirmed",
            "g6_expected_tail recorded",
            "g6_expected_tail_ids confirmed",
            "end_of_turn_ids recorded",
        ]
    );
    let other = TailTokens("another tokenizer".to_owned());
    let unsure = verified(&pins, Some(&other));
    let tail = unsure.checks.iter().find(|check| check.set == Key::TailIds.into());
    assert!(tail.is_some_and(|check| matches!(check.outcome, Outcome::Recorded(_))), "{tail:?}");
}

/// The document after a change of its text.
fn changed(from: &str, to: &str) -> Pins {
    let text = String::from_utf8(fixture("pins/thinking-off.json")).expect("text");
    let after = text.replace(from, to);
    assert_ne!(after, text, "`{from}` is in the document");
    Pins::from_bytes("changed.json", after.into_bytes())
}

fn outcomes(pins: &Pins, set: impl Into<Set>) -> Vec<Outcome> {
    let set = set.into();
    let tokens = TailTokens(git_blob_sha1(&fixture("tokenizer/tokenizer.json")));
    verified(pins, Some(&tokens))
        .checks
        .into_iter()
        .filter(|check| check.set == set)
        .map(|check| check.outcome)
        .collect()
}

#[test]
fn a_value_that_its_artifact_does_not_give_is_found() {
    let hash = "d77ef871b70930f63f232764b5f4bf1fd19214983eb88f24562fe7e311ef69eb";
    let other = "0".repeat(64);
    assert_eq!(outcomes(&changed(hash, &other), Key::ChatTemplate), [Outcome::Differs(hash.to_owned())]);

    let recorded = format!("\"sha256\": \"{hash}\"");
    let pins = changed(&recorded, &format!("\"sha256\": \"{other}\""));
    assert_eq!(outcomes(&pins, Key::ChatTemplate), [Outcome::Changed(hash.to_owned())], "the value itself still holds");

    let pins = changed("1, 2083, 207, 3, 301, 4, 301", "1, 2083, 207, 3, 301, 4");
    let text = r#""<|im_start|>assistant\n<think>\n\n</think>""#;
    assert_eq!(outcomes(&pins, Key::TailIds), [Outcome::Differs(text.to_owned())]);

    let pins = changed(r#""end_of_turn_ids": [2]"#, r#""end_of_turn_ids": [999]"#);
    assert_eq!(outcomes(&pins, Set::EndOfTurnIds), [Outcome::NoSource, Outcome::NotApproved]);

    let pins = changed("template/chat_template.jinja", "gone.jinja");
    assert!(matches!(&outcomes(&pins, Key::ChatTemplate)[..], [Outcome::Unread(why)] if why.contains("not found")));

    let pins = changed(r#""settings_hash": ["#, r#""settings_hash": [null,"#);
    let found = verified(&pins, None);
    assert!(found.fault.as_ref().is_some_and(|fault| fault.to_string().contains("settings_hash")), "{found:?}");
    assert!(!found.is_clean());
}
