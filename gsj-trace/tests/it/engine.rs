//! Requests and answers of engines against the vectors, and streams against whole answers.

use std::fmt::Write as _;

use gsj_trace::engine::{Dialect, normalize_response, prepare_request};
use gsj_trace::json::{Value, ValueRef};
use gsj_trace::stream::StreamAssembler;
use proptest::prelude::*;

use crate::reconstruct::ordered;
use crate::vectors::lines;

#[test]
fn every_vector_gives_its_request_or_answer() {
    let Some(lines) = lines("engine.jsonl") else { return };
    assert!(!lines.is_empty());
    for line in lines {
        let vector = Value::parse(line.as_bytes()).unwrap();
        let at = |pointer: &str| vector.pointer(pointer).unwrap();
        let dialect = Dialect::from_name(&at("/input/engine").show()).unwrap();
        let mut value = at("/input/value").to_owned();
        match at("/input/op").show().as_str() {
            "prepare_request" => value = prepare_request(dialect, value),
            "normalize_response" => normalize_response(dialect, &mut value),
            other => panic!("unknown operation {other}"),
        }
        assert_eq!(ordered(value.as_ref()), ordered(at("/expected")), "{}", at("/name").show());
    }
}

/// One answer of an engine.
#[derive(Debug, Clone)]
struct Answer {
    dialect: Dialect,
    content: String,
    reasoning: String,
    calls: Vec<(String, String)>,
    ids: Vec<u32>,
}

fn text(value: impl AsRef<str>) -> String {
    Value::from(value.as_ref().to_owned()).to_json()
}

