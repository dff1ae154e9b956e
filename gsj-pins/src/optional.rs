//! The keys that an estate may pin besides those that the reference knows (`checks.md` section 13.1).

use gsj_trace::json::{Object, StrRef, ValueRef};

use crate::{Pins, PinsError};

impl Pins {
    /// The ids that end a turn; `None` where the document does not state them.
    ///
    /// # Errors
    /// The document is unusable, or the key holds anything but a non-empty list of token ids.
    pub fn end_of_turn_ids(&self) -> Result<Option<&[u32]>, PinsError> {
        let Some(value) = self.sets()?.get("end_of_turn_ids") else { return Ok(None) };
        match value.as_array().and_then(gsj_trace::json::Array::as_u32s) {
            Some(ids) if !ids.is_empty() => Ok(Some(ids)),
            _ => Err(self.fault_of("end_of_turn_ids", "is not a non-empty list of token ids")),
        }
    }

    /// Which cards are approved for which skill; `None` where the document does not state them.
    ///
    /// # Errors
    /// The document is unusable, or the key holds anything but an object.
    pub fn skill_cards(&self) -> Result<Option<SkillCards<'_>>, PinsError> {
        let Some(value) = self.sets()?.get("skill_cards") else { return Ok(None) };
        match value.as_object() {
            Some(cards) => Ok(Some(SkillCards(cards))),
            None => Err(self.fault_of("skill_cards", "is not an object of skill names")),
        }
    }

    fn fault_of(&self, key: &str, reason: &str) -> PinsError {
        PinsError::Key { label: self.label().to_owned(), key: key.to_owned(), reason: reason.to_owned() }
    }
}

/// The approved cards of each skill.
#[derive(Debug, Clone, Copy)]
pub struct SkillCards<'p>(&'p Object<'p>);

impl<'p> SkillCards<'p> {
    /// Whether the card with this hash is approved for the skill of this name. A skill that is not listed has none.
    pub fn approves(self, skill: StrRef<'_>, hash: StrRef<'_>) -> bool {
        let listed = self.0.get_key(skill).and_then(ValueRef::as_array);
        listed.is_some_and(|hashes| hashes.iter().any(|known| known.python_eq(ValueRef::Str(hash))))
    }

    /// The names of the skills with their hashes, in the order of the document.
    pub fn iter(self) -> impl Iterator<Item = (StrRef<'p>, impl Iterator<Item = ValueRef<'p>>)> {
        self.0.iter().map(|(name, hashes)| (name, hashes.as_array().into_iter().flat_map(|list| list.iter())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(sets: &str) -> Pins {
        Pins::from_bytes("p.json", format!(r#"{{"pins":{sets}}}"#).into_bytes())
    }

    #[test]
    fn what_is_not_stated_is_no_fault() {
        let pins = pins("{}");
        assert_eq!(pins.end_of_turn_ids(), Ok(None));
        assert!(pins.skill_cards().is_ok_and(|cards| cards.is_none()));
    }

    #[test]
    fn ids_are_bare_numbers_or_a_fault() {
        assert_eq!(pins(r#"{"end_of_turn_ids":[151645,2]}"#).end_of_turn_ids(), Ok(Some(&[151_645, 2][..])));
        for odd in ["[]", "7", "[-1]", "[1.0]", "[true]", "[4294967296]", "null"] {
            let fault = pins(&format!(r#"{{"end_of_turn_ids":{odd}}}"#)).end_of_turn_ids().expect_err(odd).to_string();
            assert!(fault.contains("`pins.end_of_turn_ids` is not a non-empty list of token ids"), "{fault}");
        }
    }

    #[test]
    fn a_card_is_approved_for_its_own_skill_only() {
        let pins = pins(r#"{"skill_cards":{"alpha":["aa","ab"],"beta":["bb"],"odd":"aa"}}"#);
        let cards = pins.skill_cards().expect("usable").expect("stated");
        assert!(cards.approves("alpha".into(), "ab".into()));
        assert!(!cards.approves("alpha".into(), "bb".into()), "another skill's card");
        assert!(!cards.approves("odd".into(), "aa".into()), "a string is no list");
        assert!(!cards.approves("gamma".into(), "aa".into()), "no such skill");
        let names: Vec<_> = cards.iter().map(|(name, hashes)| (name.escaped().into_owned(), hashes.count())).collect();
        assert_eq!(names, [("alpha".to_owned(), 2), ("beta".to_owned(), 1), ("odd".to_owned(), 0)]);
    }
}
