//! A trace's messages rendered anew through a chat template, and their ids compared with the trace's.
//!
//! What a trainer computes on a trace is only right when the messages, the template and the tokenizer that are pinned
//! give the very ids that the trace holds. [`rerender`] says whether they do, and where not.

mod align;
mod clock;
mod encoder;
mod infer;
mod marks;
mod message;
mod python;
mod python_json;
mod report;
mod template;
mod text;
mod trace;

pub use clock::LocalTime;
pub use message::flat;
pub use python_json::Dumps;
pub use report::{Difference, MessagePlace, Part, Report, Side, TurnReport, Verdict};
pub use template::{ChatTemplate, RenderOptions, TemplateError};

use std::ops::Range;

use crate::json::ValueRef;
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::tokens::TokenText as _;
use align::{Gap, common_start};
use encoder::Encoder;
use template::Prepared;
use trace::Trace;

/// Ids of a difference that are shown.
const SHOWN: usize = 8;
/// Ids around a difference whose text is shown.
const AROUND: usize = 16;

/// Why a trace cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerenderError {
    /// A part of the trace is missing or of another type.
    #[error("`{field}` is {what}")]
    Trace {
        /// The member of the trace.
        field: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The messages cannot be rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The rendered text cannot be tokenized.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

/// Renders the messages of a trace and compares the ids with `prompt_ids` and `response_ids`.
///
/// The log is rendered whole, as history; what a template writes behind a finished reply is not expected in the trace,
/// which ends with the last sampled token. Each turn's prompt is rendered on its own beside that, with the opening of
/// the turn at its end, and compared with everything in front of the reply.
///
/// `enable_thinking`, which traces do not record, is found by trying unless `options.variables` has it.
/// `options.add_generation_prompt` is of no meaning here.
///
/// # Errors
/// When there is nothing to compare: no ids, no messages, or messages that the template or the tokenizer refuses.
pub fn rerender(
    trace: ValueRef<'_>,
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    options: &RenderOptions,
) -> Result<Report, RerenderError> {
    let trace = Trace::read(trace)?;
    let prepared = Prepared::new(&trace.messages, trace.tools, options)?;
    let (variables, inferred) = infer::variables(&trace, &prepared, tokenizer, template, options)?;
    let options = RenderOptions { variables, ..options.clone() };
    Comparison { trace: &trace, prepared: &prepared, tokenizer, template, options: &options, inferred }.run()
}

struct Comparison<'c> {
    trace: &'c Trace<'c>,
    prepared: &'c Prepared,
    tokenizer: &'c Tokenizer,
    template: &'c ChatTemplate,
    options: &'c RenderOptions,
    inferred: bool,
}

