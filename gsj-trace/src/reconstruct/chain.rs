//! One context that grows turn by turn.

use crate::canonical::ContextHash;
use crate::json::{Str, Value, ValueRef};

use super::certificate::of_turn;
use super::context::ContextKind;
use super::messages;
use super::output::{Trace, object};
use super::template::{Language, Reply};
use super::units::{common_prefix, differing};

/// What a completion brought, its context aside.
#[derive(Default)]
pub(super) struct Sample {
    /// The index of its record.
    pub(super) record: usize,
    /// What was sampled; once the sample is merged, its chain holds them.
    pub(super) ids: Vec<u32>,
    pub(super) logprobs: Option<Vec<f64>>,
    pub(super) message: Option<Value<'static>>,
    pub(super) finish_reason: Option<Str<'static>>,
    pub(super) metadata: Value<'static>,
}

/// The prompt of a turn.
#[derive(Default)]
pub(super) struct Opened {
    /// How many ids of the chain are its context.
    pub(super) start: usize,
    /// Where the generation opening begins.
    pub(super) opening: usize,
    /// How the engine's context relates to the chain's.
    pub(super) kind: ContextKind,
    pub(super) context_sha256: String,
    /// How many ids the engine was given.
    pub(super) length: usize,
    differing: usize,
    /// The messages that are new before the turn.
    messages: Vec<Value<'static>>,
}

/// The engine's own ids of a context, where they are not the chain's.
pub(super) struct Rendered {
    pub(super) ids: Vec<u32>,
    hash: ContextHash,
}

/// A turn whose reply is known to be the one that the conversation went on from.
pub(super) struct Turn {
    pub(super) opened: Opened,
    end: usize,
    pub(super) sample: Sample,
}

/// A sample of a turn that the conversation did not go on from, so far.
pub(super) struct Left {
    pub(super) turn: usize,
    pub(super) sample: Sample,
    /// The engine's ids of its context, where they are not the chain's.
    prompt: Option<Vec<u32>>,
}

/// What a record gives to the chain that it joins or opens.
pub(super) struct Joining<'q> {
    /// The engine's context.
    pub(super) prompt: &'q [u32],
    pub(super) sample: Sample,
    /// The request's messages, or those that are new.
    pub(super) messages: Vec<Value<'static>>,
}

/// Turns of one context, the last of them open: its reply is any of its samples.
pub(super) struct Chain {
    /// The first prompt and all that followed, up to the reply of the open turn.
    pub(super) ids: Vec<u32>,
    pub(super) prompt_length: usize,
    pub(super) turns: Vec<Turn>,
    pub(super) tip: Opened,
    /// The replies of the open turn, at least one, in the order of arrival.
    pub(super) samples: Vec<Sample>,
    /// The record whose sample another chain went on from.
    pub(super) chosen: Option<usize>,
    pub(super) left: Vec<Left>,
    pub(super) rendered: Option<Rendered>,
    pub(super) prompt_messages: Vec<Value<'static>>,
    /// How many messages there are before the reply of the open turn.
    message_count: usize,
    tools: Vec<Value<'static>>,
    /// Replies inside the first prompt.
    inherited: Vec<Reply>,
    hash: ContextHash,
    /// Another chain, and how many ids they have in common at least.
    pub(super) relative: Option<(usize, usize)>,
}

impl Chain {
    /// A chain that begins with this prompt.
    pub(super) fn new(joining: Joining<'_>, tools: Vec<Value<'static>>, opening: usize, inherited: Vec<Reply>) -> Self {
        let ids = joining.prompt.to_vec();
        let hash = hash_of(&ids);
        Self {
            prompt_length: ids.len(),
            turns: Vec::new(),
            tip: Opened {
                start: ids.len(),
                opening,
                context_sha256: hash.digest(),
                length: ids.len(),
                ..Opened::default()
            },
            samples: vec![joining.sample],
            chosen: None,
            left: Vec::new(),
            rendered: None,
            message_count: joining.messages.len(),
            prompt_messages: joining.messages,
            tools,
            inherited,
            hash,
            relative: None,
            ids,
        }
    }

