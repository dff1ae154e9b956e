//! What a comparison found.

use crate::json::{Array, Object, Value};

/// The answer for one trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same ids.
    Equal,
    /// Other ids that say the same text: what was sampled is not how the tokenizer cuts it.
    Retokenized,
    /// Another text.
    Different,
}

impl Verdict {
    /// `equal`, `retokenized`, `different`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Retokenized => "retokenized",
            Self::Different => "different",
        }
    }
}

/// How a trace's ids compare with those of its messages rendered anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The worst of what was found.
    pub verdict: Verdict,
    /// Ids of the trace: `prompt_ids` and `response_ids`.
    pub ids: usize,
    /// Ids of the rendering, those of `closing` not counted.
    pub rendered: usize,
    /// Ids that the template writes behind the last reply, where a trace ends: the line feed after the end of the
    /// turn, or the end itself when the reply was cut.
    pub closing: usize,
    /// Ids of the trace that the rendering does not have in their place.
    pub differing: usize,
    /// Ids of the rendering that the trace does not have in their place.
    pub differing_rendered: usize,
    /// The variables that the template was rendered with.
    pub variables: Object<'static>,
    /// Whether variables were found by trying which one gives the trace's first prompt.
    pub inferred: bool,
    /// The first place where the ids differ.
    pub first: Option<Difference>,
    /// The turns, in order.
    pub turns: Vec<TurnReport>,
    /// What else a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// A place where trace and rendering differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Position in the trace's ids, `prompt_ids` first.
    pub position: usize,
    /// The turn, from 1, that the position belongs to, when it belongs to one.
    pub turn: Option<usize>,
    /// What of the turn it belongs to.
    pub part: Part,
    /// The message whose text is there.
    pub message: Option<MessagePlace>,
    /// The text before it, the same on both sides.
    pub before: String,
    /// The trace's side.
    pub trace: Side,
    /// The rendering's side.
    pub rendered: Side,
}

/// The part of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What the model was given.
    Context,
    /// What the model said.
    Reply,
    /// Behind the last reply.
    End,
}

impl Part {
    /// `context`, `reply`, `end`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Reply => "reply",
            Self::End => "end",
        }
    }
}

/// Where a message stands in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePlace {
    /// `prompt_messages` or `response_messages`.
    pub field: &'static str,
    /// Position in that list.
    pub index: usize,
    /// The message's role, `?` when it has none.
    pub role: String,
}

impl std::fmt::Display for MessagePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}] ({})", self.field, self.index, self.role)
    }
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The first ids that differ; none when this side ends there.
    pub ids: Vec<u32>,
    /// Their text and a little more.
    pub text: String,
}

/// How one turn compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// The turn, from 1.
    pub turn: usize,
    /// The reply's message.
    pub message: Option<MessagePlace>,
    /// Ids in front of the reply.
    pub prompt_ids: usize,
    /// Ids of the reply.
    pub reply_ids: usize,
    /// The prompt of this turn, rendered on its own with the opening of the turn at its end, against everything in
    /// front of the reply; `None` when it could not be rendered.
    pub prompt: Option<Verdict>,
    /// What is new in front of the reply since the last one, in the rendering of the whole log.
    pub added: Verdict,
    /// The reply in the rendering of the whole log.
    pub reply: Verdict,
}

impl Report {
    /// The report as JSON, for programs.
    #[must_use]
    pub fn to_value(&self) -> Value<'static> {
        Value::Object(Object::from_iter([
            ("verdict", Value::from(self.verdict.name())),
            ("ids", self.ids.into()),
            ("rendered", self.rendered.into()),
            ("closing", self.closing.into()),
            ("differing", self.differing.into()),
            ("differing_rendered", self.differing_rendered.into()),
            ("variables", Value::Object(self.variables.clone())),
            ("inferred", self.inferred.into()),
            ("first", self.first.as_ref().map(Difference::to_value).into()),
            ("turns", self.turns.iter().map(TurnReport::to_value).collect::<Value<'_>>()),
            ("notes", Value::Array(self.notes.iter().cloned().collect::<Array<'_>>())),
        ]))
    }
}

impl Difference {
    fn to_value(&self) -> Value<'static> {
        Value::Object(Object::from_iter([
            ("position", Value::from(self.position)),
            ("turn", self.turn.into()),
            ("part", self.part.name().into()),
            ("message", place(self.message.as_ref())),
            ("before", self.before.clone().into()),
            ("trace", self.trace.to_value()),
            ("rendered", self.rendered.to_value()),
        ]))
    }
}

impl Side {
    fn to_value(&self) -> Value<'static> {
        Value::Object(Object::from_iter([("ids", Value::from(&*self.ids)), ("text", self.text.clone().into())]))
    }
}

impl TurnReport {
    fn to_value(&self) -> Value<'static> {
        Value::Object(Object::from_iter([
            ("turn", Value::from(self.turn)),
            ("message", place(self.message.as_ref())),
            ("prompt_ids", self.prompt_ids.into()),
            ("reply_ids", self.reply_ids.into()),
            ("prompt", self.prompt.map(Verdict::name).into()),
            ("added", self.added.name().into()),
            ("reply", self.reply.name().into()),
        ]))
    }
}

fn place(message: Option<&MessagePlace>) -> Value<'static> {
    message.map_or(Value::Null, |place| {
        Value::Object(Object::from_iter([
            ("field", Value::from(place.field)),
            ("index", place.index.into()),
            ("role", place.role.clone().into()),
        ]))
    })
}
