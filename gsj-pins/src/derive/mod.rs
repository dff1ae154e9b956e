//! Pins from artifacts: each value with the artifact it came from.

mod config;
mod trace;

use gsj_trace::canonical::{bytes_sha256, canonical_text, git_blob_sha1, text_sha256};
use gsj_trace::json::{Object, ReadError, Value, ValueRef};

use crate::pins::is_mode;
use crate::{Key, Set};

pub use trace::Tail;

/// An artifact from which no pin can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// The value has no canonical text.
    #[error("`{artifact}` cannot be hashed: it holds NaN, an infinity or a lone surrogate")]
    Unhashable {
        /// The artifact's name.
        artifact: String,
    },
    /// The value has the wrong shape.
    #[error("`{artifact}` is not {expected}")]
    Shape {
        /// The artifact's name.
        artifact: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The artifact is not JSON.
    #[error("`{artifact}` is not JSON")]
    NotJson {
        /// The artifact's name.
        artifact: String,
        /// What is wrong with it.
        #[source]
        source: ReadError,
    },
    /// The session result was not accepted, or does not hold what an accepted one holds.
    #[error("`{artifact}` is not an accepted session result: {reason}")]
    NotAccepted {
        /// The artifact's name.
        artifact: String,
        /// What speaks against it.
        reason: String,
    },
    /// The record of a call does not hold what a call of an agent holds.
    #[error("`{artifact}` says too little of how it was made: {reason}")]
    Evidence {
        /// The artifact's name.
        artifact: String,
        /// What is missing.
        reason: String,
    },
    /// The first turn of a trace does not open with the tail.
    #[error(
        "the first turn of `{artifact}` does not open with the tail {text:?}: the tokenizer is another one, or the engine \
         was started with another template or mode"
    )]
    Tail {
        /// The artifact's name.
        artifact: String,
        /// The tail's text.
        text: String,
    },
}

/// Collects artifacts and writes the pins document.
///
/// `artifact` is the name under which the provenance block records the source, usually a path.
/// Values keep the order in which they were given and repeats are dropped, so the same calls give
/// the same bytes.
#[derive(Debug, Clone, Default)]
pub struct Derivation {
    mode: Option<String>,
    entries: Vec<Entry>,
    skill_cards: Vec<(String, String)>,
    end_of_turn_ids: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    set: Set,
    value: Value<'static>,
    artifact: String,
    /// JSON pointer to the part of the artifact that gives the value; none: the whole of it.
    part: Option<String>,
    /// SHA-256 of the artifact.
    digest: String,
}

impl Derivation {
    /// An empty derivation, for the mode `thinking-off` unless told otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// States the estate's mode, `[A-Za-z0-9][A-Za-z0-9_-]{0,31}`.
    pub fn mode(&mut self, mode: &str) -> Result<&mut Self, DeriveError> {
        if !is_mode(mode) {
            return Err(shape(mode, "a mode: 1 to 32 letters, digits, `_` and `-`"));
        }
        self.mode = Some(mode.to_owned());
        Ok(self)
    }

    /// Approves a tokenizer by the bytes of its `tokenizer.json`.
    pub fn tokenizer(&mut self, artifact: &str, bytes: &[u8]) -> &mut Self {
        self.add(Key::Tokenizer, git_blob_sha1(bytes), artifact, bytes_sha256(bytes))
    }

    /// Approves a chat template by the bytes of the file that the engine is started with, or of
    /// the template string inside `tokenizer_config.json`.
    pub fn chat_template(&mut self, artifact: &str, bytes: &[u8]) -> &mut Self {
        self.add(Key::ChatTemplate, bytes_sha256(bytes), artifact, bytes_sha256(bytes))
    }

    /// Approves a skill card, under its skill's name too.
    pub fn skill_card(&mut self, skill: &str, artifact: &str, bytes: &[u8]) -> &mut Self {
        let hash = bytes_sha256(bytes);
        self.card_of(skill, &hash);
        self.add(Key::SkillCard, hash.clone(), artifact, hash)
    }

    /// Approves a settings document, a non-empty object. The artifact's digest is that of the
    /// canonical text.
    pub fn settings(&mut self, artifact: &str, settings: ValueRef<'_>) -> Result<&mut Self, DeriveError> {
        if settings.as_object().is_none_or(Object::is_empty) {
            return Err(shape(artifact, "a settings document: a non-empty object"));
        }
        self.canonical(Key::Settings, artifact, settings)
    }

    /// Approves a tool roster as it goes to the model, a non-empty array. The artifact's digest is
    /// that of the canonical text.
    pub fn roster(&mut self, artifact: &str, tools: ValueRef<'_>) -> Result<&mut Self, DeriveError> {
        if tools.as_array().is_none_or(gsj_trace::json::Array::is_empty) {
            return Err(shape(artifact, "a tool roster: a non-empty list"));
        }
        self.canonical(Key::ToolRoster, artifact, tools)
    }

    /// Approves a system prompt.
    pub fn system_prompt(&mut self, artifact: &str, text: &str) -> &mut Self {
        let hash = text_sha256(text);
        self.add(Key::SystemPrompt, hash.clone(), artifact, hash)
    }

