//! Laws of pins documents (`checks.md` section 5).

use gsj_checks::{Policy, Profile, validate};
use gsj_pins::diff::diff;
use gsj_pins::{Key, Pins};

/// A document that is whole and approves nothing real.
const WHOLE: &str = r#"{"pins":{
    "tool_roster_hash":["0000000000000000000000000000000000000000000000000000000000000001"],
    "system_prompt_hash":["0000000000000000000000000000000000000000000000000000000000000002"],
    "skill_card_hash":["0000000000000000000000000000000000000000000000000000000000000003"],
    "settings_hash":["0000000000000000000000000000000000000000000000000000000000000004"],
    "g6_expected_tail_ids":[[57]],"end_of_turn_ids":[56]}}"#;
/// A body that makes every gate ask for its key.
const ASKING: &[u8] =
    br#"{"status":"COMPLETED","trajectory":{"traces":[{"tools":[1],"metadata":{"gsj_settings":{"a":1},
    "prompt_source":"skill:a","skill_card_hash":"b"}}]}}"#;

pub(crate) fn whole() -> Pins {
    Pins::from_bytes("whole", WHOLE.as_bytes().to_vec())
}

/// Any bytes as a pins document: reading never panics and answers the same twice; what is whole makes no gate fail, and
/// what makes a gate fail is not whole.
///
/// # Panics
/// When a law is broken.
pub fn pins(data: &[u8]) {
    let pins = Pins::from_bytes("fuzzed", data.to_vec());
    let again = Pins::from_bytes("fuzzed", data.to_vec());
    let whole = pins.check_whole();
    assert_eq!(whole, again.check_whole(), "the same answer twice");
    assert_eq!(whole, pins.check_whole(), "the same answer a second time");
    assert_eq!(pins.check_usable(), again.check_usable(), "the same answer twice");
    let mode = pins.mode();
    assert!((1..=32).contains(&mode.len()) && mode.is_ascii(), "a mode is good for file names: {mode}");
    for key in Key::ALL.into_iter().filter(|key| key.is_consulted()) {
        let approved = pins.approved(key);
        assert!(approved.is_err() || pins.check_usable().is_ok(), "only a usable document has sets");
        if key != Key::SkillCard {
            assert!(whole.is_err() || approved.is_ok(), "a whole document has every set: {key}");
        }
        if let Ok(approved) = approved {
            assert!(
                approved.iter().all(|entry| approved.contains(entry) || !entry.python_eq(entry)),
                "its own entries"
            );
        }
    }
    optional(&pins, whole.is_ok());
    gates(&pins, whole.is_ok());
    if let (Ok(document), Ok(inventory)) = (pins.document(), pins.values()) {
        assert!(inventory.iter().all(|pinned| pinned.text() == pinned.text()), "a text each");
        let text = document.to_json();
        let copy = Pins::from_bytes("fuzzed", text.into_bytes());
        assert_eq!(copy.check_whole(), whole, "written and read again");
        let difference = diff(&pins, &copy).expect("both are usable");
        assert!(difference.mode.is_none() && difference.sets.is_empty(), "nothing moved: {difference:?}");
    }
}

fn optional(pins: &Pins, whole: bool) {
    let (cards, ends) = (pins.skill_cards(), pins.end_of_turn_ids());
    assert!(!whole || (cards.is_ok() && ends.is_ok()), "a whole document's optional keys are usable");
    if let Ok(Some(cards)) = cards {
        for (name, hashes) in cards.iter() {
            for hash in hashes {
                assert!(hash.as_text().is_none_or(|hash| cards.approves(name, hash)), "a card for its skill");
            }
        }
    }
}

fn gates(pins: &Pins, whole: bool) {
    let reference = validate(ASKING, pins, &Policy::of(Profile::Reference));
    let strict = validate(ASKING, pins, &Policy::default());
    assert_eq!(strict.is_ok(), whole, "the strict profile wants a whole document and no more");
    // An estate without skills is whole; a gate that asks for a card fails under the reference's rules.
    if whole && pins.approved(Key::SkillCard).is_ok() {
        assert!(reference.is_ok(), "a whole document makes no gate fail");
    }
    let untouched = validate(b"{}", pins, &Policy::of(Profile::Reference));
    assert!(untouched.is_ok(), "a body without traces asks for nothing");
    if let (Ok(strict), true) = (strict, pins.approved(Key::SkillCard).is_ok()) {
        let reference = reference.expect("checked above");
        assert!(reference.findings.iter().all(|finding| strict.findings.contains(finding)), "strict says no less");
    }
}
