//! Where a completion belongs among the chains that are there.

use crate::json::ValueRef;

use super::chain::{Chain, Sample};
use super::context::ContextKind;
use super::messages::is_role;
use super::template::{Language, Reply};
use super::units::{Cursor, Follows, common_prefix, follows};

/// How many ids at the end of a first prompt may be the generation opening, where no tokenizer tells.
const LONGEST_OPENING: usize = 16;

/// What a completion is to the chains. Indices are of chains, of their turns, samples and left samples.
pub(super) enum Place {
    /// Another sample of the open turn.
    Sample { chain: usize },
    /// Another sample of an earlier turn.
    Earlier { chain: usize, turn: usize },
    /// The next turn after a sample of the open turn; what is new in its prompt begins at `end`.
    Extend { chain: usize, winner: usize, end: usize, kind: ContextKind },
    /// The next turn after a sample that was left behind.
    Branch { chain: usize, left: usize, end: usize },
    /// The first turn of a chain; what is new in its prompt begins at `known`.
    New { relative: Option<(usize, usize)>, fork: Option<Fork>, known: usize, inherited: Vec<Reply> },
}

/// What a conversation that goes on in a new chain has to do with the chain that it left.
pub(super) struct Fork {
    pub(super) kind: ContextKind,
    pub(super) source: Source,
}

/// Which sample a conversation went on from.
pub(super) enum Source {
    Unknown,
    /// One of the open turn of a chain, by its record.
    Sample {
        chain: usize,
        record: usize,
    },
    /// One that a chain left behind.
    Left {
        chain: usize,
        left: usize,
    },
}

struct Search<'c> {
    chains: &'c [Chain],
    language: Option<Language<'c>>,
    prompt: &'c [u32],
    /// For each chain how many ids it has in common with the prompt.
    shared: Vec<usize>,
}

