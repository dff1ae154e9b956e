//! The findings of a session (section 10.3) and the glue stitch (10.4).

use std::borrow::Cow;

use crate::json::{Str, StrRef, ValueRef};

use super::extract::{Completion, Fault};
use super::output::{finding, invalid, listing};
use super::session::{Record, Session, depth, elements};

/// The findings that need no reconstruction, in their order.
///
/// Where the reference fails instead of answering, a finding of our own says what could not be read: `S15`, `S16`,
/// `S17` (a member of the session has the wrong type), `S18` (a message is nested too deep) and `S19` (a policy
/// version is an array or object).
pub(super) fn of_session(
    session: &Session<'_>,
    completions: &[Completion<'_>],
    end_of_turn: Option<u32>,
) -> Vec<Str<'static>> {
    let mut out: Vec<Str<'static>> = session.faults.iter().map(|path| invalid(path)).collect();
    if end_of_turn.is_none() {
        out.push("A15:end_of_turn_token_id_not_configured".into());
    }
    let mut previous: Option<&Completion<'_>> = None;
    let last = session.records.len().saturating_sub(1);
    for (i, (record, completion)) in session.records.iter().zip(completions).enumerate() {
        of_record(record, completion, previous, i < last, &mut out);
        previous = Some(completion);
    }
    if rosters_differ(&session.records) {
        out.push("R11:roster_changed_across_completions".into());
    }
    out.extend(policy_versions(
        session.records.iter().map(|record| record.metadata.get("policy_version").unwrap_or(ValueRef::Null)),
    ));
    out
}

fn of_record(
    record: &Record<'_>,
    completion: &Completion<'_>,
    previous: Option<&Completion<'_>>,
    followed: bool,
    out: &mut Vec<Str<'static>>,
) {
    let id = &record.id;
    if completion.prompt.is_empty() {
        out.push(finding("S1:empty_prompt_ids", id, ""));
    }
    if completion.response.is_empty() {
        out.push(finding("S6:empty_response_ids", id, ""));
    }
    let choices = elements(record.response.get("choices")).count();
    if choices != 1 {
        out.push(finding("S8:choices_len_ne_1", id, format_args!(":{choices}")));
    }
    if previous.is_some_and(|p| p.prompt == completion.prompt) {
        out.push(finding("S3:duplicate_consecutive_prompt", id, ""));
    }
    if followed && completion.finish_reason.as_ref().and_then(Str::as_str) == Some("length") {
        out.push(finding("S7:mid_chain_finish_length", id, ""));
    }
    if !record.is_agent_shaped() {
        out.push(finding("A12:non_agent_shape", id, ""));
    }
    out.extend(completion.faults.iter().map(|fault| match fault {
        Fault::PromptId(at) => finding("S15:token_id_not_an_integer", id, format_args!(":prompt:first={at}")),
        Fault::ResponseId(at) => finding("S15:token_id_not_an_integer", id, format_args!(":response:first={at}")),
        Fault::Logprob(at) => finding("S16:logprob_not_finite", id, format_args!(":first={at}")),
    }));
    if record.is_too_deep(completion.prompt_messages.iter().copied().chain(completion.reply)) {
        out.push(finding("S18:message_nested_too_deep", id, ""));
    }
    if record.metadata.get("policy_version").is_some_and(|v| depth(v) > 0) {
        out.push(finding("S19:policy_version_not_a_scalar", id, ""));
    }
}

fn rosters_differ(records: &[Record<'_>]) -> bool {
    fn roster<'v>(record: &Record<'v>) -> ValueRef<'v> {
        record.request.get("tools").unwrap_or(ValueRef::Null)
    }
    records.split_first().is_some_and(|(first, rest)| rest.iter().any(|other| !roster(first).python_eq(roster(other))))
}

/// The finding that records name more than one policy version.
pub(super) fn policy_versions<'v>(versions: impl Iterator<Item = ValueRef<'v>>) -> Option<Str<'static>> {
    let mut seen: Vec<ValueRef<'_>> = Vec::new();
    for version in versions {
        if !seen.iter().any(|other| other.python_eq(version)) {
            seen.push(version);
        }
    }
    let mut shown: Vec<Str<'_>> =
        seen.into_iter().map(|v| v.as_text().map_or_else(|| Str::from(v.show()), StrRef::to_str)).collect();
    shown.sort_unstable_by(|a, b| a.as_ref().cmp(&b.as_ref()));
    (shown.len() > 1).then(|| listing("S9:policy_version_mixed", shown.iter().map(Str::as_ref)))
}

/// Puts the tokens back that the template writes before a turn but not into its history; returns how many prompts
/// changed.
pub(super) fn stitch(completions: &mut [Completion<'_>], glue: &[u32]) -> usize {
    let mut count = 0;
    if glue.is_empty() {
        return count;
    }
    // The previous prompt as recorded, and, where it was changed, as it stands now.
    let mut recorded: Cow<'_, [u32]> = Cow::default();
    for i in 1..completions.len() {
        let (before, rest) = completions.split_at_mut(i);
        let (normalised, current) = (&before[i - 1].prompt, &mut rest[0].prompt);
        let previous = if recorded.is_empty() { normalised } else { &recorded };
        let stem = previous.strip_suffix(glue);
        match stem {
            Some(stem) if current.len() > previous.len() && current.starts_with(stem) => {
                let mut stitched = Vec::with_capacity(normalised.len() + current.len() - stem.len());
                stitched.extend_from_slice(normalised);
                stitched.extend_from_slice(&current[stem.len()..]);
                recorded = std::mem::replace(current, Cow::Owned(stitched));
                count += 1;
            }
            _ => recorded = Cow::default(),
        }
    }
    count
}