impl Comparison<'_> {
    fn run(&self) -> Result<Report, RerenderError> {
        let mut encoder = Encoder::new(self.tokenizer);
        let mut notes = self.trace.notes.clone();
        let prompts = self.prompts(&mut encoder, &mut notes)?;
        let open = !self.trace.ends_with_reply();
        let whole = self.render(self.trace.messages.len(), open)?;
        let mut rendered = encoder.encode(whole.clone())?.to_vec();
        let closing = if open { 0 } else { self.closing(&rendered) };
        rendered.truncate(rendered.len() - closing);
        let ids = &self.trace.ids;
        let gaps = align::gaps(ids, &rendered, self.tokenizer);
        let turns = self.turns(&prompts, &gaps);
        self.note(&gaps, &rendered, &mut notes);
        Ok(Report {
            verdict: gaps.iter().map(verdict).max().unwrap_or(Verdict::Equal),
            ids: ids.len(),
            rendered: rendered.len(),
            closing,
            differing: gaps.iter().map(|gap| gap.trace.len()).sum(),
            differing_rendered: gaps.iter().map(|gap| gap.rendered.len()).sum(),
            variables: self.options.variables.clone(),
            inferred: self.inferred,
            first: gaps.first().map(|gap| self.difference(gap, &rendered, &whole)),
            turns,
            notes,
        })
    }

    fn render(&self, messages: usize, prompt: bool) -> Result<String, TemplateError> {
        let messages = self.prepared.messages.get(..messages).unwrap_or(&self.prepared.messages);
        self.template.render_prepared(messages, self.prepared, prompt, self.options)
    }

    /// Each turn's prompt against what stands in front of its reply.
    fn prompts(
        &self,
        encoder: &mut Encoder<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Option<Verdict>>, RerenderError> {
        let mut out = Vec::new();
        let mut refused = false;
        for turn in &self.trace.turns {
            let Some(message) = turn.message else {
                out.push(None);
                continue;
            };
            match self.render(message, true) {
                Ok(text) => {
                    let context = self.trace.ids.get(..turn.reply.start).unwrap_or_default();
                    let prompt = encoder.encode(text)?;
                    out.push(Some(if prompt == context {
                        Verdict::Equal
                    } else if self.tokenizer.decode_bytes(prompt) == self.tokenizer.decode_bytes(context) {
                        Verdict::Retokenized
                    } else {
                        Verdict::Different
                    }));
                }
                Err(error) => {
                    if !refused {
                        notes.push(format!("a prompt could not be rendered on its own: {error}"));
                    }
                    refused = true;
                    out.push(None);
                }
            }
        }
        Ok(out)
    }

    /// How many ids at the end of a rendering the template writes behind a reply: blanks after the end of the turn,
    /// and the end itself when the trace's last reply was cut before it.
    fn closing(&self, rendered: &[u32]) -> usize {
        let is_control = |id: &u32| self.tokenizer.is_control(*id);
        let Some(end) = rendered.iter().rposition(is_control) else { return 0 };
        let after = rendered.get(end + 1..).unwrap_or_default();
        if !self.tokenizer.decode_bytes(after).iter().all(u8::is_ascii_whitespace) {
            return 0;
        }
        let finished = self.trace.ids.last().is_some_and(is_control);
        after.len() + usize::from(!finished)
    }

    fn turns(&self, prompts: &[Option<Verdict>], gaps: &[Gap]) -> Vec<TurnReport> {
        let mut start = 0;
        let last = self.trace.turns.len().saturating_sub(1);
        let mut out = Vec::new();
        for (at, turn) in self.trace.turns.iter().enumerate() {
            let end = turn.reply.end + usize::from(at == last);
            out.push(TurnReport {
                turn: at + 1,
                message: turn.message.and_then(|message| self.trace.place(message)),
                prompt_ids: turn.reply.start,
                reply_ids: turn.reply.len(),
                prompt: prompts.get(at).copied().flatten(),
                added: worst(gaps, start..turn.reply.start),
                reply: worst(gaps, turn.reply.start..end),
            });
            start = turn.reply.end;
        }
        out
    }

    fn difference(&self, gap: &Gap, rendered: &[u32], whole: &str) -> Difference {
        let at = gap.trace.start;
        let ids = &self.trace.ids;
        let found = self.trace.turns.iter().position(|turn| at < turn.reply.end);
        let (part, turn) = match found.and_then(|turn| Some((turn, self.trace.turns.get(turn)?))) {
            Some((turn, place)) if at >= place.reply.start => (Part::Reply, Some(turn)),
            Some((turn, _)) => (Part::Context, Some(turn)),
            None if at < ids.len() => (Part::Context, None),
            None => (Part::End, None),
        };
        let reply = turn.and_then(|turn| self.trace.turns.get(turn)?.message);
        let message = match part {
            Part::Reply => reply,
            Part::End => None,
            Part::Context => {
                self.message_at(turn, self.tokenizer.decode_bytes(&rendered[..gap.rendered.start]).len(), whole)
            }
        };
        let before = ids.get(at.saturating_sub(AROUND)..at).unwrap_or_default();
        Difference {
            position: at,
            turn: turn.map(|turn| turn + 1),
            part,
            message: message.and_then(|message| self.trace.place(message)),
            before: self.tokenizer.decode(before),
            trace: self.side(ids, &gap.trace),
            rendered: self.side(rendered, &gap.rendered),
        }
    }

    fn side(&self, ids: &[u32], differs: &Range<usize>) -> Side {
        let end = ids.len().min(differs.start + AROUND.max(differs.len().min(SHOWN)));
        Side {
            ids: ids.get(differs.clone()).unwrap_or_default().iter().copied().take(SHOWN).collect(),
            text: self.tokenizer.decode(ids.get(differs.start..end).unwrap_or_default()),
        }
    }

    /// The message that wrote a byte of the whole log: the first one without which the log ends before it.
    fn message_at(&self, turn: Option<usize>, offset: usize, whole: &str) -> Option<usize> {
        let reply = |turn: usize| self.trace.turns.get(turn)?.message;
        let first = turn.and_then(|turn| turn.checked_sub(1)).and_then(reply).map_or(0, |message| message + 1);
        let last = turn.and_then(reply).unwrap_or(self.trace.messages.len());
        (first..last).find(|message| {
            self.render(message + 1, false).is_ok_and(|text| common_start(text.as_bytes(), whole.as_bytes()) > offset)
        })
    }

    /// Says what a difference often comes from.
    fn note(&self, gaps: &[Gap], rendered: &[u32], notes: &mut Vec<String>) {
        let ids = &self.trace.ids;
        let unknown = ids.iter().filter(|id| self.tokenizer.bytes(**id).is_none()).count();
        if unknown > 0 {
            notes.push(format!(
                "{unknown} ids of the trace are not in this tokenizer's vocabulary: is it the model's own?"
            ));
        }
        let control = |ids: &[u32], at: usize| {
            let id = ids.get(at).copied().filter(|id| self.tokenizer.is_control(*id))?;
            Some(self.tokenizer.decode(&[id]))
        };
        if let Some(Gap { trace, rendered, .. }) = gaps.first()
            && *trace == (0..1)
            && rendered.is_empty()
            && let Some(token) = control(ids, 0)
        {
            notes.push(format!("the trace begins with {token}, which templates take from the variable bos_token"));
        }
        let ends = gaps.last().is_some_and(|gap| gap.trace.end == ids.len() && gap.rendered.end == rendered.len());
        if ends
            && let (Some(sampled), Some(written)) =
                (control(ids, ids.len().saturating_sub(1)), control(rendered, rendered.len().saturating_sub(1)))
            && sampled != written
        {
            notes.push(format!("the last reply was ended by {sampled}; the template writes {written}"));
        }
        let prompts_equal = !self.trace.turns.is_empty()
            && gaps.iter().all(|gap| self.trace.turns.last().is_some_and(|last| gap.trace.start >= last.reply.start));
        if prompts_equal && !gaps.is_empty() {
            notes.push(
                "everything in front of the last reply is equal: no token was sampled from another context".to_owned(),
            );
        }
    }
}

fn verdict(gap: &Gap) -> Verdict {
    if gap.same_text { Verdict::Retokenized } else { Verdict::Different }
}

/// The worst that gaps do to a stretch of the trace.
fn worst(gaps: &[Gap], within: Range<usize>) -> Verdict {
    let touches = |gap: &&Gap| {
        if gap.trace.is_empty() {
            within.contains(&gap.trace.start)
        } else {
            gap.trace.start < within.end && gap.trace.end > within.start
        }
    };
    gaps.iter().filter(touches).map(verdict).max().unwrap_or(Verdict::Equal)
}