pub(super) fn find(
    chains: &[Chain],
    language: Option<Language<'_>>,
    same_text: bool,
    prompt: &[u32],
    messages: &[ValueRef<'_>],
) -> Place {
    if prompt.is_empty() {
        let fork = Some(Fork { kind: ContextKind::Inexact, source: Source::Unknown });
        return Place::New { relative: None, fork, known: 0, inherited: Vec::new() };
    }
    let search = Search { chains, language, prompt, shared: shared(chains, prompt) };
    if let Some(place) = search.repeated().or_else(|| search.exact()) {
        return place;
    }
    let retokenized = search.retokenized();
    match retokenized {
        Some((place, true)) if same_text => place,
        retokenized => search.fork(retokenized.map(|(place, _)| place), messages),
    }
}

/// For each chain how many leading ids it has in common with the prompt.
///
/// Two chains with a beginning in common are compared with it once, so many chains cost no more than one.
fn shared(chains: &[Chain], prompt: &[u32]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::with_capacity(chains.len());
    for chain in chains {
        let known = chain.relative.map(|(other, common)| (out.get(other).copied().unwrap_or(0), common));
        let length = match known {
            Some((other, common)) if other < common => other,
            known => {
                let from = known.map_or(0, |(_, common)| common).min(prompt.len()).min(chain.ids.len());
                from + common_prefix(&prompt[from..], &chain.ids[from..])
            }
        };
        out.push(length);
    }
    out
}

impl<'c> Search<'c> {
    /// Chains that can be joined, with their index and what they have in common with the prompt.
    fn joinable(&self) -> impl Iterator<Item = (usize, &'c Chain, usize)> {
        let with_prompt = self.chains.iter().zip(&self.shared).enumerate();
        with_prompt.filter(|(_, (chain, _))| chain.prompt_length > 0).map(|(i, (chain, shared))| (i, chain, *shared))
    }

    fn repeated(&self) -> Option<Place> {
        let mut earlier = None;
        for (i, chain, shared) in self.joinable() {
            if chain.is_tip(self.prompt, shared) {
                return Some(Place::Sample { chain: i });
            }
            earlier =
                earlier.or_else(|| Some(Place::Earlier { chain: i, turn: chain.turn_with(self.prompt, shared)? }));
        }
        earlier
    }

    /// The longest context and reply that the prompt begins with, id for id; of equals the last delivered.
    fn exact(&self) -> Option<Place> {
        let mut best: Option<(usize, Place)> = None;
        let mut offer = |end: usize, place: Place| {
            if best.as_ref().is_none_or(|(length, _)| *length <= end) {
                best = Some((end, place));
            }
        };
        for (i, chain, shared) in self.joinable() {
            for (at, left) in chain.left.iter().enumerate() {
                let start = chain.start_of(left.turn);
                if shared >= start && !left.sample.ids.is_empty() && self.prompt[start..].starts_with(&left.sample.ids)
                {
                    let end = start + left.sample.ids.len();
                    offer(end, Place::Branch { chain: i, left: at, end });
                }
            }
            if shared < chain.ids.len() {
                continue;
            }
            for (at, sample) in candidates(chain) {
                if self.prompt[shared..].starts_with(&sample.ids) {
                    let end = shared + sample.ids.len();
                    offer(end, Place::Extend { chain: i, winner: at, end, kind: ContextKind::Exact });
                }
            }
        }
        best.map(|(_, place)| place)
    }

    /// The longest context and reply whose text the prompt begins with, and whether the end can be merged.
    fn retokenized(&self) -> Option<(Place, bool)> {
        let language = self.language?;
        let mut best: Option<(usize, Place, bool)> = None;
        let mut offer = |follows: Follows, place: &dyn Fn(usize) -> Place| {
            let (end, whole) = match follows {
                Follows::At(end) => (end, true),
                Follows::Inside => (0, false),
                Follows::Not => return,
            };
            if best.as_ref().is_none_or(|(length, _, _)| *length <= end) {
                best = Some((end, place(end), whole));
            }
        };
        for (i, chain, shared) in self.joinable() {
            let kind = ContextKind::Retokenized;
            let (q, context) = match &chain.rendered {
                Some(rendered) if self.prompt.starts_with(&rendered.ids) => (rendered.ids.len(), chain.ids.len()),
                _ => (shared, shared),
            };
            let compare = |head: &[u32], reply: &[u32], q: usize, context: usize| {
                let q = Cursor::new(language.tokens, [self.prompt, &[]], q);
                follows(q, Cursor::new(language.tokens, [head, reply], context))
            };
            for (at, left) in chain.left.iter().enumerate().filter(|(_, left)| !left.sample.ids.is_empty()) {
                let head = &chain.ids[..chain.start_of(left.turn)];
                let from = shared.min(head.len());
                let end = compare(head, &left.sample.ids, from, from);
                offer(end, &|end| Place::Branch { chain: i, left: at, end });
            }
            for (at, sample) in candidates(chain) {
                let end = compare(&chain.ids, &sample.ids, q, context);
                offer(end, &|end| Place::Extend { chain: i, winner: at, end, kind });
            }
        }
        best.map(|(_, place, whole)| (place, whole))
    }

    /// A chain of its own, and what it has to do with the others.
    fn fork(&self, retokenized: Option<Place>, messages: &[ValueRef<'_>]) -> Place {
        let best = self.closest();
        let relative = best.map(|(chain, _, _)| (chain, self.shared[chain]));
        let new =
            |fork: Option<Fork>, known: usize, inherited: Vec<Reply>| Place::New { relative, fork, known, inherited };
        let Some((at, sample, known)) = best.filter(|_| retokenized.is_some() || self.goes_on(messages)) else {
            return new(None, 0, Vec::new());
        };
        let chain = &self.chains[at];
        let Some(language) = self.language else {
            return new(Some(Fork { kind: ContextKind::Inexact, source: Source::Unknown }), known, Vec::new());
        };
        let kept = |mut replies: Vec<Reply>| {
            replies.retain(|reply| reply.end <= known);
            replies
        };
        if let Some(place) = retokenized {
            let source = match place {
                Place::Extend { chain, winner, .. } => {
                    Source::Sample { chain, record: self.chains[chain].samples[winner].record }
                }
                Place::Branch { chain, left, .. } => Source::Left { chain, left },
                _ => Source::Unknown,
            };
            return new(Some(Fork { kind: ContextKind::Retokenized, source }), known, kept(chain.replies(sample)));
        }
        // Of several samples that fit, the last one delivered is the one that was used.
        for sample in chain.samples.iter().rev() {
            let replies = chain.replies(Some(sample));
            let same = self.shared[at] + common_prefix(&self.prompt[self.shared[at]..], &sample.ids);
            let same = if self.shared[at] == chain.ids.len() { same } else { self.shared[at] };
            let context = [&chain.ids[..], &sample.ids[..]];
            if let Some(found) = language.differs_in_reasoning(self.prompt, context, same, &replies) {
                return new(
                    Some(Fork {
                        kind: ContextKind::Template,
                        source: Source::Sample { chain: at, record: sample.record },
                    }),
                    known,
                    found,
                );
            }
        }
        new(Some(Fork { kind: ContextKind::Rewritten, source: Source::Unknown }), known, kept(chain.replies(sample)))
    }

    /// The chain with the longest beginning in common, the sample of it that adds to that, and its length.
    fn closest(&self) -> Option<(usize, Option<&'c Sample>, usize)> {
        let measured = self.joinable().map(|(i, chain, shared)| {
            if shared < chain.ids.len() {
                return (i, None, shared);
            }
            let rest = &self.prompt[shared..];
            let samples = chain.samples.iter().map(|sample| (common_prefix(rest, &sample.ids), sample));
            let best = samples.max_by_key(|(length, _)| *length);
            best.map_or((i, None, shared), |(length, sample)| (i, Some(sample), shared + length))
        });
        measured.max_by_key(|(_, _, length)| *length)
    }

    /// Whether the prompt is a turn of a conversation that is there already, and not the first of another.
    fn goes_on(&self, messages: &[ValueRef<'_>]) -> bool {
        if messages.iter().any(|message| is_role(*message, "assistant")) {
            return true;
        }
        self.joinable().any(|(_, chain, shared)| {
            if messages.is_empty() {
                return shared >= self.without_opening(chain);
            }
            // Another message list at the end is the common case; chains far from the prompt are not compared.
            let first = &chain.prompt_messages;
            let begins = messages.len() > first.len() && !first.is_empty() && 2 * shared >= chain.prompt_length;
            begins && messages.iter().zip(first).rev().all(|(message, first)| *message == first.as_ref())
        })
    }

    /// The length of a chain's first prompt but for the generation opening.
    fn without_opening(&self, chain: &Chain) -> usize {
        let length = chain.prompt_length;
        let first = chain.turns.first().map_or(&chain.tip, |turn| &turn.opened);
        match self.language {
            Some(_) => first.opening.max(1),
            None => length.saturating_sub(LONGEST_OPENING).max(length.div_ceil(2)),
        }
    }
}

/// The samples of the open turn that a prompt may go on from; one without ids only when there is no other.
fn candidates(chain: &Chain) -> impl Iterator<Item = (usize, &Sample)> {
    let any = chain.samples.iter().any(|sample| !sample.ids.is_empty());
    chain.samples.iter().enumerate().filter(move |(_, sample)| !any || !sample.ids.is_empty())
}
