//! A session result as a person reads it: who ran what, the turns, and which tokens are trained on.

mod render;

use crate::json::{Array, Value, ValueRef};
use crate::reconstruct::ContextKind;

pub use render::{render, wrap};

/// What is shown of a session result; every part is as stated by the result, and absent where it says nothing.
///
/// ```
/// use gsj_trace::json::Value;
/// use gsj_trace::outline::{Outline, render};
///
/// let result = Value::parse(br#"{"session_id": "s1", "status": "ERROR", "error": "no_model_call"}"#)?;
/// let outline = Outline::of(&result);
/// assert_eq!(outline.header.status.as_deref(), Some("ERROR"));
/// assert!(render(&outline, 100).contains("no_model_call"));
/// # Ok::<(), gsj_trace::json::ReadError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Outline {
    /// Who ran what.
    pub header: Header,
    /// One entry per trace.
    pub traces: Vec<TraceOutline>,
    /// What the quarantine says, when the document is one of its files.
    pub quarantine_findings: Option<Vec<String>>,
    /// What the builder found; absent when the result does not say whether it found anything.
    pub builder_findings: Option<Vec<String>>,
    /// What the certificate says of all contexts; absent when there is none.
    pub fidelity: Option<Fidelity>,
    /// Sums over all traces.
    pub totals: Totals,
}

/// The certificate of a trajectory (section 11.6), in numbers of completions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fidelity {
    /// How completions were joined.
    pub continuity: Option<String>,
    /// Git blob id of the tokenizer that texts were compared by.
    pub tokenizer: Option<String>,
    /// Kind of context and how many completions had it, in the order of the section; kinds that never occurred are left
    /// out.
    pub kinds: Vec<(String, u64)>,
    /// How many completions there were.
    pub completions: Option<u64>,
}

/// Who ran what, where and with which outcome.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Header {
    /// The session.
    pub session_id: Option<String>,
    /// The task it belongs to.
    pub task_id: Option<String>,
    /// `COMPLETED`, `ERROR` or `TIMEOUT`.
    pub status: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// The case.
    pub case_id: Option<String>,
    /// The last page that the agent could see.
    pub timestep: Option<String>,
    /// `free` or `skill:<name>`.
    pub prompt_source: Option<String>,
    /// The model, as the engine names it.
    pub model: Option<String>,
    /// The engine with its version.
    pub engine: Option<String>,
    /// The agent with its version.
    pub agent: Option<String>,
    /// The sandbox with its version and network.
    pub sandbox: Option<String>,
    /// What the checkout held.
    pub checkout: Option<String>,
    /// Stage and milliseconds, in the order of the result.
    pub timing_ms: Vec<(String, f64)>,
}

/// One trace.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TraceOutline {
    /// The turns in order, prompt messages first.
    pub turns: Vec<Turn>,
    /// The runs of trained tokens in order.
    pub spans: Vec<Span>,
    /// How many prompt ids there are.
    pub prompt_tokens: usize,
    /// How many response ids there are.
    pub response_tokens: usize,
    /// How the last completion ended.
    pub finish_reason: Option<String>,
    /// How many tools the agent offered the model.
    pub tools: usize,
    /// How many assistant messages the response has.
    pub replies: usize,
    /// The context that each merged completion was sampled from, in order; empty without a certificate.
    pub contexts: Vec<Context>,
}

/// The context that one completion was sampled from, compared with what the trace says before it (section 11.6).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// The completion.
    pub completion_id: String,
    /// `exact`, `retokenized`, `template`, `rewritten` or `inexact`.
    pub kind: String,
    /// How many ids of the context differ.
    pub differing_tokens: Option<u64>,
}

/// One message.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The whole text; parts of a message are joined with line feeds.
    pub text: String,
    /// The reasoning of an assistant message.
    pub reasoning: Option<String>,
    /// The calls of an assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// The tool whose result this is, found through the call's id.
    pub tool: Option<String>,
    /// The position in [`TraceOutline::spans`] of the tokens of this message, when there are as many spans as assistant
    /// messages in the response.
    pub span: Option<usize>,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id by which its result names it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

/// A run of tokens with mask 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The index of its first token in the response ids.
    pub start: usize,
    /// The index behind its last.
    pub end: usize,
    /// The lowest logprob, when there are logprobs.
    pub min_logprob: Option<f64>,
    /// The mean logprob, when there are logprobs.
    pub mean_logprob: Option<f64>,
}

impl Span {
    /// How many tokens it has.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.end - self.start
    }
}

/// Sums over all traces of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Assistant messages in the responses.
    pub assistant_turns: usize,
    /// Tool calls.
    pub tool_calls: usize,
    /// Prompt ids.
    pub prompt_tokens: usize,
    /// Response ids.
    pub response_tokens: usize,
    /// Response ids with mask 1.
    pub trained_tokens: usize,
}

