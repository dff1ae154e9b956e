//! Our continuity modes (section 11.6): one record at a time, each compared with what is merged already.

use std::fmt;

use crate::json::{Str, Value, ValueRef};
use crate::tokens::TokenText;

use super::certificate::of_trajectory;
use super::chain::{Chain, Joining, Sample};
use super::context::ContextKind;
use super::findings::policy_versions;
use super::output::{Filter, Stats, Trajectory, finding, invalid};
use super::place::{Place, Source, find};
use super::reading::{Reading, answers};
use super::session::{Header, Record, depth};
use super::template::Language;
use super::{Continuity, Options, control};

/// A session's merged state.
pub(super) struct Merger {
    options: Options,
    entries: Vec<Entry>,
    chains: Vec<Chain>,
    previous: Option<Previous>,
    /// The first record's roster as it was sent.
    roster: Option<Value<'static>>,
    roster_changed: bool,
    /// The distinct policy versions, in order.
    versions: Vec<Value<'static>>,
    aborted: bool,
    /// Index in the document and path of members of the wrong type.
    faults: Vec<(usize, String)>,
}

/// What stays of a record besides what its chain holds.
#[derive(Default)]
struct Entry {
    id: Str<'static>,
    /// Findings that stand before those which are known only at the end.
    early: Vec<Str<'static>>,
    /// Whether the reply was cut, which matters when another record follows.
    cut: bool,
    agent_shaped: bool,
    /// How the context relates to what was merged, which matters when the completion is kept.
    kind: ContextKind,
    /// Findings that stand after those.
    late: Vec<Str<'static>>,
    excluded: Option<&'static str>,
}

/// The reason of a completion that the conversation did not go on from.
const SUPERSEDED: &str = "superseded_sample";

impl Entry {
    /// Moves the record's findings out, in their order.
    fn findings(&mut self, is_last: bool, allow_forks: bool, out: &mut Vec<Str<'static>>) {
        out.append(&mut self.early);
        if self.cut && !is_last {
            out.push(finding("S7:mid_chain_finish_length", &self.id, ""));
        }
        if !self.agent_shaped {
            out.push(finding("A12:non_agent_shape", &self.id, ""));
        }
        match self.kind {
            _ if allow_forks || self.excluded.is_some() => {}
            ContextKind::Rewritten => out.push(finding("S10:context_rewritten", &self.id, "")),
            ContextKind::Template => out.push(finding("S11:context_template", &self.id, "")),
            ContextKind::Exact | ContextKind::Retokenized | ContextKind::Inexact => {}
        }
        out.append(&mut self.late);
    }
}

/// The prompt of the record before.
enum Previous {
    /// That of the open turn of a chain.
    Tip(usize),
    Other(Vec<u32>),
}

/// The language that the options name, if any.
pub(super) fn language(options: &Options) -> Option<Language<'_>> {
    let tokens: &dyn TokenText = options.tokenizer.as_deref()?;
    let (open, close) = &options.reasoning_markers;
    Some(Language { tokens, open: open.as_bytes(), close: close.as_bytes() })
}

impl fmt::Debug for Merger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merger")
            .field("options", &self.options)
            .field("records", &self.entries.len())
            .field("chains", &self.chains.len())
            .finish_non_exhaustive()
    }
}

