//! What the configuration files of a model say: `tokenizer_config.json`, `generation_config.json`.

use gsj_trace::canonical::{bytes_sha256, str_sha256};
use gsj_trace::json::{Value, ValueRef};

use super::{Derivation, DeriveError, shape};
use crate::artifact::{end_of_turn, end_of_turn_text, special_id};
use crate::{Key, Set};

impl Derivation {
    /// Approves the template string inside a `tokenizer_config.json`, for an engine that is started without a template
    /// file. Where the file has several templates, it is the one named `default`.
    ///
    /// # Errors
    /// The file is no JSON, holds no template, or the template cannot be hashed.
    pub fn chat_template_of_config(&mut self, artifact: &str, bytes: &[u8]) -> Result<&mut Self, DeriveError> {
        let document = parse(artifact, bytes)?;
        let (part, template) = match document.get("chat_template") {
            Some(ValueRef::Str(text)) => ("/chat_template".to_owned(), text),
            Some(ValueRef::Array(named)) => named
                .iter()
                .enumerate()
                .find(|(_, entry)| entry.get("name").and_then(ValueRef::as_str) == Some("default"))
                .and_then(|(i, entry)| {
                    Some((format!("/chat_template/{i}/template"), entry.get("template")?.as_text()?))
                })
                .ok_or_else(|| shape(artifact, "a tokenizer_config.json with a template named `default`"))?,
            _ => return Err(shape(artifact, "a tokenizer_config.json with a `chat_template`")),
        };
        let hash = str_sha256(template).ok_or_else(|| DeriveError::Unhashable { artifact: artifact.to_owned() })?;
        Ok(self.add_part(Key::ChatTemplate.into(), hash, artifact, Some(&part), bytes_sha256(bytes)))
    }

    /// States the ids that end a turn by the `eos_token_id` of a `generation_config.json` or `config.json`, or by the
    /// `eos_token` of a `tokenizer_config.json`. An id that this file does not give is looked for among the special
    /// tokens of `tokenizer`, name and bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// A file is no JSON, or no id is found.
    pub fn end_of_turn_of_config(
        &mut self,
        artifact: &str,
        bytes: &[u8],
        tokenizer: Option<(&str, &[u8])>,
    ) -> Result<&mut Self, DeriveError> {
        let document = parse(artifact, bytes)?;
        if let Some((part, ids)) = end_of_turn(&document) {
            return Ok(self.ends_of_turn(artifact, Some(part), &bytes_sha256(bytes), &ids));
        }
        let missing =
            || shape(artifact, "a configuration that says which ids end a turn (`eos_token_id`, `eos_token`)");
        let text = end_of_turn_text(&document).ok_or_else(missing)?;
        let (name, tokens) = tokenizer
            .ok_or_else(|| shape(artifact, "enough to know the id of its `eos_token`: give the tokenizer too"))?;
        let id = special_id(&parse(name, tokens)?, text)
            .ok_or_else(|| shape(name, "a tokenizer that has the `eos_token` among its special tokens"))?;
        Ok(self.ends_of_turn(name, None, &bytes_sha256(tokens), &[id]))
    }
}

impl Derivation {
    /// Approves how an engine opens and ends a turn, by a document of what it said: `opening.prompt_ids`, the ids of a
    /// prompt that it was given; `tail_ids`, those that its template ends every prompt with; and `eos_token_id`, the
    /// id or ids that end a turn.
    ///
    /// # Errors
    /// The document is no JSON, lacks one of the three, or the prompt does not end with the tail. Then nothing was added.
    pub fn from_engine(&mut self, artifact: &str, bytes: &[u8]) -> Result<&mut Self, DeriveError> {
        let document = parse(artifact, bytes)?;
        let ids = |at: &str| document.pointer(at).and_then(ValueRef::as_array).and_then(|list| list.as_u32s());
        let prompt = ids("/opening/prompt_ids").ok_or_else(|| shape(artifact, "one with `opening.prompt_ids`"))?;
        let tail = ids("/tail_ids").filter(|tail| !tail.is_empty());
        let tail = tail.ok_or_else(|| shape(artifact, "one with `tail_ids`"))?;
        if !prompt.ends_with(tail) {
            return Err(shape(artifact, "one whose prompt ends with its `tail_ids`"));
        }
        let (part, ends) = end_of_turn(&document).ok_or_else(|| shape(artifact, "one with `eos_token_id`"))?;
        let digest = bytes_sha256(bytes);
        self.ends_of_turn(artifact, Some(part), &digest, &ends);
        Ok(self.add_part(Key::TailIds.into(), tail, artifact, Some("/opening"), digest))
    }
}

pub(super) fn parse<'b>(artifact: &str, bytes: &'b [u8]) -> Result<Value<'b>, DeriveError> {
    Value::parse(bytes).map_err(|source| DeriveError::NotJson { artifact: artifact.to_owned(), source })
}

impl Derivation {
    /// Whether a value is approved already.
    pub(super) fn has(&self, set: Set, value: &Value<'_>) -> bool {
        self.entries.iter().any(|entry| entry.set == set && entry.value == *value)
    }
}
