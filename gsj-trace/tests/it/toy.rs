//! A small vocabulary, and sessions written in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Options, build};
use gsj_trace::tokens::TokenText;

/// The control token that ends a turn.
pub(crate) const END: u32 = 1001;

const WORDS: [(&str, bool); 8] = [
    ("<s>", true),
    ("<e>", true),
    ("<think>", false),
    ("</think>", false),
    ("Hello", false),
    ("lo wor", false),
    ("assistant\n", false),
    ("\n\n", false),
];

/// Ids below 256 are bytes, from 1000 on they are words.
#[derive(Debug)]
pub(crate) struct Toy(Vec<u8>);

impl Toy {
    pub(crate) fn new() -> Self {
        Self((0..=255).collect())
    }
}

impl TokenText for Toy {
    fn bytes(&self, id: u32) -> Option<&[u8]> {
        let at = usize::try_from(id).ok()?;
        match at.checked_sub(1000) {
            None => self.0.get(at..=at),
            Some(at) => WORDS.get(at).map(|(word, _)| word.as_bytes()),
        }
    }

    fn is_control(&self, id: u32) -> bool {
        id.checked_sub(1000).and_then(|at| WORDS.get(usize::try_from(at).ok()?)).is_some_and(|(_, control)| *control)
    }

    fn identity(&self) -> &'static str {
        "9b1e9c0c2f4f53ad8a0cfa1c5c2e4e2f5d7a0b11"
    }
}

/// The canonical ids of a text: words where they stand, bytes otherwise.
pub(crate) fn ids(text: &str) -> Vec<u32> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        let word = WORDS.iter().zip(1000..).find(|((word, _), _)| rest.starts_with(word.as_bytes()));
        let (id, length) = word.map_or((u32::from(*first), 1), |((word, _), id)| (id, word.len()));
        out.push(id);
        rest = &rest[length..];
    }
    out
}

/// The ids of a text, byte by byte.
pub(crate) fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// A session under construction.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log(pub(crate) Vec<Value<'static>>);

impl Log {
    /// Adds a call with the messages that the agent sent, as the elements of an array.
    pub(crate) fn call(&mut self, prompt: &[u32], reply: &[u32], messages: &str) -> &mut Self {
        let at = self.0.len();
        let pairs: Vec<String> = reply.iter().map(|id| format!("[-0.{:04},{id},null]", id % 9999 + 1)).collect();
        let text = format!(
            r#"{{"completion_id":"c{at}","sequence":{at},"timestamp":"{at:04}","metadata":{{}},"request":{{"messages":[{{"role":"system","content":"sys"}},{messages}],"tools":[{{}}],"stream":true}},"response":{{"choices":[{{"finish_reason":"stop","message":{{"role":"assistant","content":"r{at}"}},"prompt_token_ids":{},"token_ids":{},"meta_info":{{"output_token_logprobs":[{}]}}}}]}}}}"#,
            Value::from(prompt).to_json(),
            Value::from(reply).to_json(),
            pairs.join(",")
        );
        self.0.push(Value::parse(text.as_bytes()).unwrap().into_owned());
        self
    }

    /// Changes the response of the last call.
    pub(crate) fn response(&mut self, change: impl FnOnce(&mut Value<'static>)) -> &mut Self {
        if let Some(response) = self.0.last_mut().and_then(|record| record.get_mut("response")) {
            change(response);
        }
        self
    }

    pub(crate) fn session(&self) -> Value<'static> {
        Value::from(Object::from_iter([("session_id", Value::from("s")), ("completions", Value::from(self.0.clone()))]))
    }

    pub(crate) fn build(&self, options: &Options) -> Built {
        Built(build(&self.session(), options).unwrap())
    }

    pub(crate) fn reference(&self) -> Built {
        self.build(&Options { continuity: Continuity::Reference, tokenizer: None, ..same_text() })
    }
}

/// What an agent asks next: the history as messages.
pub(crate) const USER: &str = r#"{"role":"user","content":"u"}"#;

pub(crate) fn said(at: usize) -> String {
    format!(r#"{USER},{{"role":"assistant","content":"r{at}"}},{{"role":"tool","content":"t{at}"}}"#)
}

/// Our default with the toy tokenizer.
pub(crate) fn same_text() -> Options {
    Options { end_of_turn_token_id: Some(i64::from(END)), tokenizer: Some(Arc::new(Toy::new())), ..Options::default() }
}

pub(crate) fn exact() -> Options {
    Options { continuity: Continuity::Exact, ..same_text() }
}

pub(crate) struct Built(pub(crate) Value<'static>);

impl Built {
    pub(crate) fn at(&self, pointer: &str) -> ValueRef<'_> {
        self.0.pointer(pointer).unwrap_or(ValueRef::Null)
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.at("/metadata/gsj_validation/findings").as_array().unwrap().iter().map(ValueRef::show).collect()
    }

    pub(crate) fn status(&self) -> String {
        self.at("/status").show()
    }

    pub(crate) fn traces(&self) -> Vec<ValueRef<'_>> {
        self.at("/traces").as_array().unwrap().iter().collect()
    }

    /// The certificate's counts that are not zero.
    pub(crate) fn counts(&self) -> String {
        let certificate = self.at("/metadata/gsj_fidelity").as_object().unwrap();
        let counts = certificate.iter().filter_map(|(key, value)| Some((key.as_str()?, value.as_i64()?)));
        counts.filter(|(_, n)| *n > 0).map(|(key, n)| format!("{key} {n}")).collect::<Vec<_>>().join(", ")
    }

    /// The kinds of each trace's turns.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let turns = |trace: &ValueRef<'_>| {
            let turns = trace.pointer("/metadata/gsj_fidelity/turns").unwrap().as_array().unwrap();
            let of = |turn: ValueRef<'_>| {
                let part = |key: &str| turn.get(key).unwrap().show();
                format!("{} {} {}", part("completion_id"), part("kind"), part("differing_tokens"))
            };
            turns.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        self.traces().iter().map(turns).collect()
    }
}

pub(crate) fn numbers(trace: ValueRef<'_>, key: &str) -> Vec<u32> {
    let list = trace.get(key).unwrap().as_array().unwrap();
    list.iter().map(|v| u32::try_from(v.as_i64().unwrap()).unwrap()).collect()
}

/// The trained ids of a trace.
pub(crate) fn trained(trace: ValueRef<'_>) -> Vec<u32> {
    let (ids, mask) = (numbers(trace, "response_ids"), numbers(trace, "loss_mask"));
    ids.iter().zip(&mask).filter(|(_, mask)| **mask == 1).map(|(id, _)| *id).collect()
}

/// The context at the start of each run of trained ids.
pub(crate) fn contexts(trace: ValueRef<'_>) -> Vec<Vec<u32>> {
    let (ids, mask) = (numbers(trace, "response_ids"), numbers(trace, "loss_mask"));
    let starts = (0..mask.len()).filter(|&i| mask[i] == 1 && (i == 0 || mask[i - 1] == 0));
    starts.map(|i| [numbers(trace, "prompt_ids"), ids[..i].to_vec()].concat()).collect()
}