impl Merger {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            entries: Vec::new(),
            chains: Vec::new(),
            previous: None,
            roster: None,
            roster_changed: false,
            versions: Vec::new(),
            aborted: false,
            faults: Vec::new(),
        }
    }

    /// Takes the record that stands at an index of the document.
    pub(super) fn push(&mut self, value: ValueRef<'_>, at: usize) {
        let mut faults = Vec::new();
        let record = Record::read(value, at, &mut faults);
        self.faults.extend(faults.into_iter().map(|path| (at, path)));
        let Some(record) = record else { return };
        let reading = Reading::of(&record);
        let mut entry = Entry { id: record.id.clone().into_owned(), excluded: record.exclusion(), ..Entry::default() };
        self.look(&record, &reading, &mut entry);

        let prompt = &*reading.prompt;
        let messages = record.messages();
        let index = self.entries.len();
        let new: &[ValueRef<'_>] = if entry.excluded.is_some() {
            self.previous = Some(Previous::Other(prompt.to_vec()));
            &messages
        } else {
            let sample = Sample {
                record: index,
                ids: reading.response.into_owned(),
                logprobs: reading.logprobs,
                message: record.reply().map(ValueRef::to_owned),
                finish_reason: record.finish_reason(),
                metadata: record.owned_metadata(),
            };
            self.join(&record, prompt, sample, &messages, &mut entry)
        };
        entry.late.extend(reading.findings);
        if record.is_too_deep(new.iter().copied().chain(record.reply())) {
            entry.late.push(finding("S18:message_nested_too_deep", &record.id, ""));
        }
        if record.metadata.get("policy_version").is_some_and(|v| depth(v) > 0) {
            entry.late.push(finding("S19:policy_version_not_a_scalar", &record.id, ""));
        }
        self.entries.push(entry);
    }

    /// Notes what can be said of a record by itself and beside the one before it.
    fn look(&mut self, record: &Record<'_>, reading: &Reading<'_>, entry: &mut Entry) {
        let id = &record.id;
        let prompt = &*reading.prompt;
        if prompt.is_empty() {
            entry.early.push(finding("S1:empty_prompt_ids", id, ""));
        }
        if reading.response.is_empty() {
            entry.early.push(finding("S6:empty_response_ids", id, ""));
        }
        let answers = answers(record);
        if answers != 1 {
            entry.early.push(finding("S8:choices_len_ne_1", id, format_args!(":{answers}")));
        }
        let repeated = self.previous.as_ref().is_some_and(|previous| match previous {
            Previous::Tip(at) => self.chains.get(*at).is_some_and(|chain| chain.tip_prompt() == prompt),
            Previous::Other(other) => other == prompt,
        });
        if repeated {
            entry.early.push(finding("S3:duplicate_consecutive_prompt", id, ""));
        }
        entry.cut = record.finish_reason().as_ref().and_then(Str::as_str) == Some("length");
        entry.agent_shaped = record.is_agent_shaped();
        self.aborted |= record.is_aborted();

        let roster = record.request.get("tools").unwrap_or(ValueRef::Null);
        match &self.roster {
            Some(first) => self.roster_changed |= !first.as_ref().python_eq(roster),
            None => self.roster = Some(roster.to_owned()),
        }
        let version = record.metadata.get("policy_version").unwrap_or(ValueRef::Null);
        if !self.versions.iter().any(|other| other.as_ref().python_eq(version)) {
            self.versions.push(version.to_owned());
        }
    }

    /// Puts a completion where it belongs; gives the messages that are new with it.
    fn join<'m, 'v>(
        &mut self,
        record: &Record<'_>,
        prompt: &[u32],
        sample: Sample,
        messages: &'m [ValueRef<'v>],
        entry: &mut Entry,
    ) -> &'m [ValueRef<'v>] {
        let language = language(&self.options);
        let same_text = self.options.continuity == Continuity::SameText;
        let place = find(&self.chains, language, same_text, prompt, messages);
        let owned = |messages: &[ValueRef<'_>]| messages.iter().map(|m| (*m).to_owned()).collect();
        let (chain, new, added) = match place {
            Place::Sample { chain } => {
                entry.kind = self.kind_of(self.chains[chain].samples.first());
                self.chains[chain].sample(sample);
                (chain, &[][..], prompt.len())
            }
            Place::Earlier { chain, turn } => {
                entry.kind = self.kind_of(self.chains[chain].turns.get(turn).map(|turn| &turn.sample));
                self.chains[chain].sample_of(turn, sample, prompt);
                self.previous = Some(Previous::Other(prompt.to_vec()));
                return &[];
            }
            Place::Extend { chain, winner, end, kind } => {
                let tip = &mut self.chains[chain];
                let new = tip.new_messages(messages, winner);
                tip.extend(winner, Joining { prompt, sample, messages: owned(new) }, end, kind);
                entry.kind = kind;
                (chain, new, end)
            }
            Place::Branch { chain, left, end } => {
                let (mut branch, common) = self.chains[chain].branch(left);
                branch.relative = Some((chain, common));
                // The branch begins with the ids that its own sample was given, which need not be those of the chain.
                let kind = if branch.leads_to(prompt, end) { ContextKind::Exact } else { ContextKind::Retokenized };
                let new = branch.new_messages(messages, 0);
                branch.extend(0, Joining { prompt, sample, messages: owned(new) }, end, kind);
                self.chains.push(branch);
                entry.kind = kind;
                (self.chains.len() - 1, new, end)
            }
            Place::New { relative, fork, known, inherited } => {
                if let Some(fork) = fork {
                    entry.kind = fork.kind;
                    match fork.source {
                        Source::Unknown => {}
                        Source::Sample { chain, record } => self.chains[chain].chosen = Some(record),
                        Source::Left { chain, left } => {
                            let (mut branch, common) = self.chains[chain].branch(left);
                            branch.relative = Some((chain, common));
                            self.chains.push(branch);
                        }
                    }
                }
                let joining = Joining { prompt, sample, messages: owned(messages) };
                let mut chain = Chain::new(joining, owned(&record.tools()), prompt.len(), inherited);
                chain.relative = relative;
                self.chains.push(chain);
                (self.chains.len() - 1, messages, known)
            }
        };
        if let Some(language) = language {
            self.chains[chain].find_opening(&language);
            let added = prompt.get(added..).unwrap_or_default();
            let found = control::in_text(language.tokens, added, new);
            entry
                .late
                .extend(found.iter().map(|id| finding("S12:control_token_in_text", &entry.id, format_args!(":{id}"))));
        }
        self.previous = Some(Previous::Tip(chain));
        new
    }

    /// The kind of the context that a sample was sampled from.
    fn kind_of(&self, sample: Option<&Sample>) -> ContextKind {
        sample.and_then(|sample| self.entries.get(sample.record)).map_or(ContextKind::Exact, |entry| entry.kind)
    }

    pub(super) fn finish(mut self, header: &Header<'_>) -> Value<'static> {
        let mut out = Trajectory { record_count: self.entries.len(), aborted: self.aborted, ..Trajectory::default() };
        out.stats = Stats { chains: self.chains.len(), full: self.chains.len(), ..Stats::default() };
        for chain in std::mem::take(&mut self.chains) {
            let id = |record: usize| self.entries.get(record).map(|entry| entry.id.clone()).unwrap_or_default();
            let (trace, superseded) = chain.finish(id);
            out.traces.push(trace.into_value());
            for record in superseded {
                if let Some(entry) = self.entries.get_mut(record) {
                    entry.excluded = Some(SUPERSEDED);
                }
            }
        }
        out.findings = self.findings(header);
        let superseded = self.entries.iter().filter(|entry| entry.excluded == Some(SUPERSEDED)).count();
        let kept = self.entries.iter().filter(|entry| entry.excluded.is_none()).map(|entry| entry.kind);
        let tokenizer = self.options.tokenizer.as_deref().map(TokenText::identity);
        out.fidelity = Some(of_trajectory(self.options.continuity.name(), kept, superseded, tokenizer));
        out.filter = Filter::default();
        for entry in self.entries {
            match entry.excluded {
                Some(reason) => out.filter.excluded.push((entry.id, reason)),
                None => out.filter.kept += 1,
            }
        }
        out.stats.merged = out.filter.kept;
        out.findings.extend(out.filter.finding());
        out.into_value(header)
    }

    fn findings(&mut self, header: &Header<'_>) -> Vec<Str<'static>> {
        // Members are named in the order of the document, as they are when records come in that order.
        self.faults.sort_by_key(|(at, _)| *at);
        let faults = header.faults.iter().chain(self.faults.iter().map(|(_, path)| path));
        let mut out: Vec<Str<'static>> = faults.map(|path| invalid(path)).collect();
        if self.options.end_of_turn_token_id.is_none() {
            out.push("A15:end_of_turn_token_id_not_configured".into());
        }
        let last = self.entries.len().saturating_sub(1);
        for (i, entry) in self.entries.iter_mut().enumerate() {
            entry.findings(i == last, self.options.allow_forks, &mut out);
        }
        if self.roster_changed {
            out.push("R11:roster_changed_across_completions".into());
        }
        out.extend(policy_versions(self.versions.iter().map(Value::as_ref)));
        out
    }
}
