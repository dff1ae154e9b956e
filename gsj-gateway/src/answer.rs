//! What an engine's answer holds, and what of it the agent gets.

use gsj_trace::engine::{Dialect, normalize_whole};
use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::sse::{SseEvent, SseParser};
use gsj_trace::stream::StreamAssembler;

use crate::prepare::Wants;

/// The end of every stream.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Complete {
    /// Normalised (`checks.md` section 12.2), as JSON.
    pub(crate) response: String,
    /// What the agent has still to get.
    pub(crate) reply: Vec<u8>,
    /// How many tokens were sampled.
    pub(crate) tokens: usize,
    pub(crate) evidence: Evidence,
    pub(crate) model_used: Option<String>,
}

/// Which of the things that a trace needs an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    Full,
    NoTokenIds,
    NoLogprobs,
}

impl Complete {
    /// Takes an engine's unstreamed answer; the error says why it is no whole answer.
    pub(crate) fn from_whole(dialect: Dialect, body: &[u8], wants: Wants) -> Result<Self, String> {
        let value = Value::parse(body).map_err(|e| format!("its answer is not JSON: {e}"))?;
        let finished = value.pointer("/choices/0/finish_reason").is_some_and(|reason| !reason.is_null());
        if !finished {
            return Err("its answer has no finish reason".to_owned());
        }
        Ok(Self::of(dialect, value, wants, None))
    }

    /// `held` is the rest of a stream whose beginning the agent has.
    fn of(dialect: Dialect, mut value: Value<'_>, wants: Wants, held: Option<Vec<u8>>) -> Self {
        normalize_whole(dialect, &mut value);
        let (evidence, tokens) = evidence(&value);
        let model_used = value.get("model").and_then(ValueRef::as_str).map(str::to_owned);
        let response = value.to_json();
        let reply = held.unwrap_or_else(|| {
            clean(&mut value, wants);
            if wants.stream { single_chunk(value, wants) } else { value.to_json().into_bytes() }
        });
        Self { response, reply, tokens, evidence, model_used }
    }
}

fn evidence(response: &Value<'_>) -> (Evidence, usize) {
    let filled = |value: Option<ValueRef<'_>>| value.and_then(ValueRef::as_array).map_or(0, |list| list.len());
    let choice = response.pointer("/choices/0");
    let of_choice = |key: &str| filled(choice.and_then(|choice| choice.get(key)));
    let prompt =
        of_choice("input_token_ids").max(of_choice("prompt_token_ids")).max(filled(response.get("prompt_token_ids")));
    let entries = choice.and_then(|choice| choice.get("logprobs")).and_then(|l| l.get("content"));
    let stamped = entries.and_then(|e| e.index(0)).is_some_and(|e| e.get("token_id").is_some());
    // SGLang's pairs of logprob and id are kept where the entries do not say as much.
    let pairs = filled(choice.and_then(|choice| choice.pointer("/meta_info/output_token_logprobs")));
    let listed = of_choice("token_ids").max(filled(response.get("token_ids"))).max(pairs);
    let tokens = if listed == 0 && stamped { filled(entries) } else { listed };
    // An answer may be empty: then there is nothing to have ids of.
    let empty = response.pointer("/usage/completion_tokens").and_then(ValueRef::as_i64) == Some(0);
    let evidence = if prompt == 0 || (tokens == 0 && !empty) {
        Evidence::NoTokenIds
    } else if tokens > 0 && filled(entries) == 0 && pairs == 0 {
        Evidence::NoLogprobs
    } else {
        Evidence::Full
    };
    (evidence, tokens)
}

/// Takes out what the agent did not ask for, and gives reasoning the name that agents know.
fn clean(value: &mut Value<'_>, wants: Wants) {
    let Some(members) = value.as_object_mut() else { return };
    remove_ids(members, wants);
    for choice in members.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(members) = choice.as_object_mut() else { continue };
        remove_ids(members, wants);
        if !wants.logprobs && members.get("logprobs").is_some_and(|v| !v.is_null()) {
            members.remove("logprobs");
        }
        if !wants.meta_info {
            members.remove("meta_info");
        }
        for key in ["message", "delta"] {
            let Some(message) = members.get_mut(key).and_then(Value::as_object_mut) else { continue };
            if message.get("reasoning_content").is_none_or(ValueRef::is_null)
                && let Some(reasoning) = message.remove("reasoning")
            {
                message.insert("reasoning_content", reasoning);
            }
        }
    }
}