    /// A chain of its own for a sample that was left behind, when the conversation goes on from it after all.
    ///
    /// Says as well how many ids the two have in common.
    pub(super) fn branch(&mut self, left: usize) -> (Self, usize) {
        let Left { turn, sample, prompt } = self.left.remove(left);
        let opened = self.turns.get(turn).map_or(&self.tip, |turn| &turn.opened);
        let (start, opening) = (opened.start, opened.opening);
        let before = self.replies(None).into_iter().filter(|reply| reply.end <= opening).collect();
        let messages = self.messages_before(turn).map(ValueRef::to_owned).collect();
        // Of a context in other ids the replies' places are not known.
        let (inherited, opening) = if prompt.is_some() { (Vec::new(), start) } else { (before, opening) };
        let prompt = prompt.unwrap_or_else(|| self.ids[..start].to_vec());
        let common = common_prefix(&prompt, &self.ids);
        let joining = Joining { prompt: &prompt, sample, messages };
        (Self::new(joining, self.tools.clone(), opening.min(prompt.len()), inherited), common)
    }

    /// The position in `samples` of the sample that stands for the open turn when nothing follows it.
    fn standing(&self) -> usize {
        let chosen = self.chosen.and_then(|record| self.samples.iter().position(|s| s.record == record));
        // What was delivered last is what the agent has.
        chosen.unwrap_or(self.samples.len().saturating_sub(1))
    }

    /// Closes the open turn with one of its samples; the others are left behind.
    fn close(&mut self, winner: usize, next: Opened) {
        let mut samples = std::mem::take(&mut self.samples);
        let mut sample = if winner < samples.len() { samples.remove(winner) } else { Sample::default() };
        self.ids.append(&mut sample.ids);
        let turn = self.turns.len();
        let prompt = self.rendered.as_ref().map(|rendered| &rendered.ids);
        self.left.extend(samples.into_iter().map(|sample| Left { turn, sample, prompt: prompt.cloned() }));
        self.message_count += usize::from(sample.message.is_some());
        let opened = std::mem::replace(&mut self.tip, next);
        self.turns.push(Turn { opened, end: self.ids.len(), sample });
        self.chosen = None;
    }

    /// Goes on with a prompt that begins with this chain's context and the reply `winner`: from `end` on it is new.
    pub(super) fn extend(&mut self, winner: usize, joining: Joining<'_>, end: usize, kind: ContextKind) {
        let (prompt, known) = (joining.prompt, self.ids.len());
        self.close(winner, Opened { kind, length: prompt.len(), messages: joining.messages, ..Opened::default() });
        self.ids.extend_from_slice(prompt.get(end..).unwrap_or_default());
        self.samples.push(joining.sample);
        self.hash.add(&self.ids[known..]);
        self.message_count += self.tip.messages.len();
        self.tip.start = self.ids.len();
        if kind == ContextKind::Exact {
            self.rendered = None;
            self.tip.context_sha256 = self.hash.digest();
            return;
        }
        self.tip.differing = differing(prompt, &self.ids);
        let rendered = match self.rendered.take() {
            Some(mut rendered) if prompt.starts_with(&rendered.ids) => {
                let new = &prompt[rendered.ids.len()..];
                rendered.hash.add(new);
                rendered.ids.extend_from_slice(new);
                rendered
            }
            _ => Rendered { ids: prompt.to_vec(), hash: hash_of(prompt) },
        };
        self.tip.context_sha256 = rendered.hash.digest();
        self.rendered = Some(rendered);
    }

    /// The engine's context of the open turn.
    pub(super) fn tip_prompt(&self) -> &[u32] {
        self.rendered.as_ref().map_or(&self.ids, |rendered| &rendered.ids)
    }

    /// Whether the first `end` ids of a prompt are the context of the open turn and its first sample.
    pub(super) fn leads_to(&self, prompt: &[u32], end: usize) -> bool {
        let rest = prompt.get(..end).and_then(|known| known.strip_prefix(&*self.ids));
        self.samples.first().is_some_and(|sample| rest == Some(&*sample.ids))
    }

    /// How many ids of the chain are the context of a turn.
    pub(super) fn start_of(&self, turn: usize) -> usize {
        self.turns.get(turn).map_or(self.tip.start, |turn| turn.opened.start)
    }

    /// Finds where the generation opening of the open turn begins.
    pub(super) fn find_opening(&mut self, language: &Language<'_>) {
        let from = self.turns.last().map_or(0, |turn| turn.end);
        self.tip.opening = language.opening(&self.ids, from, self.tip.start);
    }

    /// Adds another sample of the open turn.
    pub(super) fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Adds another sample of an earlier turn.
    pub(super) fn sample_of(&mut self, turn: usize, sample: Sample, prompt: &[u32]) {
        let same = self.turns.get(turn).is_some_and(|turn| turn.opened.kind == ContextKind::Exact);
        self.left.push(Left { turn, sample, prompt: (!same).then(|| prompt.to_vec()) });
    }

