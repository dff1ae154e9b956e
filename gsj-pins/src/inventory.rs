//! The approved values one by one, each with the artifacts that its provenance names.

use gsj_trace::json::{Array, Object, Value, ValueRef};

use crate::{Pins, PinsError, Set};

/// One approved value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pinned<'p> {
    /// Where it is approved.
    pub set: Set,
    /// The value as it stands there; of `skill_cards` the hash.
    pub value: ValueRef<'p>,
    /// The skills whose card it is, by `skill_cards`; of `skill_cards` the one that lists it.
    pub skills: Vec<String>,
    /// Where it came from, as far as the document says.
    pub sources: Vec<Source>,
}

/// An artifact that gave a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// The artifact's name, usually a path.
    pub artifact: String,
    /// JSON pointer to the part of it that gives the value; `None`: the whole of it.
    pub part: Option<String>,
    /// The recorded SHA-256: of the artifact's bytes, of the canonical text for a settings document or roster that is a
    /// file of its own, of the tail's text for a tail.
    pub sha256: Option<String>,
}

impl Pins {
    /// Every approved value in the order of a document, whatever its type; repeats are left out.
    ///
    /// # Errors
    /// The document is unusable.
    pub fn values(&self) -> Result<Vec<Pinned<'_>>, PinsError> {
        let sets = self.sets()?;
        let cards = Cards(sets.get("skill_cards").and_then(ValueRef::as_object));
        let mut out: Vec<Pinned<'_>> = Vec::new();
        for set in Set::ALL {
            if set == Set::SkillCards {
                out.extend(cards.iter().map(|(skill, value)| Pinned {
                    set,
                    value,
                    skills: vec![skill],
                    sources: Vec::new(),
                }));
                continue;
            }
            let from = out.len();
            for value in elements(sets.get(set.name())) {
                if out[from..].iter().any(|known| known.value == value) {
                    continue;
                }
                let skills = if set == crate::Key::SkillCard.into() { cards.of(value) } else { Vec::new() };
                let sources = self.provenance(set)?.filter(|(of, _)| *of == value).map(|(_, source)| source).collect();
                out.push(Pinned { set, value, skills, sources });
            }
        }
        Ok(out)
    }

    /// What the provenance says of a set: values with their sources.
    pub(crate) fn provenance(&self, set: Set) -> Result<impl Iterator<Item = (ValueRef<'_>, Source)>, PinsError> {
        let listed = self.document()?.get("provenance").and_then(|all| all.get(set.name()));
        Ok(elements(listed).filter_map(|entry| {
            let text = |key: &str| entry.get(key).and_then(ValueRef::as_str).map(str::to_owned);
            let source = Source { artifact: text("artifact")?, part: text("part"), sha256: text("sha256") };
            Some((entry.get("value")?, source))
        }))
    }
}

/// The object `skill_cards`, of any shape.
#[derive(Clone, Copy)]
struct Cards<'p>(Option<&'p Object<'p>>);

impl<'p> Cards<'p> {
    fn iter(self) -> impl Iterator<Item = (String, ValueRef<'p>)> {
        self.0
            .into_iter()
            .flat_map(|cards| cards.iter())
            .flat_map(|(skill, hashes)| elements(Some(hashes)).map(move |hash| (skill.escaped().into_owned(), hash)))
    }

    fn of(self, hash: ValueRef<'_>) -> Vec<String> {
        self.iter().filter(|(_, known)| *known == hash).map(|(skill, _)| skill).collect()
    }
}

pub(crate) fn elements(value: Option<ValueRef<'_>>) -> impl Iterator<Item = ValueRef<'_>> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(Array::iter)
}

/// A value as people read it: a text as it is, anything else as JSON.
pub(crate) fn shown(value: ValueRef<'_>) -> String {
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}

impl Pinned<'_> {
    /// The value as one word or phrase: a hash as it is, ids as JSON, a card of a skill with the skill's name, the text
    /// of a tail in quotes.
    pub fn text(&self) -> String {
        match self.set {
            Set::SkillCards => format!("{}: {}", self.skills.join(", "), shown(self.value)),
            Set::Key(crate::Key::Tail) => Value::to_json(&self.value.to_owned()),
            _ => shown(self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn each_value_has_its_sources_and_skills() {
        let pins = Pins::from_bytes(
            "p.json",
            br#"{"pins":{"skill_card_hash":["aa","bb","aa",null],"g6_expected_tail_ids":[[1,2]],"settings_hash":"no list",
                 "skill_cards":{"one":["aa"],"two":["aa","bb"]}},
                 "provenance":{"skill_card_hash":[{"value":"aa","artifact":"a/SKILL.md","sha256":"01"},
                 {"value":"aa","artifact":"t.json","part":"/x"},{"value":"cc","artifact":"gone"}, 7],
                 "g6_expected_tail_ids":[{"value":[1,2],"artifact":"t.txt","sha256":"02"}]}}"#
                .to_vec(),
        );
        let values = pins.values().expect("usable");
        let lines: Vec<String> = values
            .iter()
            .map(|pinned| {
                let from: Vec<&str> = pinned.sources.iter().map(|source| source.artifact.as_str()).collect();
                format!("{} {} {:?} {from:?}", pinned.set, pinned.text(), pinned.skills)
            })
            .collect();
        assert_eq!(
            lines,
            [
                r#"skill_card_hash aa ["one", "two"] ["a/SKILL.md", "t.json"]"#,
                r#"skill_card_hash bb ["two"] []"#,
                r#"skill_card_hash null [] []"#,
                r#"g6_expected_tail_ids [1,2] [] ["t.txt"]"#,
                r#"skill_cards one: aa ["one"] []"#,
                r#"skill_cards two: aa ["two"] []"#,
                r#"skill_cards two: bb ["two"] []"#,
            ]
        );
        assert_eq!(values[0].sources[1].part.as_deref(), Some("/x"));
        assert_eq!(values[0].set, Set::Key(Key::SkillCard));
        assert!(Pins::from_fault("x", "gone").values().is_err());
    }
}
