//! One trajectory from the completions of a session (sections 10 and 11).
//!
//! Building never fails on content: what cannot be read is a finding, and the trajectory is `ERROR` with everything that
//! could be read.

mod chains;
mod extract;
mod findings;
mod ids;
mod notation;
mod session;

use std::collections::BTreeMap;

use crate::json::{Object, Value, ValueRef};

use chains::{Merged, group, walk};
use extract::Completion;
pub(crate) use ids::Ids;
use session::{Record, Session, is_object};

/// The name of the builder under which traces state their findings; trainers look for it.
const BUILDER: &str = "gsj_rollout.builder:ValidatingPrefixMergingBuilder";
/// The name of the merging strategy.
const STRATEGY: &str = "prefix_merging";

/// How completions are joined into one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Continuity {
    /// Prompts are compared with prompts only, and a reply ends at the first end-of-turn id (section 11.4).
    #[default]
    Reference,
}

/// How to build a trajectory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How completions are joined.
    pub continuity: Continuity,
    /// The token id that ends a turn; unknown = found per chain, and a finding says that it was not configured.
    pub end_of_turn_token_id: Option<i64>,
    /// Ids that the template writes before a turn but not into its history; empty = none.
    pub glue_ids: Vec<i64>,
}

/// Why no trajectory was built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The session is no JSON object, so there is nothing to name in a trajectory.
    #[error("read the completion session: it is no JSON object")]
    NotAnObject,
}

/// Builds the trajectory of a session: `{status, metadata, traces, error}`, ready to be put into a session result.
///
/// The session is an object as in section 10.1 whose responses are normalised already
/// ([`crate::engine::normalize_response`]); it is not changed.
///
/// ```
/// use gsj_trace::json::Value;
/// use gsj_trace::reconstruct::{Options, build};
///
/// let session = Value::parse(br#"{"session_id": "s", "completions": []}"#)?;
/// let trajectory = build(&session, &Options::default())?;
/// assert_eq!(trajectory.get("error").map(|e| e.show()), Some("no completions".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BuildError::NotAnObject`].
pub fn build(session: &Value<'_>, options: &Options) -> Result<Value<'static>, BuildError> {
    if !is_object(session.as_ref()) {
        return Err(BuildError::NotAnObject);
    }
    let Continuity::Reference = options.continuity;
    let session = Session::read(session.as_ref());
    let mut ids = Ids::default();
    let end_of_turn = options.end_of_turn_token_id.map(|id| ids.configured(id));
    let glue: Vec<i64> = options.glue_ids.iter().map(|&id| ids.configured(id)).collect();

    let mut completions: Vec<Completion<'_>> = session.records.iter().map(|r| Completion::read(r, &mut ids)).collect();
    let mut findings = findings::of_session(&session, &completions, end_of_turn);
    let stitched = findings::stitch(&mut completions, &glue);

    let filter = Filter::of(&session.records);
    if !filter.excluded.is_empty() {
        let excluded: Vec<&str> = filter.excluded.iter().map(|(id, _)| *id).collect();
        findings.push(format!("A12:completion_filter_excluded_nonempty:{}", excluded.join(",")));
    }
    let kept: Vec<(&Record<'_>, &Completion<'_>)> =
        filter.kept.iter().map(|&i| (&session.records[i], &completions[i])).collect();
    Ok(assemble(&session, &filter, &kept, &ids, end_of_turn, &findings, stitched))
}

/// Which records are part of the episode.
struct Filter<'s> {
    kept: Vec<usize>,
    /// Completion id and reason.
    excluded: Vec<(&'s str, &'static str)>,
}

impl<'s> Filter<'s> {
    fn of(records: &'s [Record<'_>]) -> Self {
        let mut out = Self { kept: Vec::new(), excluded: Vec::new() };
        for (i, record) in records.iter().enumerate() {
            match record.exclusion() {
                Some(reason) => out.excluded.push((&record.id, reason)),
                None => out.kept.push(i),
            }
        }
        out
    }

    fn to_value(&self) -> Value<'static> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, reason) in &self.excluded {
            *reasons.entry(reason).or_default() += 1;
        }
        object([
            ("input_completions", count(self.kept.len() + self.excluded.len())),
            ("kept_completions", count(self.kept.len())),
            ("excluded_completions", count(self.excluded.len())),
            ("excluded_reasons", object(reasons.into_iter().map(|(reason, n)| (reason, count(n))))),
            ("excluded_completion_ids", list(self.excluded.iter().map(|(id, _)| text(id)))),
            (
                "excluded",
                list(
                    self.excluded
                        .iter()
                        .map(|(id, reason)| object([("completion_id", text(id)), ("reason", text(reason))])),
                ),
            ),
        ])
    }
}