    /// Whether this is the context of the open turn; `shared` ids are those of the chain.
    pub(super) fn is_tip(&self, prompt: &[u32], shared: usize) -> bool {
        let same = prompt.len() == self.ids.len() && shared == prompt.len();
        same || self.rendered.as_ref().is_some_and(|rendered| rendered.ids == prompt)
    }

    /// The earlier turn that has this context; `shared` ids are those of the chain.
    pub(super) fn turn_with(&self, prompt: &[u32], shared: usize) -> Option<usize> {
        let at = self.turns.partition_point(|turn| turn.opened.start < prompt.len());
        if shared >= prompt.len() && self.turns.get(at).is_some_and(|turn| turn.opened.start == prompt.len()) {
            return Some(at);
        }
        let other = |turn: &Turn| turn.opened.kind != ContextKind::Exact && turn.opened.length == prompt.len();
        let mut candidates = self.turns.iter().enumerate().filter(|(_, turn)| other(turn)).peekable();
        candidates.peek()?;
        let digest = hash_of(prompt).digest();
        candidates.find(|(_, turn)| turn.opened.context_sha256 == digest).map(|(at, _)| at)
    }

    /// The replies in the chain's ids, and in those of one sample of the open turn after them.
    pub(super) fn replies(&self, sample: Option<&Sample>) -> Vec<Reply> {
        let turns = self.turns.iter().map(|t| Reply { opening: t.opened.opening, start: t.opened.start, end: t.end });
        let (opening, start) = (self.tip.opening, self.tip.start);
        let last = sample.map(|sample| Reply { opening, start, end: start + sample.ids.len() });
        self.inherited.iter().copied().chain(turns).chain(last).collect()
    }

    /// The messages of a request that follow one of the replies of the open turn.
    pub(super) fn new_messages<'m, 'v>(&self, messages: &'m [ValueRef<'v>], winner: usize) -> &'m [ValueRef<'v>] {
        let reply = self.samples.get(winner).and_then(|sample| sample.message.as_ref()).map(Value::as_ref);
        messages::new(messages, self.message_count, self.messages_before(self.turns.len()), reply)
    }

    /// The messages before the reply of a turn.
    fn messages_before(&self, turn: usize) -> impl Iterator<Item = ValueRef<'_>> {
        let turns = self.turns.get(..turn).unwrap_or(&self.turns);
        let said = turns.iter().flat_map(|t| t.opened.messages.iter().chain(&t.sample.message));
        let opened = self.turns.get(turn).map_or(&self.tip, |turn| &turn.opened);
        self.prompt_messages.iter().chain(said).chain(&opened.messages).map(Value::as_ref)
    }

    /// The trace, and the records whose samples nothing went on from.
    pub(super) fn finish(mut self, completion_id: impl Fn(usize) -> Str<'static>) -> (Trace, Vec<usize>) {
        self.close(self.standing(), Opened::default());
        let superseded = self.left.iter().map(|left| left.sample.record).collect();
        let response = self.ids.split_off(self.prompt_length);
        let mut trace = Trace {
            loss_mask: vec![0; response.len()],
            prompt_messages: self.prompt_messages,
            tools: self.tools,
            prompt_ids: Value::from(self.ids),
            ..Trace::default()
        };
        let mut logprobs = vec![0.0; response.len()];
        let (mut some, mut all) = (false, true);
        let mut turns = Vec::new();
        for Turn { opened, end, sample } in self.turns {
            let (from, to) = (opened.start - self.prompt_length, end - self.prompt_length);
            trace.loss_mask[from..to].fill(1);
            match sample.logprobs {
                Some(values) if values.len() == to - from => {
                    logprobs[from..to].copy_from_slice(&values);
                    some |= from < to;
                }
                _ => all &= from == to,
            }
            trace.response_messages.extend(opened.messages.into_iter().chain(sample.message));
            trace.finish_reason = sample.finish_reason;
            trace.metadata.push(sample.metadata);
            turns.push(of_turn(completion_id(sample.record), opened.kind, opened.context_sha256, opened.differing));
        }
        trace.response_ids = Value::from(response);
        trace.logprobs = (some && all).then_some(logprobs);
        trace.fidelity = Some(object([("turns", Value::from(turns))]));
        (trace, superseded)
    }
}

fn hash_of(ids: &[u32]) -> ContextHash {
    let mut hash = ContextHash::new();
    hash.add(ids);
    hash
}
