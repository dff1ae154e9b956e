//! One trajectory from the completions of a session (sections 10 and 11).
//!
//! Building never fails on content: what cannot be read is a finding, and the trajectory is `ERROR` with everything that
//! could be read.

mod certificate;
mod chain;
mod chains;
mod context;
mod control;
mod extract;
mod findings;
mod ids;
mod merger;
mod messages;
mod order;
mod output;
mod place;
pub(crate) mod reading;
mod reference;
mod session;
mod template;
mod units;

use std::sync::Arc;

use crate::json::{Value, ValueRef};
use crate::tokens::TokenText;

pub use context::ContextKind;
pub(crate) use ids::Ids;
use merger::Merger;
use session::{Header, is_object};

/// How completions are joined into one context (section 11.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Continuity {
    /// A context that is not, id for id, what was merged before it opens a trace of its own.
    Exact,
    /// As [`Continuity::Exact`], but a context that says the same in other tokens is merged too; the trace keeps the
    /// tokens that were sampled. Telling so needs [`Options::tokenizer`].
    #[default]
    SameText,
    /// Prompts are compared with prompts only, and a reply ends at the first end-of-turn id (section 11.4). A trajectory
    /// has no certificate.
    Reference,
}

impl Continuity {
    /// The name as it stands in configurations, on command lines and in certificates.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::SameText => "same_text",
            Self::Reference => "reference",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Exact, Self::SameText, Self::Reference].into_iter().find(|mode| mode.name() == name)
    }
}

/// How to build a trajectory.
#[derive(Debug, Clone)]
pub struct Options {
    /// How completions are joined.
    pub continuity: Continuity,
    /// The token id that ends a turn. Only [`Continuity::Reference`] looks for it, where it is found per chain when it
    /// is not known; a finding says in every mode that it was not configured.
    pub end_of_turn_token_id: Option<i64>,
    /// Ids that the template writes before a turn but not into its history; empty = none. Only
    /// [`Continuity::Reference`] puts them back; for the others such a context differs by its template.
    pub glue_ids: Vec<i64>,
    /// What ids say. Without it a context in other ids is `inexact`: nothing can tell how it differs.
    pub tokenizer: Option<Arc<dyn TokenText>>,
    /// What opens and closes reasoning in a reply, as text.
    pub reasoning_markers: (String, String),
    /// Whether a forked session is wanted: then S10 and S11 are counted in the certificate and are no findings.
    pub allow_forks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            continuity: Continuity::default(),
            end_of_turn_token_id: None,
            glue_ids: Vec::new(),
            tokenizer: None,
            reasoning_markers: ("<think>".to_owned(), "</think>".to_owned()),
            allow_forks: false,
        }
    }
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
/// ([`crate::engine::normalize_whole`], for [`Continuity::Reference`] [`crate::engine::normalize_response`]); it is not
/// changed. Records are taken in the order of their arrival: by `sequence`, else by time, else as they stand.
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
    let session = session.as_ref();
    if !is_object(session) {
        return Err(BuildError::NotAnObject);
    }
    let header = Header::read(session);
    let completions: Vec<ValueRef<'_>> = header.completions().collect();
    if options.continuity == Continuity::Reference {
        return Ok(reference::build(header, completions.into_iter(), options));
    }
    let mut merger = Merger::new(options.clone());
    for at in order::of_arrival(&completions) {
        merger.push(completions[at], at);
    }
    Ok(merger.finish(&header))
}

/// A trajectory under construction, one completion at a time.
///
/// The state holds each token and message once, however often the records repeat them, so the memory is that of the
/// trajectory, and what is left to do at the end is to write it out. For records in order of arrival the result is
/// that of [`build`].
///
/// [`Continuity::Reference`] needs all records at once: there they are kept, and the work is done at the end.
///
/// ```
/// use gsj_trace::json::Value;
/// use gsj_trace::reconstruct::{Incremental, Options};
///
/// let mut session = Incremental::new(Options::default());
/// let record = Value::parse(
///     br#"{"completion_id": "c0", "response": {"choices": [{"input_token_ids": [1, 2], "token_ids": [3, 9]}]}}"#,
/// )?;
/// session.push(record.as_ref());
/// let header = Value::parse(br#"{"session_id": "s"}"#)?;
/// let trajectory = session.finish(header.as_ref());
/// assert_eq!(trajectory.pointer("/traces/0/response_ids").map(|ids| ids.to_json()), Some("[3,9]".to_owned()));
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Incremental(State);

#[derive(Debug)]
enum State {
    Merging { merger: Box<Merger>, count: usize },
    Keeping { options: Options, records: Vec<Value<'static>> },
}

impl Incremental {
    /// A session without completions.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self(if options.continuity == Continuity::Reference {
            State::Keeping { options, records: Vec::new() }
        } else {
            State::Merging { merger: Box::new(Merger::new(options)), count: 0 }
        })
    }

    /// Takes the next completion, a record as in section 10.1; anything else becomes a finding.
    pub fn push(&mut self, record: ValueRef<'_>) {
        match &mut self.0 {
            State::Merging { merger, count } => {
                merger.push(record, *count);
                *count += 1;
            }
            State::Keeping { records, .. } => records.push(record.to_owned()),
        }
    }

    /// Writes the trajectory; `header` is the session without its completions, which are not looked at.
    #[must_use]
    pub fn finish(self, header: ValueRef<'_>) -> Value<'static> {
        let header = Header::read(header);
        match self.0 {
            State::Merging { merger, .. } => merger.finish(&header),
            State::Keeping { options, records } => {
                reference::build(header, records.iter().map(Value::as_ref), &options)
            }
        }
    }
}
