//! Checking a document whole, at start-up (`checks.md` section 13.1).

use gsj_trace::json::{Array, ValueRef};

use crate::pins::is_mode;
use crate::{Key, Pins, PinsError};

impl Pins {
    /// The first fault of the whole document; see [`Pins::check_whole`].
    pub(crate) fn examine_whole(&self) -> Result<(), PinsError> {
        let sets = self.sets()?;
        for key in Key::ALL {
            let fault = |reason: String| PinsError::key(self.label(), key, reason);
            match sets.get(key.name()) {
                None if key.is_consulted() => return Err(fault("is missing".to_owned())),
                None => {}
                Some(ValueRef::Array(array)) if array.is_empty() && key != Key::SkillCard => {
                    return Err(fault("is an empty list".to_owned()));
                }
                Some(ValueRef::Array(array)) => {
                    for (at, entry) in array.iter().enumerate() {
                        check_entry(key, entry).map_err(|problem| fault(format!("entry {at} {problem}")))?;
                    }
                }
                Some(_) => return Err(fault("is not a list".to_owned())),
            }
        }
        self.check_optional("skill_cards", check_skill_cards)?;
        self.check_optional("end_of_turn_ids", |ids| match ids.as_array() {
            Some(ids) if !ids.is_empty() && all_ids(ids) => Ok(()),
            _ => Err("is not a non-empty list of token ids".to_owned()),
        })?;
        match self.document()?.get("mode") {
            Some(mode) if !mode.as_str().is_some_and(is_mode) => Err(PinsError::Unusable {
                label: self.label().to_owned(),
                reason: "its `mode` is not a name of letters, digits, `_` and `-`".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn check_optional(&self, name: &str, check: impl Fn(ValueRef<'_>) -> Result<(), String>) -> Result<(), PinsError> {
        let Some(value) = self.sets()?.get(name) else { return Ok(()) };
        check(value).map_err(|reason| PinsError::Key { label: self.label().to_owned(), key: name.to_owned(), reason })
    }
}

fn check_entry(key: Key, entry: ValueRef<'_>) -> Result<(), &'static str> {
    match key {
        Key::Tail => entry.as_str().map(|_| ()).ok_or("is not a text"),
        Key::TailIds => match entry.as_array() {
            Some(ids) if !ids.is_empty() && all_ids(ids) => Ok(()),
            _ => Err("is not a non-empty list of token ids"),
        },
        _ if is_hash(entry) => Ok(()),
        _ => Err("is not a hash of 64 or 40 lower-case hex digits"),
    }
}

fn check_skill_cards(cards: ValueRef<'_>) -> Result<(), String> {
    let cards = cards.as_object().ok_or("is not an object of skill names")?;
    for (name, hashes) in cards {
        match hashes.as_array() {
            Some(hashes) if !hashes.is_empty() && hashes.iter().all(is_hash) => {}
            _ => return Err(format!("has no list of hashes for the skill `{}`", name.escaped())),
        }
    }
    Ok(())
}

fn is_hash(value: ValueRef<'_>) -> bool {
    value.as_str().is_some_and(|text| {
        matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

fn all_ids(ids: &Array<'_>) -> bool {
    ids.iter().all(|id| id.as_i64().is_some_and(|id| u32::try_from(id).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "dae8948524be8253e04c4174632477e0333adc0323e791a6e54ace3b31004d20";

    fn fault(change: impl Fn(&mut gsj_trace::json::Object<'static>)) -> Option<String> {
        use gsj_trace::json::{Object, Value};
        let hashes = || Value::from(vec![Value::from(HASH)]);
        let mut sets: Object<'static> =
            Key::ALL.iter().filter(|key| key.is_consulted()).map(|key| (key.name(), hashes())).collect();
        sets.insert("g6_expected_tail_ids", vec![Value::from(vec![1_u32, 2])]);
        change(&mut sets);
        let text = Value::from(Object::from_iter([("pins", sets)])).to_json();
        Pins::from_bytes("p", text.into_bytes()).check_whole().err().map(|error| error.to_string())
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        use gsj_trace::json::{Object, Value};
        assert_eq!(fault(|_| ()), None, "the document itself is whole");
        assert_eq!(fault(|sets| drop(sets.insert("skill_card_hash", Vec::<Value<'_>>::new()))), None);
        let found = |change: &dyn Fn(&mut Object<'static>), part: &str| {
            let text = fault(change).unwrap_or_default();
            assert!(text.contains(part), "`{text}` says `{part}`");
        };
        found(&|s| drop(s.remove("skill_card_hash")), "skill_card_hash` is missing");
        found(&|s| drop(s.insert("settings_hash", Vec::<Value<'_>>::new())), "settings_hash` is an empty list");
        found(&|s| drop(s.insert("settings_hash", HASH)), "is not a list");
        found(&|s| drop(s.insert("settings_hash", vec![Value::from(HASH), Value::Null])), "entry 1 is not a hash");
        found(&|s| drop(s.insert("settings_hash", vec![Value::from(HASH.to_uppercase())])), "entry 0 is not a hash");
        found(&|s| drop(s.insert("tokenizer_hash", vec![Value::from("ab")])), "tokenizer_hash` entry 0");
        found(&|s| drop(s.insert("g6_expected_tail_ids", vec![Value::from(vec![0.5])])), "list of token ids");
        found(&|s| drop(s.insert("g6_expected_tail_ids", vec![Value::from(Vec::<u32>::new())])), "list of token ids");
        found(&|s| drop(s.insert("end_of_turn_ids", 3_u32)), "end_of_turn_ids` is not");
        found(&|s| drop(s.insert("skill_cards", Object::from_iter([("alpha", HASH)]))), "skill `alpha`");
    }
}
