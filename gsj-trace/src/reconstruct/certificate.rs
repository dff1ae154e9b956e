//! The certificate (section 11.6): what context each sampled token was sampled from.

use crate::json::{Str, Value};

use super::context::ContextKind;
use super::output::{object, text};

/// The trajectory's certificate: the kinds of the completions that were kept.
pub(super) fn of_trajectory(
    continuity: &'static str,
    kept: impl Iterator<Item = ContextKind>,
    superseded: usize,
    tokenizer: Option<&str>,
) -> Value<'static> {
    let kept: Vec<ContextKind> = kept.collect();
    let mut members = vec![("continuity", Value::from(continuity)), ("completions", Value::from(kept.len()))];
    members
        .extend(ContextKind::ALL.map(|kind| (kind.name(), Value::from(kept.iter().filter(|k| **k == kind).count()))));
    members.push(("superseded", Value::from(superseded)));
    members.push(("tokenizer", tokenizer.map_or(Value::Null, text)));
    object(members)
}

/// One turn's entry in its trace's certificate.
pub(super) fn of_turn(
    completion_id: Str<'static>,
    kind: ContextKind,
    context_sha256: String,
    differing: usize,
) -> Value<'static> {
    object([
        ("completion_id", Value::from(completion_id)),
        ("kind", Value::from(kind.name())),
        ("context_sha256", Value::from(context_sha256)),
        ("differing_tokens", Value::from(differing)),
    ])
}
