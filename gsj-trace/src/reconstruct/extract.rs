//! What one record says of its completion (section 10.2).

use std::borrow::Cow;

use crate::json::{Str, ValueRef};

use super::ids::{Ids, NotANumber, float_of};
use super::session::{Record, elements, is_array};

/// Ids with a logprob each.
type Paired = (Vec<u32>, Vec<f64>);

/// One completion, read.
#[derive(Default)]
pub(super) struct Completion<'v> {
    /// The context that the engine was given.
    pub(super) prompt: Cow<'v, [u32]>,
    /// What it sampled.
    pub(super) response: Cow<'v, [u32]>,
    /// One per sampled id, or none at all.
    pub(super) logprobs: Option<Vec<f64>>,
    pub(super) prompt_messages: Vec<ValueRef<'v>>,
    pub(super) reply: Option<ValueRef<'v>>,
    pub(super) tools: Vec<ValueRef<'v>>,
    pub(super) finish_reason: Option<Str<'static>>,
    /// Content on which the reference fails, as `id:slug` and detail without the completion's id.
    pub(super) faults: Vec<Fault>,
}

/// Content that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    PromptId(usize),
    ResponseId(usize),
    Logprob(usize),
}

impl<'v> Completion<'v> {
    pub(super) fn read(record: &Record<'v>, ids: &mut Ids) -> Self {
        let choice = record.choice();
        let mut out = Self {
            prompt_messages: record.messages(),
            reply: record.reply(),
            tools: record.tools(),
            finish_reason: record.finish_reason(),
            ..Self::default()
        };
        out.read_prompt(record, choice, ids);
        out.read_response(record, choice, ids);
        out
    }

    fn read_prompt(&mut self, record: &Record<'v>, choice: ValueRef<'v>, ids: &mut Ids) {
        let listed =
            [choice.get("input_token_ids"), choice.get("prompt_token_ids"), record.response.get("prompt_token_ids")]
                .into_iter()
                .flatten()
                .find(|v| v.truthy());
        if let Some(plain) = listed.and_then(Ids::plain) {
            self.prompt = Cow::Borrowed(plain);
            return;
        }
        let mut prompt = Vec::new();
        for (i, element) in elements(listed).enumerate() {
            if let Ok(id) = ids.strict(element) {
                prompt.push(id);
            } else {
                self.faults.push(Fault::PromptId(i));
                return;
            }
        }
        self.prompt = Cow::Owned(prompt);
    }

    fn read_response(&mut self, record: &Record<'v>, choice: ValueRef<'v>, ids: &mut Ids) {
        // A null in the choice hides the list of the response.
        let listed = choice.get("token_ids").or_else(|| record.response.get("token_ids"));
        let listed = listed.filter(|v| is_array(*v)).and_then(|list| self.listed(list, ids));
        let content = choice.get("logprobs").and_then(|l| l.get("content"));
        let meta = choice.get("meta_info").and_then(|m| m.get("output_token_logprobs"));
        for (source, pair) in [(content, content_pair as PairOf), (meta, meta_pair as PairOf)] {
            let Some((paired, logprobs)) = self.paired(source, pair, ids) else { continue };
            match &listed {
                Some(listed) if **listed != *paired => {}
                _ => {
                    self.response = Cow::Owned(paired);
                    self.logprobs = Some(logprobs);
                    return;
                }
            }
        }
        self.response = listed.unwrap_or_default();
    }

    /// The listed ids, or nothing when one of them is none.
    fn listed(&mut self, list: ValueRef<'v>, ids: &mut Ids) -> Option<Cow<'v, [u32]>> {
        if let Some(plain) = Ids::plain(list) {
            return Some(Cow::Borrowed(plain));
        }
        let mut out = Vec::new();
        for (i, element) in elements(Some(list)).enumerate() {
            match ids.coerced(element) {
                Ok(id) => out.push(id),
                Err(NotANumber::Other) => return None,
                Err(NotANumber::Overflow) => {
                    self.faults.push(Fault::ResponseId(i));
                    return None;
                }
            }
        }
        Some(Cow::Owned(out))
    }

    /// The ids and logprobs of one place of the answer, or nothing when one element is unusable.
    fn paired(&mut self, list: Option<ValueRef<'v>>, pair: PairOf, ids: &mut Ids) -> Option<Paired> {
        let mut out = Paired::default();
        for (i, element) in elements(list).enumerate() {
            let (id, logprob) = pair(element)?;
            let id = ids.coerced(id).map_err(|e| (e, Fault::ResponseId(i)));
            let logprob = float_of(logprob).map_err(|e| (e, Fault::Logprob(i)));
            match (id, logprob) {
                (Ok(id), Ok(logprob)) => {
                    out.0.push(id);
                    out.1.push(logprob);
                }
                (Err((why, fault)), _) | (_, Err((why, fault))) => {
                    if why == NotANumber::Overflow {
                        self.faults.push(fault);
                    }
                    return None;
                }
            }
        }
        (!out.0.is_empty()).then_some(out)
    }
}

type PairOf = for<'v> fn(ValueRef<'v>) -> Option<(ValueRef<'v>, ValueRef<'v>)>;

fn content_pair(entry: ValueRef<'_>) -> Option<(ValueRef<'_>, ValueRef<'_>)> {
    given(entry.get("token_id"), entry.get("logprob"))
}

fn meta_pair(entry: ValueRef<'_>) -> Option<(ValueRef<'_>, ValueRef<'_>)> {
    if is_array(entry) {
        return given(entry.index(1), entry.index(0));
    }
    given(entry.get("token_id"), entry.get("logprob").or_else(|| entry.get("token_logprob")))
}

fn given<'v>(id: Option<ValueRef<'v>>, logprob: Option<ValueRef<'v>>) -> Option<(ValueRef<'v>, ValueRef<'v>)> {
    Some((id.filter(|v| !v.is_null())?, logprob.filter(|v| !v.is_null())?))
}
