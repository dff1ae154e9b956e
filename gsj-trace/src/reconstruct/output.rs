//! Writing a trajectory (sections 7.2, 10.5 and 11.5): the same in every mode.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::json::{Object, Str, StrRef, Value};

use super::session::{Header, owned_object};

/// The name of the builder under which traces state their findings; trainers look for it.
const BUILDER: &str = "gsj_rollout.builder:ValidatingPrefixMergingBuilder";
/// The name of the merging strategy.
const STRATEGY: &str = "prefix_merging";

/// Which records are part of the episode.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) kept: usize,
    /// Completion id and reason.
    pub(super) excluded: Vec<(Str<'static>, &'static str)>,
}

impl Filter {
    /// The finding that something was excluded.
    pub(super) fn finding(&self) -> Option<Str<'static>> {
        let ids = self.excluded.iter().map(|(id, _)| id.as_ref());
        (!self.excluded.is_empty()).then(|| listing("A12:completion_filter_excluded_nonempty", ids))
    }

    fn to_value(&self) -> Value<'static> {
        let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (_, reason) in &self.excluded {
            *reasons.entry(reason).or_default() += 1;
        }
        object([
            ("input_completions", Value::from(self.kept + self.excluded.len())),
            ("kept_completions", Value::from(self.kept)),
            ("excluded_completions", Value::from(self.excluded.len())),
            ("excluded_reasons", object(reasons.into_iter().map(|(reason, n)| (reason, Value::from(n))))),
            ("excluded_completion_ids", self.excluded.iter().map(|(id, _)| Value::from(id.clone())).collect()),
            (
                "excluded",
                self.excluded
                    .iter()
                    .map(|(id, reason)| object([("completion_id", Value::from(id.clone())), ("reason", text(reason))]))
                    .collect(),
            ),
        ])
    }
}

/// How many chains and completions there were.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) chains: usize,
    pub(super) full: usize,
    pub(super) truncated: usize,
    pub(super) merged: usize,
}

impl Stats {
    fn to_value(&self, raw: usize, kept: usize) -> Value<'static> {
        object([
            ("chains_total", Value::from(self.chains)),
            ("chains_reconstructed_full", Value::from(self.full)),
            ("chains_reconstructed_truncated", Value::from(self.truncated)),
            ("raw_completions_total", Value::from(raw)),
            ("completions_total", Value::from(kept)),
            ("completions_merged", Value::from(self.merged)),
        ])
    }
}

/// Everything that a trajectory is made of.
#[derive(Default)]
pub(super) struct Trajectory {
    pub(super) record_count: usize,
    pub(super) filter: Filter,
    pub(super) stats: Stats,
    pub(super) traces: Vec<Value<'static>>,
    pub(super) findings: Vec<Str<'static>>,
    pub(super) stitched: usize,
    /// Whether the engine aborted a completion.
    pub(super) aborted: bool,
    /// The certificate; the reference has none.
    pub(super) fidelity: Option<Value<'static>>,
}