fn assemble(
    session: &Session<'_>,
    filter: &Filter<'_>,
    kept: &[(&Record<'_>, &Completion<'_>)],
    ids: &Ids,
    end_of_turn: Option<i64>,
    findings: &[String],
    stitched: usize,
) -> Value<'static> {
    let member = |key: &str| session.value.get(key).map_or(Value::Null, |v| v.to_owned());
    let task_metadata =
        if is_object(session.metadata) { session.metadata.to_owned() } else { Value::from(Object::new()) };
    let mut metadata = vec![("builder", text(STRATEGY)), ("session_id", member("session_id"))];
    let mut traces = Vec::new();
    let mut error = None;
    if kept.is_empty() {
        metadata.extend([("task_metadata", task_metadata), ("record_count", count(session.records.len()))]);
        if session.records.is_empty() {
            error = Some("no completions".to_owned());
        } else {
            metadata.push(("completion_filter", filter.to_value()));
            error = Some("no trainable completions after completion filter".to_owned());
        }
    } else {
        let mut stats = Stats::default();
        traces = self::traces(kept, ids, end_of_turn, &mut stats);
        metadata.extend(["task_id", "api_type", "model_requested", "model_used"].map(|key| (key, member(key))));
        metadata.extend([
            ("record_count", count(session.records.len())),
            ("task_metadata", task_metadata),
            ("trace_count", count(traces.len())),
            ("reconstruction_stats", stats.to_value(session.records.len(), kept.len())),
            ("completion_filter", filter.to_value()),
        ]);
        let aborted = |r: &Record<'_>| r.choice().get("finish_reason").and_then(|v| v.as_str().map(|s| s == "abort"));
        if session.records.iter().any(|r| aborted(r) == Some(true)) {
            error = Some("aborted generation (weight-update cutoff)".to_owned());
        }
    }
    for key in ["group_id", "policy_version", "rollout_step"] {
        metadata.extend(session.metadata.get(key).map(|v| (key, v.to_owned())));
    }
    metadata.push((
        "gsj_validation",
        object([
            ("builder", text(BUILDER)),
            ("findings", list(findings.iter().map(|f| text(f)))),
            ("glue_stitched", count(stitched)),
        ]),
    ));
    if error.is_none() && !findings.is_empty() {
        error = Some(format!("gsj validation failed ({} findings)", findings.len()));
    }
    object([
        ("status", text(if error.is_some() { "ERROR" } else { "COMPLETED" })),
        ("metadata", object(metadata)),
        ("traces", Value::from(traces)),
        ("error", error.map_or(Value::Null, |e| text(&e))),
    ])
}

#[derive(Default)]
struct Stats {
    chains: usize,
    full: usize,
    truncated: usize,
    merged: usize,
}

impl Stats {
    fn to_value(&self, raw: usize, kept: usize) -> Value<'static> {
        object([
            ("chains_total", count(self.chains)),
            ("chains_reconstructed_full", count(self.full)),
            ("chains_reconstructed_truncated", count(self.truncated)),
            ("raw_completions_total", count(raw)),
            ("completions_total", count(kept)),
            ("completions_merged", count(self.merged)),
        ])
    }
}

fn traces(
    kept: &[(&Record<'_>, &Completion<'_>)],
    ids: &Ids,
    end_of_turn: Option<i64>,
    stats: &mut Stats,
) -> Vec<Value<'static>> {
    let completions: Vec<&Completion<'_>> = kept.iter().map(|(_, completion)| *completion).collect();
    let mut out = Vec::new();
    for chain in group(&completions) {
        let members: Vec<&Completion<'_>> = chain.iter().map(|&i| completions[i]).collect();
        let merged = walk(&members, end_of_turn);
        stats.chains += 1;
        stats.merged += merged.count;
        if merged.count == chain.len() {
            stats.full += 1;
        } else {
            stats.truncated += 1;
        }
        let records: Vec<&Record<'_>> = chain[..merged.count].iter().map(|&i| kept[i].0).collect();
        out.extend(trace(&members[..merged.count], &records, merged, ids));
    }
    out
}

fn trace(
    members: &[&Completion<'_>],
    records: &[&Record<'_>],
    merged: Merged<'_>,
    ids: &Ids,
) -> Option<Value<'static>> {
    let (first, last) = (members.first()?, members.last()?);
    let owned = |values: &[ValueRef<'_>]| list(values.iter().map(|v| (*v).to_owned()));
    let metadata_of = |record: &Record<'_>| {
        if is_object(record.metadata) { record.metadata.to_owned() } else { Value::from(Object::new()) }
    };
    let mut metadata = metadata_of(records.first()?);
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("completion_metadata", list(records.iter().map(|r| metadata_of(r))));
    }
    Some(object([
        ("prompt_ids", ids.to_value(&first.prompt)),
        ("response_ids", ids.to_value(&merged.response)),
        ("loss_mask", Value::from(merged.mask)),
        ("prompt_messages", owned(&first.prompt_messages)),
        ("response_messages", owned(&merged.response_messages)),
        ("tools", if first.tools.is_empty() { Value::Null } else { owned(&first.tools) }),
        ("finish_reason", last.finish_reason.as_deref().map_or(Value::Null, text)),
        ("response_logprobs", merged.logprobs.map_or(Value::Null, Value::from)),
        ("reward", Value::Null),
        ("metadata", metadata),
    ]))
}

fn object<'k>(members: impl IntoIterator<Item = (&'k str, Value<'static>)>) -> Value<'static> {
    let mut out = Object::new();
    for (key, value) in members {
        out.insert(key.to_owned(), value);
    }
    Value::from(out)
}

fn list(values: impl Iterator<Item = Value<'static>>) -> Value<'static> {
    Value::from(values.collect::<Vec<_>>())
}

fn text(value: &str) -> Value<'static> {
    Value::from(value.to_owned())
}

fn count(n: usize) -> Value<'static> {
    Value::from(n as u64)
}