impl Outline {
    /// Reads a session result, or a file of the quarantine around one. Never fails: what is missing is not shown.
    #[must_use]
    pub fn of(document: &Value<'_>) -> Self {
        let document = document.as_ref();
        let inner = document.get("session_result").filter(|inner| inner.as_object().is_some());
        let quarantine =
            inner.and(document.get("findings")).map(|found| elements(Some(found)).map(ValueRef::show).collect());
        let result = inner.unwrap_or(document);
        let traces: Vec<TraceOutline> = elements(result.pointer("/trajectory/traces")).map(TraceOutline::of).collect();
        Self {
            header: Header::of(result),
            quarantine_findings: quarantine,
            builder_findings: result
                .pointer("/trajectory/metadata/gsj_validation/findings")
                .map(|found| elements(Some(found)).map(ValueRef::show).collect()),
            fidelity: result.pointer("/trajectory/metadata/gsj_fidelity").and_then(Fidelity::of),
            totals: Totals::of(&traces),
            traces,
        }
    }
}

impl Fidelity {
    fn of(certificate: ValueRef<'_>) -> Option<Self> {
        certificate.as_object()?;
        let count = |key: &str| certificate.get(key)?.as_int()?.as_u64();
        // The samples that nobody used stand behind the kinds of a context.
        let names = ContextKind::ALL.into_iter().map(ContextKind::name).chain(["superseded"]);
        let kinds = names.filter_map(|name| Some((name.to_owned(), count(name)?)));
        Some(Self {
            continuity: shown(certificate.get("continuity")),
            tokenizer: shown(certificate.get("tokenizer")),
            kinds: kinds.filter(|(_, n)| *n > 0).collect(),
            completions: count("completions"),
        })
    }
}

impl Context {
    fn of(turn: ValueRef<'_>) -> Self {
        Self {
            completion_id: shown(turn.get("completion_id")).unwrap_or_default(),
            kind: shown(turn.get("kind")).unwrap_or_else(|| "?".to_owned()),
            differing_tokens: turn.get("differing_tokens").and_then(|n| n.as_int()?.as_u64()),
        }
    }
}

impl Header {
    fn of(result: ValueRef<'_>) -> Self {
        // The trace's own metadata says what it was made with; a result without traces only has the task's.
        let places = ["/trajectory/traces/0/metadata", "/trajectory/metadata/task_metadata", "/metadata"];
        let stated = |key: &str| places.iter().find_map(|place| shown(result.pointer(place)?.get(key)));
        let evidence = |key: &str| places.iter().find_map(|place| result.pointer(place)?.get(key));
        let versioned = |key: &str, name: &str, version: &str| {
            let found = evidence(key)?;
            let name = shown(found.get(name))?;
            Some(match shown(found.get(version)) {
                Some(version) if names(&version, &name) => version,
                Some(version) => format!("{name} {version}"),
                None => name,
            })
        };
        Self {
            session_id: shown(result.get("session_id")),
            task_id: shown(result.get("task_id")),
            status: shown(result.get("status")),
            error: shown(result.get("error")).or_else(|| shown(result.pointer("/trajectory/error"))),
            case_id: stated("case_id"),
            timestep: stated("timestep"),
            prompt_source: stated("prompt_source"),
            model: shown(result.pointer("/trajectory/metadata/model_used"))
                .or_else(|| shown(evidence("gsj_engine").and_then(|engine| engine.get("model")))),
            engine: versioned("gsj_engine", "kind", "version"),
            agent: versioned("gsj_agent", "name", "version"),
            sandbox: versioned("gsj_sandbox", "backend", "backend_version").map(|sandbox| {
                match shown(evidence("gsj_sandbox").and_then(|s| s.get("network"))) {
                    Some(network) => format!("{sandbox}, network {network}"),
                    None => sandbox,
                }
            }),
            checkout: evidence("gsj_workspace").and_then(checkout),
            timing_ms: result
                .get("timing")
                .and_then(ValueRef::as_object)
                .into_iter()
                .flat_map(|timing| timing.iter())
                .filter_map(|(key, value)| Some((key.escaped().trim_end_matches("_ms").to_owned(), value.as_f64()?)))
                .collect(),
        }
    }
}

/// Whether a version begins with the program's name, as in `vLLM 0.10.2` of `vllm`.
fn names(version: &str, name: &str) -> bool {
    version
        .split_at_checked(name.len())
        .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(name) && !rest.starts_with(char::is_alphanumeric))
}

/// The checkout's census in words.
fn checkout(workspace: ValueRef<'_>) -> Option<String> {
    let page = |key: &str| shown(workspace.get("pages").and_then(|pages| pages.get(key)));
    let commit: String = shown(workspace.get("commit"))?.chars().take(12).collect();
    let pages = match (page("count"), page("min"), page("max")) {
        (Some(count), Some(min), Some(max)) => format!(", {count} pages {min}..{max}"),
        _ => String::new(),
    };
    Some(format!("commit {commit}{pages}"))
}