impl Trajectory {
    pub(super) fn into_value(self, header: &Header<'_>) -> Value<'static> {
        let member = |key: &str| header.value.get(key).map_or(Value::Null, |v| v.to_owned());
        let task_metadata = owned_object(header.metadata);
        let record_count = Value::from(self.record_count);
        let mut metadata = vec![("builder", text(STRATEGY)), ("session_id", member("session_id"))];
        let mut error = None;
        if self.filter.kept == 0 {
            metadata.extend([("task_metadata", task_metadata), ("record_count", record_count)]);
            if self.record_count == 0 {
                error = Some("no completions".to_owned());
            } else {
                metadata.push(("completion_filter", self.filter.to_value()));
                error = Some("no trainable completions after completion filter".to_owned());
            }
        } else {
            metadata.extend(["task_id", "api_type", "model_requested", "model_used"].map(|key| (key, member(key))));
            metadata.extend([
                ("record_count", record_count),
                ("task_metadata", task_metadata),
                ("trace_count", Value::from(self.traces.len())),
                ("reconstruction_stats", self.stats.to_value(self.record_count, self.filter.kept)),
                ("completion_filter", self.filter.to_value()),
            ]);
            if self.aborted {
                error = Some("aborted generation (weight-update cutoff)".to_owned());
            }
        }
        for key in ["group_id", "policy_version", "rollout_step"] {
            metadata.extend(header.metadata.get(key).map(|v| (key, v.to_owned())));
        }
        metadata.extend(self.fidelity.map(|certificate| ("gsj_fidelity", certificate)));
        if error.is_none() && !self.findings.is_empty() {
            error = Some(format!("gsj validation failed ({} findings)", self.findings.len()));
        }
        metadata.push((
            "gsj_validation",
            object([
                ("builder", text(BUILDER)),
                ("findings", self.findings.into_iter().map(Value::from).collect()),
                ("glue_stitched", Value::from(self.stitched)),
            ]),
        ));
        object([
            ("status", text(if error.is_some() { "ERROR" } else { "COMPLETED" })),
            ("metadata", object(metadata)),
            ("traces", Value::from(self.traces)),
            ("error", Value::from(error)),
        ])
    }
}

/// One trace: all its members are always there.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) prompt_ids: Value<'static>,
    pub(super) response_ids: Value<'static>,
    pub(super) loss_mask: Vec<u32>,
    pub(super) prompt_messages: Vec<Value<'static>>,
    pub(super) response_messages: Vec<Value<'static>>,
    /// Empty = none were offered.
    pub(super) tools: Vec<Value<'static>>,
    pub(super) finish_reason: Option<Str<'static>>,
    pub(super) logprobs: Option<Vec<f64>>,
    /// The metadata of the merged completions, each an object.
    pub(super) metadata: Vec<Value<'static>>,
    pub(super) fidelity: Option<Value<'static>>,
}

impl Trace {
    pub(super) fn into_value(self) -> Value<'static> {
        let mut metadata = self.metadata.first().cloned().unwrap_or_default();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("completion_metadata", self.metadata);
            if let Some(certificate) = self.fidelity {
                metadata.insert("gsj_fidelity", certificate);
            }
        }
        object([
            ("prompt_ids", self.prompt_ids),
            ("response_ids", self.response_ids),
            ("loss_mask", Value::from(self.loss_mask)),
            ("prompt_messages", Value::from(self.prompt_messages)),
            ("response_messages", Value::from(self.response_messages)),
            ("tools", if self.tools.is_empty() { Value::Null } else { Value::from(self.tools) }),
            ("finish_reason", Value::from(self.finish_reason)),
            ("response_logprobs", Value::from(self.logprobs)),
            ("reward", Value::Null),
            ("metadata", metadata),
        ])
    }
}

pub(super) fn object(members: impl IntoIterator<Item = (&'static str, Value<'static>)>) -> Value<'static> {
    Value::from(members.into_iter().collect::<Object<'_>>())
}

/// A finding on a completion. Ids keep lone surrogates: a trajectory is written as JSON, which escapes them.
pub(super) fn finding(rule: &'static str, id: &Str<'_>, more: impl Display) -> Str<'static> {
    let more = more.to_string();
    Str::concat([StrRef::from(rule), StrRef::from(":"), id.as_ref(), StrRef::from(&*more)]).into_owned()
}

/// A finding with a list.
pub(super) fn listing<'i>(rule: &'static str, items: impl Iterator<Item = StrRef<'i>>) -> Str<'static> {
    let mut parts = vec![StrRef::from(rule)];
    for (i, item) in items.enumerate() {
        parts.extend([StrRef::from(if i == 0 { ":" } else { "," }), item]);
    }
    Str::concat(parts).into_owned()
}

/// The finding that a member of the session has the wrong type.
pub(super) fn invalid(path: &str) -> Str<'static> {
    Str::from(format!("S17:session_field_invalid:{path}"))
}

pub(super) fn text(value: &str) -> Value<'static> {
    Value::from(value.to_owned())
}