fn remove_ids(members: &mut Object<'_>, wants: Wants) {
    if !wants.token_ids {
        members.remove("token_ids");
    }
    if !wants.prompt_ids {
        members.remove("prompt_token_ids");
        members.remove("input_token_ids");
    }
}

/// A cleaned whole answer as a stream: one chunk, the usage if asked for, the end.
fn single_chunk(mut answer: Value<'_>, wants: Wants) -> Vec<u8> {
    let usage = answer.as_object_mut().and_then(|members| {
        members.insert("object", "chat.completion.chunk");
        members.remove("usage")
    });
    for choice in answer.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(members) = choice.as_object_mut() else { continue };
        let Some(mut message) = members.remove("message") else { continue };
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (index, call) in calls.into_iter().flatten().enumerate() {
            if let Some(call) = call.as_object_mut() {
                call.insert("index", index);
            }
        }
        members.insert("delta", message);
    }
    let mut out = Vec::new();
    push_event(&mut out, None, &answer);
    if let Some(usage) = usage.filter(|_| wants.usage)
        && let Some(members) = answer.as_object_mut()
    {
        members.insert("choices", Vec::<Value<'_>>::new());
        members.insert("usage", usage);
        push_event(&mut out, None, &answer);
    }
    out.extend_from_slice(DONE);
    out
}