impl TraceOutline {
    fn of(trace: ValueRef<'_>) -> Self {
        let count = |key: &str| trace.get(key).and_then(ValueRef::as_array).map_or(0, Array::len);
        let mut out = Self {
            turns: Vec::new(),
            spans: spans(trace),
            prompt_tokens: count("prompt_ids"),
            response_tokens: count("response_ids"),
            finish_reason: shown(trace.get("finish_reason")),
            tools: count("tools"),
            replies: 0,
            contexts: elements(trace.pointer("/metadata/gsj_fidelity/turns")).map(Context::of).collect(),
        };
        for message in elements(trace.get("prompt_messages")) {
            out.add(message);
        }
        let from = out.turns.len();
        for message in elements(trace.get("response_messages")) {
            out.add(message);
        }
        let replies: Vec<&mut Turn> = out.turns[from..].iter_mut().filter(|turn| turn.role == "assistant").collect();
        out.replies = replies.len();
        if replies.len() == out.spans.len() {
            for (i, turn) in replies.into_iter().enumerate() {
                turn.span = Some(i);
            }
        }
        out
    }

    fn add(&mut self, message: ValueRef<'_>) {
        let mut turn = Turn {
            role: shown(message.get("role")).unwrap_or_else(|| "?".to_owned()),
            text: text_of(message.get("content")),
            reasoning: shown(message.get("reasoning_content"))
                .or_else(|| shown(message.get("reasoning")))
                .filter(|text| !text.is_empty()),
            ..Turn::default()
        };
        turn.tool_calls = elements(message.get("tool_calls"))
            .map(|call| {
                let function = call.get("function").unwrap_or(call);
                ToolCall {
                    id: shown(call.get("id")).unwrap_or_default(),
                    name: shown(function.get("name")).unwrap_or_default(),
                    arguments: shown(function.get("arguments")).unwrap_or_default(),
                }
            })
            .collect();
        if let Some(id) = shown(message.get("tool_call_id")) {
            // The nearest earlier call with that id, since ids may come again.
            let calls = self.turns.iter().rev().flat_map(|earlier| earlier.tool_calls.iter().rev());
            turn.tool = calls.into_iter().find(|call| call.id == id).map(|call| call.name.clone());
        }
        self.turns.push(turn);
    }
}

/// The runs of mask 1 with the logprobs in them.
fn spans(trace: ValueRef<'_>) -> Vec<Span> {
    let logprobs: Vec<Option<f64>> = elements(trace.get("response_logprobs")).map(ValueRef::as_f64).collect();
    let mut out: Vec<Span> = Vec::new();
    let mut open = false;
    for (i, mask) in elements(trace.get("loss_mask")).enumerate() {
        let trained = mask.as_f64() == Some(1.0);
        if trained && !open {
            out.push(Span { start: i, ..Span::default() });
        }
        if let Some(span) = out.last_mut().filter(|_| trained) {
            span.end = i + 1;
        }
        open = trained;
    }
    for span in &mut out {
        let values = logprobs.get(span.start..span.end).unwrap_or_default();
        let values: Vec<f64> = values.iter().copied().flatten().collect();
        if values.len() == span.end - span.start {
            span.min_logprob = values.iter().copied().reduce(f64::min);
            span.mean_logprob = Some(values.iter().sum::<f64>() / values.len() as f64);
        }
    }
    out
}

impl Totals {
    fn of(traces: &[TraceOutline]) -> Self {
        let mut out = Self::default();
        for trace in traces {
            out.assistant_turns += trace.replies;
            out.tool_calls += trace.turns.iter().map(|turn| turn.tool_calls.len()).sum::<usize>();
            out.prompt_tokens += trace.prompt_tokens;
            out.response_tokens += trace.response_tokens;
            out.trained_tokens += trace.spans.iter().map(Span::tokens).sum::<usize>();
        }
        out
    }
}

/// The text of a message's content: a string, or the texts of its parts.
fn text_of(content: Option<ValueRef<'_>>) -> String {
    match content {
        None | Some(ValueRef::Null) => String::new(),
        Some(parts @ ValueRef::Array(_)) => {
            let texts: Vec<String> = elements(Some(parts))
                .map(|part| match part.get("text") {
                    Some(text) => text.show(),
                    None if part.as_str().is_some() => part.show(),
                    None => format!("[{}]", shown(part.get("type")).unwrap_or_else(|| "part".to_owned())),
                })
                .collect();
            texts.join("\n")
        }
        Some(other) => other.show(),
    }
}

fn shown(value: Option<ValueRef<'_>>) -> Option<String> {
    value.filter(|v| !v.is_null()).map(ValueRef::show)
}

fn elements<'v>(value: Option<ValueRef<'v>>) -> impl Iterator<Item = ValueRef<'v>> + use<'v> {
    value.and_then(ValueRef::as_array).into_iter().flat_map(|array| array.iter())
}
