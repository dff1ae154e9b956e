//! What of a trace is compared.

use std::ops::Range;

use super::{MessagePlace, RerenderError};
use crate::json::ValueRef;

/// A trace's ids, messages and turns.
pub(super) struct Trace<'t> {
    /// `prompt_ids`, then `response_ids`.
    pub(super) ids: Vec<u32>,
    /// How many of them are the prompt's.
    pub(super) prompt: usize,
    /// `prompt_messages`, then `response_messages`.
    pub(super) messages: Vec<ValueRef<'t>>,
    /// How many of them are the prompt's.
    pub(super) prompt_messages: usize,
    pub(super) tools: Option<ValueRef<'t>>,
    pub(super) turns: Vec<Turn>,
    pub(super) notes: Vec<String>,
}

/// One sampled reply.
pub(super) struct Turn {
    /// Its ids, counted from the start of the prompt.
    pub(super) reply: Range<usize>,
    /// Its message, counted from the first prompt message; none when replies and messages do not match up.
    pub(super) message: Option<usize>,
}

impl<'t> Trace<'t> {
    pub(super) fn read(trace: ValueRef<'t>) -> Result<Self, RerenderError> {
        let mut ids = ids(trace, "prompt_ids")?;
        let prompt = ids.len();
        ids.extend(self::ids(trace, "response_ids")?);
        if ids.is_empty() {
            return Err(RerenderError::Trace {
                field: "prompt_ids",
                what: "empty, and so is `response_ids`".to_owned(),
            });
        }
        let mut messages = messages(trace, "prompt_messages")?;
        let prompt_messages = messages.len();
        messages.extend(self::messages(trace, "response_messages")?);
        if messages.is_empty() {
            let what = "empty, and so is `response_messages`".to_owned();
            return Err(RerenderError::Trace { field: "prompt_messages", what });
        }
        let tools = trace.get("tools");
        let mut this = Self { ids, prompt, messages, prompt_messages, tools, turns: Vec::new(), notes: Vec::new() };
        this.find_turns(trace);
        Ok(this)
    }

    /// Each run of mask-1 entries is a reply; the n-th reply is the n-th assistant message of the response.
    fn find_turns(&mut self, trace: ValueRef<'_>) {
        let mask: Vec<bool> = trace
            .get("loss_mask")
            .and_then(ValueRef::as_array)
            .map(|mask| mask.iter().map(|value| value.as_f64() == Some(1.0) || value.as_bool() == Some(true)).collect())
            .unwrap_or_default();
        if mask.len() != self.ids.len() - self.prompt {
            let (mask, ids) = (mask.len(), self.ids.len() - self.prompt);
            self.notes
                .push(format!("turns cannot be told apart: `loss_mask` has {mask} entries for {ids} response ids"));
            return;
        }
        let mut at = self.prompt;
        for run in mask.chunk_by(|a, b| a == b) {
            let end = at + run.len();
            if run.first() == Some(&true) {
                self.turns.push(Turn { reply: at..end, message: None });
            }
            at = end;
        }
        let replies: Vec<usize> = (self.prompt_messages..self.messages.len()).filter(|at| self.is_reply(*at)).collect();
        if replies.len() == self.turns.len() {
            for (turn, message) in self.turns.iter_mut().zip(replies) {
                turn.message = Some(message);
            }
        } else {
            self.notes.push(format!(
                "replies cannot be matched with messages: {} sampled stretches, {} assistant messages",
                self.turns.len(),
                replies.len()
            ));
        }
    }

    fn is_reply(&self, at: usize) -> bool {
        self.messages.get(at).and_then(|message| message.get("role")).and_then(ValueRef::as_str) == Some("assistant")
    }

    /// Whether the log ends with an assistant message, as one that was finished does.
    pub(super) fn ends_with_reply(&self) -> bool {
        self.is_reply(self.messages.len().saturating_sub(1))
    }

    pub(super) fn place(&self, message: usize) -> Option<MessagePlace> {
        let role = self.messages.get(message)?.get("role").and_then(ValueRef::as_str).unwrap_or("?").to_owned();
        Some(match message.checked_sub(self.prompt_messages) {
            None => MessagePlace { field: "prompt_messages", index: message, role },
            Some(index) => MessagePlace { field: "response_messages", index, role },
        })
    }
}

fn ids(trace: ValueRef<'_>, field: &'static str) -> Result<Vec<u32>, RerenderError> {
    let wrong = |what: &str| RerenderError::Trace { field, what: what.to_owned() };
    let list = trace.get(field).ok_or_else(|| wrong("missing"))?.as_array().ok_or_else(|| wrong("no list"))?;
    if let Some(ids) = list.as_u32s() {
        return Ok(ids.to_vec());
    }
    let id = |(at, id): (usize, ValueRef<'_>)| {
        let what = || wrong(&format!("no list of token ids: entry {at} is {}", id.show()));
        id.as_int().and_then(|id| id.as_u32()).ok_or_else(what)
    };
    list.iter().enumerate().map(id).collect()
}

fn messages<'t>(trace: ValueRef<'t>, field: &'static str) -> Result<Vec<ValueRef<'t>>, RerenderError> {
    let wrong = |what: &str| RerenderError::Trace { field, what: what.to_owned() };
    let list = trace.get(field).ok_or_else(|| wrong("missing"))?.as_array().ok_or_else(|| wrong("no list"))?;
    match list.iter().position(|message| message.as_object().is_none()) {
        Some(at) => Err(wrong(&format!("no list of messages: entry {at} is not an object"))),
        None => Ok(list.iter().collect()),
    }
}