fn push_event(out: &mut Vec<u8>, name: Option<&str>, data: &Value<'_>) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.to_json().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// An engine's streamed answer while it comes.
///
/// Events pass on as they come up to the one that carries a finish reason. That one and what
/// follows are held, because the call's record must be written before the answer can end.
#[derive(Debug)]
pub(crate) struct Reading {
    wants: Wants,
    parser: SseParser,
    assembler: StreamAssembler,
    held: Vec<u8>,
    finishing: bool,
    done: bool,
}

impl Reading {
    pub(crate) fn new(wants: Wants) -> Self {
        Self {
            wants,
            parser: SseParser::new(),
            assembler: StreamAssembler::new(),
            held: Vec::new(),
            finishing: false,
            done: false,
        }
    }

    /// Takes the next bytes; gives what can pass on to the agent. The error says what is wrong
    /// with the stream.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        for event in self.parser.push(bytes) {
            self.event(&event, &mut out)?;
        }
        Ok(out)
    }

    /// Whether the engine said that nothing more comes.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Ends the stream. The error says why what came is no whole answer.
    pub(crate) fn finish(mut self, dialect: Dialect) -> Result<Complete, String> {
        if let Some(event) = self.parser.finish() {
            let mut out = Vec::new();
            self.event(&event, &mut out)?;
            self.held.splice(0..0, out);
        }
        if !self.assembler.is_complete() {
            return Err("its stream ended before the answer did".to_owned());
        }
        let held = self.wants.stream.then(|| {
            self.held.extend_from_slice(DONE);
            self.held
        });
        Ok(Complete::of(dialect, self.assembler.finish(), self.wants, held))
    }

    fn event(&mut self, event: &SseEvent, out: &mut Vec<u8>) -> Result<(), String> {
        if self.done {
            return Ok(());
        }
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            if self.wants.stream && !self.finishing {
                out.extend_from_slice(&event.raw);
            }
            return Ok(());
        }
        let mut chunk =
            Value::parse(data.as_bytes()).map_err(|e| format!("an event of its stream is not JSON: {e}"))?;
        self.assembler.push(chunk.as_ref());
        if let Some(error) = self.assembler.error() {
            let told = error.get("message").and_then(ValueRef::as_str);
            let told = told.map_or_else(|| error.to_json(), str::to_owned);
            return Err(format!("it broke off its answer with the error `{told}`"));
        }
        if !self.wants.stream {
            return Ok(());
        }
        let choices = chunk.get("choices").and_then(ValueRef::as_array);
        let finishes = choices.is_some_and(|list| {
            list.iter().any(|choice| choice.get("finish_reason").is_some_and(|reason| !reason.is_null()))
        });
        self.finishing |= finishes;
        let bare = choices.is_none_or(|list| list.is_empty());
        if bare && !self.wants.usage && chunk.get("usage").is_some() {
            return Ok(());
        }
        clean(&mut chunk, self.wants);
        push_event(if self.finishing { &mut self.held } else { out }, event.event.as_deref(), &chunk);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning":"hm","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls","logprobs":{"content":[{"token":"a","logprob":-0.5}]},"token_ids":[7]}],"prompt_token_ids":[1,2],"usage":{"completion_tokens":1}}"#;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_whole_answer_is_recorded_in_full_and_given_bare() {
        let answer = Complete::from_whole(Dialect::Vllm, WHOLE.as_bytes(), Wants::default()).unwrap();
        assert_eq!((answer.evidence, answer.tokens), (Evidence::Full, 1));
        assert!(answer.response.contains(r#""token_id":7"#) && answer.response.contains(r#""prompt_token_ids":[1,2]"#));
        assert_eq!(
            text(&answer.reply),
            r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"hm"},"finish_reason":"tool_calls"}],"usage":{"completion_tokens":1}}"#
        );
    }

    #[test]
    fn a_whole_answer_can_be_given_as_a_stream() {
        let wants = Wants { stream: true, usage: true, ..Wants::default() };
        let answer = Complete::from_whole(Dialect::Vllm, WHOLE.as_bytes(), wants).unwrap();
        assert_eq!(
            text(&answer.reply),
            concat!(
                r#"data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"index":0}],"reasoning_content":"hm"}}]}"#,
                "\n\n",
                r#"data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"completion_tokens":1}}"#,
                "\n\ndata: [DONE]\n\n"
            )
        );
    }

    #[test]
    fn a_stream_passes_on_at_once_until_it_finishes() {
        let wants = Wants { stream: true, ..Wants::default() };
        let mut reading = Reading::new(wants);
        let first = reading
            .take(b"data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"r\"},\"token_ids\":[5],\"logprobs\":{\"content\":[{\"logprob\":-1.0}]}}],\"prompt_token_ids\":[1]}\n\ndata: {\"cho")
            .unwrap();
        assert_eq!(
            text(&first),
            "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"r\"}}]}\n\n"
        );
        let rest = b"ices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
        assert_eq!(text(&reading.take(rest).unwrap()), "", "the end waits for the record");
        assert!(reading.is_done());
        let answer = reading.finish(Dialect::Vllm).unwrap();
        assert_eq!(
            text(&answer.reply),
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            "the usage was not asked for"
        );
        assert_eq!((answer.evidence, answer.tokens), (Evidence::Full, 1));
    }

    #[test]
    fn half_an_answer_is_none() {
        let begun = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
        for end in ["", "data: [DONE]\n\n"] {
            let mut reading = Reading::new(Wants::default());
            reading.take(begun).unwrap();
            reading.take(end.as_bytes()).unwrap();
            assert!(reading.finish(Dialect::Vllm).is_err(), "no finish reason came");
        }
        let mut reading = Reading::new(Wants::default());
        reading.take(begun).unwrap();
        let error = reading.take(b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n").unwrap_err();
        assert!(error.contains("out of memory"), "{error}");
        assert!(Complete::from_whole(Dialect::Vllm, br#"{"choices":[{"message":{}}]}"#, Wants::default()).is_err());
    }

    #[test]
    fn missing_evidence_is_noticed() {
        let judge =
            |text: String| Complete::from_whole(Dialect::Vllm, text.as_bytes(), Wants::default()).unwrap().evidence;
        assert_eq!(judge(WHOLE.replace("[1,2]", "null")), Evidence::NoTokenIds);
        assert_eq!(judge(WHOLE.replace("[7]", "null")), Evidence::NoTokenIds);
        assert_eq!(judge(WHOLE.replace(r#"{"content":[{"token":"a","logprob":-0.5}]}"#, "null")), Evidence::NoLogprobs);
    }
}
