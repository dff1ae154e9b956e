//! Grouping completions into chains and walking each into one trace (sections 11.2 to 11.4).

use crate::json::{Str, ValueRef};

use super::extract::Completion;

/// What a chain of completions became.
pub(super) struct Merged<'v> {
    /// How many of the chain's completions are in it, from the first on.
    pub(super) count: usize,
    pub(super) response: Vec<u32>,
    /// One per response id: 1 = sampled.
    pub(super) mask: Vec<u32>,
    /// One per response id, or none.
    pub(super) logprobs: Option<Vec<f64>>,
    pub(super) response_messages: Vec<ValueRef<'v>>,
}

/// The chains, each the indices of its completions in order; chains in the order of their first.
pub(super) fn group(completions: &[&Completion<'_>]) -> Vec<Vec<usize>> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for (i, completion) in completions.iter().enumerate() {
        let mut best: Option<(usize, usize)> = None;
        for (at, chain) in chains.iter().enumerate() {
            let tip = chain.last().map_or(&[][..], |&last| &completions[last].prompt);
            if tip.len() > best.map_or(0, |(_, length)| length) && completion.prompt.starts_with(tip) {
                best = Some((at, tip.len()));
            }
        }
        match best {
            Some((at, _)) => chains[at].push(i),
            None => chains.push(vec![i]),
        }
    }
    chains
}

/// The id that ends a turn of this chain: the configured one, else the last id of the first reply that ended by itself.
fn end_of_turn(chain: &[&Completion<'_>], configured: Option<u32>) -> Option<u32> {
    configured.or_else(|| {
        let ended = |c: &&&Completion<'_>| {
            matches!(c.finish_reason.as_ref().and_then(Str::as_str), Some("stop" | "tool_calls" | "stop_sequence"))
                && !c.response.is_empty()
        };
        chain.iter().find(ended).and_then(|c| c.response.last().copied())
    })
}

/// Merges a chain as far as it can be merged.
pub(super) fn walk<'v>(chain: &[&Completion<'v>], configured: Option<u32>) -> Merged<'v> {
    let end = end_of_turn(chain, configured);
    let mut stream = Stream::default();
    let mut previous: Option<&Completion<'v>> = None;
    let mut consumed = 0;
    let mut count = 0;
    for &completion in chain {
        if let Some(previous) = previous {
            let Some(between) = interstitial(previous, completion, end) else { break };
            stream.interstitial(between);
            if let Some(new) = completion.prompt_messages.get(consumed..) {
                stream.messages.extend_from_slice(new);
                consumed += new.len();
            }
        } else {
            consumed = completion.prompt_messages.len();
        }
        stream.sampled(completion);
        consumed += usize::from(completion.reply.is_some());
        previous = Some(completion);
        count += 1;
    }
    stream.finish(count)
}

/// What stands in the prompt between the previous reply and this one; `None` when the end of that reply is not found.
fn interstitial<'c>(previous: &Completion<'_>, next: &'c Completion<'_>, end: Option<u32>) -> Option<&'c [u32]> {
    // Grouping has compared the prompts already: the one is a prefix of the other.
    let tail = next.prompt.get(previous.prompt.len()..)?;
    let end = end?;
    let at = tail.iter().position(|&id| id == end)?;
    // A reply that was cut did not sample the id which closes it; in the history it is there all the same.
    let from = if previous.response.last() == Some(&end) { at + 1 } else { at };
    tail.get(from..)
}

#[derive(Default)]
struct Stream<'v> {
    response: Vec<u32>,
    mask: Vec<u32>,
    logprobs: Vec<f64>,
    has_logprobs: bool,
    lacks_logprobs: bool,
    messages: Vec<ValueRef<'v>>,
}

impl<'v> Stream<'v> {
    fn interstitial(&mut self, ids: &[u32]) {
        self.push(ids, 0);
        self.logprobs.resize(self.response.len(), 0.0);
    }

    fn sampled(&mut self, completion: &Completion<'v>) {
        self.push(&completion.response, 1);
        match &completion.logprobs {
            Some(logprobs) => {
                self.has_logprobs |= !logprobs.is_empty();
                self.logprobs.extend_from_slice(logprobs);
            }
            None => {
                self.lacks_logprobs |= !completion.response.is_empty();
                self.logprobs.resize(self.response.len(), 0.0);
            }
        }
        self.messages.extend(completion.reply);
    }

    fn push(&mut self, ids: &[u32], mask: u32) {
        self.response.extend_from_slice(ids);
        self.mask.resize(self.response.len(), mask);
    }

    fn finish(self, count: usize) -> Merged<'v> {
        Merged {
            count,
            response: self.response,
            mask: self.mask,
            logprobs: (self.has_logprobs && !self.lacks_logprobs).then_some(self.logprobs),
            response_messages: self.messages,
        }
    }
}