    /// Approves the tail that opens every turn: its text, and its ids as the engine's tokenizer
    /// gives them.
    pub fn tail(&mut self, artifact: &str, text: &str, ids: &[u32]) -> Result<&mut Self, DeriveError> {
        if ids.is_empty() {
            return Err(shape(artifact, "a tail: it has no token ids"));
        }
        let digest = text_sha256(text);
        self.add(Key::Tail, text.to_owned(), artifact, digest.clone());
        Ok(self.add(Key::TailIds, ids, artifact, digest))
    }

    /// States the ids that end a turn, for the strict profile. `digest` is the SHA-256 of the
    /// artifact that says so.
    pub fn end_of_turn_ids(&mut self, artifact: &str, digest: &str, ids: &[u32]) -> &mut Self {
        self.ends_of_turn(artifact, None, digest, ids)
    }

    /// The consulted sets for which nothing was given yet, skill cards apart.
    pub fn missing(&self) -> Vec<Key> {
        let given = |key: &Key| self.entries.iter().any(|entry| entry.set == Set::Key(*key));
        Key::ALL.into_iter().filter(|key| key.is_consulted() && *key != Key::SkillCard && !given(key)).collect()
    }

    /// The document.
    pub fn document(&self) -> Value<'static> {
        let mut sets = Object::new();
        for key in Key::ALL {
            let mut values = Vec::new();
            for entry in self.entries.iter().filter(|entry| entry.set == Set::Key(key)) {
                if !values.contains(&entry.value) {
                    values.push(entry.value.clone());
                }
            }
            // The strict profile wants to be told that there are no skills.
            if !values.is_empty() || key == Key::SkillCard {
                sets.insert(key.name(), values);
            }
        }
        if !self.skill_cards.is_empty() {
            let mut cards = Object::new();
            for (skill, hash) in &self.skill_cards {
                let list = cards.entry(skill.clone());
                if list.is_null() {
                    *list = Value::from(Vec::<Value<'_>>::new());
                }
                if let Some(list) = list.as_array_mut() {
                    list.push(Value::from(hash.clone()));
                }
            }
            sets.insert("skill_cards", cards);
        }
        if !self.end_of_turn_ids.is_empty() {
            sets.insert("end_of_turn_ids", self.end_of_turn_ids.clone());
        }
        Value::from(Object::from_iter([
            ("format", Value::from("gsj-pins/1")),
            ("mode", Value::from(self.mode.clone().unwrap_or_else(|| "thinking-off".to_owned()))),
            ("pins", Value::from(sets)),
            ("provenance", Value::from(self.provenance())),
        ]))
    }

    /// The document as indented JSON with a line feed at the end.
    pub fn to_text(&self) -> String {
        let mut text = self.document().to_json_pretty();
        text.push('\n');
        text
    }

    fn provenance(&self) -> Object<'static> {
        let mut provenance = Object::new();
        for set in Set::ALL {
            let sources: Vec<Value<'static>> = self
                .entries
                .iter()
                .filter(|entry| entry.set == set)
                .map(|entry| {
                    let mut source = Object::from_iter([
                        ("value", entry.value.clone()),
                        ("artifact", Value::from(entry.artifact.clone())),
                    ]);
                    if let Some(part) = &entry.part {
                        source.insert("part", part.clone());
                    }
                    source.insert("sha256", entry.digest.clone());
                    Value::from(source)
                })
                .collect();
            if !sources.is_empty() {
                provenance.insert(set.name(), sources);
            }
        }
        provenance
    }

    fn canonical(&mut self, key: Key, artifact: &str, value: ValueRef<'_>) -> Result<&mut Self, DeriveError> {
        let text = canonical_text(value).ok_or_else(|| DeriveError::Unhashable { artifact: artifact.to_owned() })?;
        let hash = text_sha256(&text);
        Ok(self.add(key, hash.clone(), artifact, hash))
    }

    fn card_of(&mut self, skill: &str, hash: &str) {
        let card = (skill.to_owned(), hash.to_owned());
        if !self.skill_cards.contains(&card) {
            self.skill_cards.push(card);
        }
    }

    fn ends_of_turn(&mut self, artifact: &str, part: Option<&str>, digest: &str, ids: &[u32]) -> &mut Self {
        for id in ids {
            if !self.end_of_turn_ids.contains(id) {
                self.end_of_turn_ids.push(*id);
                self.add_part(Set::EndOfTurnIds, *id, artifact, part, digest.to_owned());
            }
        }
        self
    }

    fn add<'v>(&mut self, key: Key, value: impl Into<Value<'v>>, artifact: &str, digest: String) -> &mut Self {
        self.add_part(key.into(), value, artifact, None, digest)
    }

    fn add_part<'v>(
        &mut self,
        set: Set,
        value: impl Into<Value<'v>>,
        artifact: &str,
        part: Option<&str>,
        digest: String,
    ) -> &mut Self {
        let value = value.into().into_owned();
        let entry = Entry { set, value, artifact: artifact.to_owned(), part: part.map(str::to_owned), digest };
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
        self
    }
}

fn shape(artifact: &str, expected: &'static str) -> DeriveError {
    DeriveError::Shape { artifact: artifact.to_owned(), expected }
}
