//! The certificate (section 11.6): what context each sampled token was sampled from.

use crate::json::{Str, Value};

use super::output::{object, text};

/// How the context that an engine was given relates to the merged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// The same ids.
    #[default]
    Exact,
    /// Other ids of the same text.
    Retokenized,
    /// But for what the template adds to or takes from earlier replies, the same text.
    Template,
    /// Another text.
    Rewritten,
    /// Other ids; nothing can say more.
    Inexact,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Exact, Self::Retokenized, Self::Template, Self::Rewritten, Self::Inexact];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Retokenized => "retokenized",
            Self::Template => "template",
            Self::Rewritten => "rewritten",
            Self::Inexact => "inexact",
        }
    }
}

/// The trajectory's certificate: the kinds of the completions that were kept.
pub(super) fn of_trajectory(
    continuity: &'static str,
    kept: impl Iterator<Item = Kind>,
    superseded: usize,
    tokenizer: Option<&str>,
) -> Value<'static> {
    let kept: Vec<Kind> = kept.collect();
    let mut members = vec![("continuity", Value::from(continuity)), ("completions", Value::from(kept.len()))];
    members.extend(Kind::ALL.map(|kind| (kind.name(), Value::from(kept.iter().filter(|k| **k == kind).count()))));
    members.push(("superseded", Value::from(superseded)));
    members.push(("tokenizer", tokenizer.map_or(Value::Null, text)));
    object(members)
}

/// One turn's entry in its trace's certificate.
pub(super) fn of_turn(
    completion_id: Str<'static>,
    kind: Kind,
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