impl Answer {
    fn reasoning_key(&self) -> &'static str {
        if self.dialect == Dialect::Vllm { "reasoning" } else { "reasoning_content" }
    }

    fn logprobs(&self, ids: &[u32]) -> String {
        let entries: Vec<String> = ids.iter().map(|id| format!(r#"{{"token":"t{id}","logprob":-{id}.5}}"#)).collect();
        format!(r#"{{"content":[{}]}}"#, entries.join(","))
    }

    fn pairs(&self, ids: &[u32]) -> String {
        let pairs: Vec<String> = ids.iter().map(|id| format!("[-{id}.5,{id},null]")).collect();
        format!(r#"{{"output_token_logprobs":[{}]}}"#, pairs.join(","))
    }

    /// The ids of one share, where the dialect puts them.
    fn ids(&self, ids: &[u32]) -> String {
        match self.dialect {
            Dialect::Vllm => format!(r#""token_ids":{}"#, Value::from(ids.to_vec()).to_json()),
            _ => format!(r#""meta_info":{}"#, self.pairs(ids)),
        }
    }

    fn whole(&self) -> String {
        let calls: Vec<String> = self
            .calls
            .iter()
            .enumerate()
            .map(|(i, (name, arguments))| {
                format!(
                    r#"{{"id":"k{i}","type":"function","function":{{"name":{},"arguments":{}}}}}"#,
                    text(name),
                    text(arguments)
                )
            })
            .collect();
        let content =
            if self.content.is_empty() && !calls.is_empty() { "null".to_owned() } else { text(&self.content) };
        let mut message = format!(r#""role":"assistant","content":{content}"#);
        if !self.reasoning.is_empty() {
            let _ = write!(message, r#","{}":{}"#, self.reasoning_key(), text(&self.reasoning));
        }
        if !calls.is_empty() {
            let _ = write!(message, r#","tool_calls":[{}]"#, calls.join(","));
        }
        let (inside, outside) = self.prompt();
        format!(
            r#"{{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{{message}}},"finish_reason":"stop","logprobs":{},{}{inside}}}]{outside},"usage":{{"completion_tokens":{}}}}}"#,
            self.logprobs(&self.ids),
            self.ids(&self.ids),
            self.ids.len(),
        )
    }

    /// Prompt ids inside and outside of the choice.
    fn prompt(&self) -> (&'static str, &'static str) {
        match self.dialect {
            Dialect::Vllm => ("", r#","prompt_token_ids":[1,2,3]"#),
            _ => (r#","prompt_token_ids":[1,2,3]"#, ""),
        }
    }

    /// The answer as chunks of at most `size` characters, the ids spread over them.
    fn chunks(&self, size: usize) -> Vec<String> {
        let base = r#""id":"x","object":"chat.completion.chunk","created":1,"model":"m""#;
        let (inside, outside) = self.prompt();
        let split = |text: &str| -> Vec<String> {
            let chars: Vec<char> = text.chars().collect();
            chars.chunks(size).map(|piece| piece.iter().collect()).collect()
        };
        let mut deltas: Vec<String> = Vec::new();
        deltas.extend(split(&self.reasoning).iter().map(|p| format!(r#""{}":{}"#, self.reasoning_key(), text(p))));
        deltas.extend(split(&self.content).iter().map(|p| format!(r#""content":{}"#, text(p))));
        for (i, (name, arguments)) in self.calls.iter().enumerate() {
            deltas.push(format!(
                r#""tool_calls":[{{"index":{i},"id":"k{i}","type":"function","function":{{"name":{},"arguments":""}}}}]"#,
                text(name)
            ));
            deltas.extend(
                split(arguments)
                    .iter()
                    .map(|p| format!(r#""tool_calls":[{{"index":{i},"function":{{"arguments":{}}}}}]"#, text(p))),
            );
        }
        if deltas.is_empty() {
            deltas.push(r#""content":"""#.to_owned());
        }
        let mut out = vec![format!(
            r#"{{{base},"choices":[{{"index":0,"delta":{{"role":"assistant","content":""}},"finish_reason":null{inside}}}]{outside}}}"#
        )];
        let per = self.ids.len().div_ceil(deltas.len()).max(1);
        let count = deltas.len();
        for (n, delta) in deltas.into_iter().enumerate() {
            let from = (n * per).min(self.ids.len());
            let to = if n + 1 == count { self.ids.len() } else { ((n + 1) * per).min(self.ids.len()) };
            let share = &self.ids[from..to];
            out.push(format!(
                r#"{{{base},"choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":null,"logprobs":{},{}}}]}}"#,
                self.logprobs(share),
                self.ids(share),
            ));
        }
        out.push(format!(
            r#"{{{base},"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop","logprobs":null}}]}}"#
        ));
        out.push(format!(r#"{{{base},"choices":[],"usage":{{"completion_tokens":{}}}}}"#, self.ids.len()));
        out
    }
}

fn answers() -> impl Strategy<Value = Answer> {
    (
        prop_oneof![Just(Dialect::Vllm), Just(Dialect::Sglang)],
        "[a-z\"\\\\\u{e9}\u{1f600}\n]{0,20}",
        "[a-z ]{0,20}",
        proptest::collection::vec(("[a-z]{1,5}", "[a-z{}\":]{0,15}"), 0..3),
        proptest::collection::vec(0u32..1000, 0..30),
    )
        .prop_map(|(dialect, content, reasoning, calls, ids)| Answer { dialect, content, reasoning, calls, ids })
}

proptest! {
    #[test]
    fn a_stream_is_assembled_to_the_whole_answer(answer in answers(), size in 1usize..9) {
        let mut stream = StreamAssembler::new();
        let chunks = answer.chunks(size);
        for (i, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(stream.is_complete(), i + 1 == chunks.len(), "complete only once the finish reason came");
            stream.push(Value::parse(chunk.as_bytes()).unwrap().as_ref());
        }
        prop_assert!(stream.is_complete());
        let (mut got, whole) = (stream.finish(), answer.whole());
        let mut want = Value::parse(whole.as_bytes()).unwrap().into_owned();
        prop_assert_eq!(ordered(got.as_ref()), ordered(want.as_ref()));
        normalize_response(answer.dialect, &mut got);
        normalize_response(answer.dialect, &mut want);
        prop_assert_eq!(ordered(got.as_ref()), ordered(want.as_ref()));
        let stamped = got.pointer("/choices/0/logprobs/content").and_then(ValueRef::as_array).unwrap();
        prop_assert!(stamped.iter().zip(&answer.ids).all(|(e, id)| e.get("token_id").and_then(ValueRef::as_i64) == Some(i64::from(*id))));
    }
}
