//! What an artifact gives: the one place where a value is computed from bytes, for deriving it and for verifying it.

use gsj_trace::canonical::{bytes_sha256, canonical_sha256, git_blob_sha1, str_sha256, text_sha256};
use gsj_trace::json::{ReadError, Str, StrRef, Value, ValueRef};

use crate::{Key, Set};

/// Why an artifact gives no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArtifactFault {
    #[error("it is not JSON: {0}")]
    NotJson(#[from] ReadError),
    #[error("it has nothing at `{0}`")]
    NoPart(String),
    #[error("it is not {0}")]
    Shape(&'static str),
    #[error("it cannot be hashed: it holds NaN, an infinity, a lone surrogate or bytes that are no text")]
    Unhashable,
}

/// Whether an artifact gives a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Exactly this value.
    This,
    /// Another one, or several: their text.
    Other(String),
    /// The value cannot be computed from the artifact alone; why not.
    Unknown(&'static str),
}

/// Whether the artifact, or the part of it that a JSON pointer names, gives the value of a set.
pub(crate) fn gives(set: Set, part: Option<&str>, bytes: &[u8], value: ValueRef<'_>) -> Result<Gives, ArtifactFault> {
    let hash = match (set, part) {
        (Set::Key(Key::Tokenizer), _) => git_blob_sha1(bytes),
        (Set::Key(Key::ChatTemplate | Key::SkillCard), None) => bytes_sha256(bytes),
        (Set::Key(Key::SystemPrompt), None) => {
            text_sha256(std::str::from_utf8(bytes).map_err(|_| ArtifactFault::Unhashable)?)
        }
        (Set::Key(Key::Settings | Key::ToolRoster), part) => {
            let document = Value::parse(bytes)?;
            canonical_sha256(at(&document, part.unwrap_or_default())?).ok_or(ArtifactFault::Unhashable)?
        }
        (Set::Key(Key::ChatTemplate), Some(part)) => {
            let document = Value::parse(bytes)?;
            let text = at(&document, part)?.as_text().ok_or(ArtifactFault::Shape("a text"))?;
            str_sha256(text).ok_or(ArtifactFault::Unhashable)?
        }
        (Set::Key(Key::SystemPrompt), Some(part)) => {
            let document = Value::parse(bytes)?;
            message_sha256(at(&document, part)?).ok_or(ArtifactFault::Unhashable)?
        }
        (Set::Key(Key::SkillCard), Some(part)) => {
            let document = Value::parse(bytes)?;
            at(&document, part)?.as_str().ok_or(ArtifactFault::Shape("a text"))?.to_owned()
        }
        (Set::EndOfTurnIds, part) => return ends_a_turn(part, bytes, value),
        (Set::Key(Key::TailIds), Some(part)) => return opens_a_turn(part, bytes, value),
        (Set::Key(Key::Tail), _) => return Ok(Gives::Unknown("kept for people; gate G6 asks for its ids")),
        (Set::Key(Key::TailIds), None) => {
            return Ok(Gives::Unknown("the ids of a tail come from its text and the tokenizer"));
        }
        (Set::SkillCards, _) => return Ok(Gives::Unknown("cards are recorded under `skill_card_hash`")),
    };
    Ok(if value.as_str() == Some(&hash) { Gives::This } else { Gives::Other(hash) })
}

/// The digest that the provenance records for an artifact; `None` where it is not one of the artifact's bytes.
pub(crate) fn digest(set: Set, part: Option<&str>, bytes: &[u8]) -> Option<String> {
    match (set, part) {
        (Set::Key(Key::Settings | Key::ToolRoster), None) => canonical_sha256(Value::parse(bytes).ok()?.as_ref()),
        (Set::Key(Key::Tail | Key::TailIds), None) | (Set::SkillCards, _) => None,
        _ => Some(bytes_sha256(bytes)),
    }
}

/// The text of a message's content as gate G2 hashes it (`checks.md` section 8.7).
pub(crate) fn message_sha256(message: ValueRef<'_>) -> Option<String> {
    let text = match message.get("content") {
        Some(ValueRef::Str(text)) => return str_sha256(text),
        Some(ValueRef::Array(parts)) => Str::concat(parts.iter().filter_map(part_text)),
        Some(part @ ValueRef::Object(_)) => Str::concat(part_text(part)),
        _ => Str::from(""),
    };
    str_sha256(text.as_ref())
}

fn part_text(part: ValueRef<'_>) -> Option<StrRef<'_>> {
    part.as_text().or_else(|| part.get("text")?.as_text())
}

/// The tokens before the first sampled one: the prompt's, then those of the response that were not trained on.
pub(crate) fn first_opening(trace: ValueRef<'_>) -> Vec<u32> {
    let ids = |key: &str| trace.get(key).and_then(ValueRef::as_array).and_then(gsj_trace::json::Array::as_u32s);
    let mask = ids("loss_mask").unwrap_or_default();
    let leading = mask.iter().take_while(|m| **m == 0).count();
    let response = ids("response_ids").unwrap_or_default();
    let leading = response.get(..leading).unwrap_or(response);
    [ids("prompt_ids").unwrap_or_default(), leading].concat()
}

/// The id of a special token by its text, in a `tokenizer.json` or a `tokenizer_config.json`.
pub(crate) fn special_id(document: &Value<'_>, text: &str) -> Option<u32> {
    let spelled = |token: ValueRef<'_>| token.get("content").and_then(ValueRef::as_str) == Some(text);
    let listed = document.get("added_tokens").and_then(ValueRef::as_array);
    let listed = listed.into_iter().flat_map(|list| list.iter()).find(|token| spelled(*token));
    if let Some(id) = listed.and_then(|token| token.get("id")) {
        return id.as_int()?.as_u32();
    }
    let decoder = document.get("added_tokens_decoder").and_then(ValueRef::as_object)?;
    decoder.iter().find(|(_, token)| spelled(*token))?.0.as_str()?.parse().ok()
}

/// The ids that a configuration says end a turn, with the part of it that says so.
pub(crate) fn end_of_turn(document: &Value<'_>) -> Option<(&'static str, Vec<u32>)> {
    match document.get("eos_token_id") {
        Some(ValueRef::Int(id)) => return Some(("/eos_token_id", vec![id.as_u32()?])),
        Some(ValueRef::Array(ids)) if !ids.is_empty() => return Some(("/eos_token_id", ids.as_u32s()?.to_vec())),
        _ => {}
    }
    let id = special_id(document, end_of_turn_text(document)?)?;
    Some(("/eos_token", vec![id]))
}

/// The text of the token that a `tokenizer_config.json` says ends a turn.
pub(crate) fn end_of_turn_text<'d>(document: &'d Value<'_>) -> Option<&'d str> {
    let token = document.get("eos_token")?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}

fn ends_a_turn(part: Option<&str>, bytes: &[u8], value: ValueRef<'_>) -> Result<Gives, ArtifactFault> {
    let document = Value::parse(bytes)?;
    let Some(part) = part else {
        // A tokenizer says which tokens are special, not which of them ends a turn.
        let special = document.get("added_tokens").and_then(ValueRef::as_array);
        let known = special.is_some_and(|list| list.iter().any(|t| t.get("id").is_some_and(|id| id.python_eq(value))));
        return Ok(if known {
            Gives::Unknown("it is a special token of the tokenizer; which one ends a turn is the template's choice")
        } else {
            Gives::Other("no special token of that id".to_owned())
        });
    };
    let (_, ids) = end_of_turn(&document).ok_or_else(|| ArtifactFault::NoPart(part.to_owned()))?;
    let same = value.as_int().and_then(gsj_trace::json::IntRef::as_u32).is_some_and(|id| ids.contains(&id));
    Ok(if same { Gives::This } else { Gives::Other(format!("{ids:?}")) })
}

fn opens_a_turn(part: &str, bytes: &[u8], value: ValueRef<'_>) -> Result<Gives, ArtifactFault> {
    let document = Value::parse(bytes)?;
    let opening = first_opening(at(&document, part)?);
    let tail = value.as_array().and_then(gsj_trace::json::Array::as_u32s).unwrap_or_default();
    if !tail.is_empty() && opening.ends_with(tail) {
        return Ok(Gives::This);
    }
    let from = opening.len().saturating_sub(tail.len());
    Ok(Gives::Other(format!("{:?}", &opening[from..])))
}

pub(crate) fn at<'v>(document: &'v Value<'_>, part: &str) -> Result<ValueRef<'v>, ArtifactFault> {
    document.pointer(part).ok_or_else(|| ArtifactFault::NoPart(part.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value<'static> {
        Value::parse(json.as_bytes()).expect("json").into_owned()
    }

    #[test]
    fn configurations_say_what_ends_a_turn_in_several_ways() {
        let ids = |json: &str| end_of_turn(&value(json));
        assert_eq!(ids(r#"{"eos_token_id":[2,0]}"#), Some(("/eos_token_id", vec![2, 0])));
        assert_eq!(ids(r#"{"eos_token_id":2}"#), Some(("/eos_token_id", vec![2])));
        let decoder = r#""added_tokens_decoder":{"7":{"content":"<|im_end|>"}}"#;
        assert_eq!(ids(&format!(r#"{{"eos_token":"<|im_end|>",{decoder}}}"#)), Some(("/eos_token", vec![7])));
        assert_eq!(
            ids(&format!(r#"{{"eos_token":{{"content":"<|im_end|>"}},{decoder}}}"#)),
            Some(("/eos_token", vec![7]))
        );
        assert_eq!(ids(r#"{"eos_token":"<|im_end|>"}"#), None, "no id is known for the text");
        assert_eq!(ids(r#"{"eos_token_id":[true]}"#), None);
    }

    #[test]
    fn a_messages_text_is_that_of_gate_g2() {
        let hash = |json: &str| message_sha256(value(json).as_ref());
        let ab = Some(text_sha256("ab"));
        assert_eq!(hash(r#"{"content":"ab"}"#), ab);
        assert_eq!(hash(r#"{"content":["a",{"type":"x","text":"b"},7,["c"]]}"#), ab);
        assert_eq!(hash(r#"{"content":{"text":"ab"}}"#), ab);
        assert_eq!(hash(r#"{"content":7}"#), Some(text_sha256("")));
        assert_eq!(hash(r#"{"content":["\ud83d","\ude00"]}"#), None, "two halves are never fused");
    }

    #[test]
    fn the_first_opening_ends_where_sampling_starts() {
        let of = |json: &str| first_opening(value(json).as_ref());
        assert_eq!(of(r#"{"prompt_ids":[1,2],"response_ids":[3,4],"loss_mask":[1,1]}"#), [1, 2]);
        assert_eq!(of(r#"{"prompt_ids":[1,2],"response_ids":[3,4],"loss_mask":[0,1]}"#), [1, 2, 3]);
        assert_eq!(of(r#"{"prompt_ids":[1],"response_ids":[3],"loss_mask":[0,0,0]}"#), [1, 3]);
        assert_eq!(of("{}"), Vec::<u32>::new());
    }
}
