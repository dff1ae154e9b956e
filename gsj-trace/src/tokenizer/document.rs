//! The file as JSON, read before the tokenizer library sees it.

use super::TokenizerError;
use crate::json::{Value, ValueRef};

/// Containers inside each other that the library's own reader takes without failing in the middle of a decoder, where
/// it panics instead of giving an error.
const MAX_DEPTH: usize = 100;

/// One step from a piece of the vocabulary to its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Letters of the byte alphabet to the bytes they stand for.
    ByteLevel,
    /// `<0x0A>` to that byte.
    ByteFallback,
    /// A text replaced by another.
    Replace { from: String, to: String },
    /// Blanks at the start of the whole text removed, up to a number.
    StripStart(usize),
}

/// Reads the file and refuses what the tokenizer library must not be given.
pub(super) fn read(bytes: &[u8]) -> Result<Value<'_>, TokenizerError> {
    let value = Value::parse(bytes).map_err(|source| TokenizerError::Json { source })?;
    check(value.as_ref())?;
    let dropout = value.pointer("/model/dropout");
    if dropout.is_some_and(|dropout| !dropout.is_null() && dropout.as_f64() != Some(0.0)) {
        return Err(TokenizerError::Dropout);
    }
    Ok(value)
}

/// Refuses what the library's reader would not take: literals that Python knows, lone surrogates, deep nesting.
fn check(value: ValueRef<'_>) -> Result<(), TokenizerError> {
    let mut open = vec![(value, 0_usize)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(TokenizerError::Lenient { what: "containers nested deeper than 100 levels" });
        }
        match value {
            ValueRef::Float(x) if !x.is_finite() => {
                return Err(TokenizerError::Lenient { what: "NaN or a number out of range" });
            }
            ValueRef::Str(text) if text.as_str().is_none() => {
                return Err(TokenizerError::Lenient { what: "a lone surrogate" });
            }
            ValueRef::Array(array) if array.as_u32s().is_some() => {}
            ValueRef::Array(array) => open.extend(array.iter().map(|item| (item, depth + 1))),
            ValueRef::Object(object) => {
                for (key, item) in object {
                    if key.as_str().is_none() {
                        return Err(TokenizerError::Lenient { what: "a lone surrogate" });
                    }
                    open.push((item, depth + 1));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// How a piece becomes bytes.
pub(super) fn steps(value: &Value<'_>) -> Result<Vec<Step>, TokenizerError> {
    let mut found = Vec::new();
    let Some(decoder) = value.get("decoder").filter(|decoder| !decoder.is_null()) else {
        return Err(TokenizerError::Decoder { decoder: "null".to_owned() });
    };
    collect(decoder, &mut found)?;
    if found.is_empty() {
        return Err(TokenizerError::Decoder { decoder: decoder.to_json() });
    }
    Ok(found)
}

fn collect(decoder: ValueRef<'_>, found: &mut Vec<Step>) -> Result<(), TokenizerError> {
    let unknown = || TokenizerError::Decoder { decoder: decoder.to_json() };
    let text = |key: &str| decoder.get(key).and_then(ValueRef::as_str);
    let number = |key: &str| decoder.get(key).and_then(ValueRef::as_i64);
    match text("type") {
        Some("Sequence") => {
            let list = decoder.get("decoders").and_then(ValueRef::as_array).ok_or_else(unknown)?;
            // The depth of the whole file is bounded by `check`.
            list.iter().try_for_each(|step| collect(step, found))?;
        }
        Some("ByteLevel") => found.push(Step::ByteLevel),
        Some("ByteFallback") => found.push(Step::ByteFallback),
        Some("Fuse") => {}
        Some("Replace") => {
            let from = decoder.pointer("/pattern/String").and_then(ValueRef::as_str).ok_or_else(unknown)?;
            let to = text("content").ok_or_else(unknown)?;
            found.push(Step::Replace { from: from.to_owned(), to: to.to_owned() });
        }
        Some("Metaspace") => {
            let from = text("replacement").ok_or_else(unknown)?.to_owned();
            found.push(Step::Replace { from, to: " ".to_owned() });
            let prepends = text("prepend_scheme").map_or_else(
                || decoder.get("add_prefix_space").and_then(ValueRef::as_bool).unwrap_or(true),
                |scheme| scheme != "never",
            );
            if prepends {
                found.push(Step::StripStart(usize::MAX));
            }
        }
        Some("Strip") if text("content") == Some(" ") && number("stop") == Some(0) => {
            let start = number("start").and_then(|start| usize::try_from(start).ok()).ok_or_else(unknown)?;
            found.push(Step::StripStart(start));
        }
        _ => return Err(unknown()),
    }
    Ok(())
}
