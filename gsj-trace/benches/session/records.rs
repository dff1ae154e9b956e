//! The session of the reference's figures: vLLM's dialect, a first prompt of 2,995 ids, replies of 151 ids, 396 between
//! them, 11 tools, about 2 KB of messages a turn, every record with the whole prompt.

use gsj_trace::json::{Object, Value};

const FIRST_PROMPT: usize = 2_995;
const REPLY: usize = 151;
const BETWEEN: usize = 396;
const TOOLS: usize = 11;
pub(crate) const END_OF_TURN: u32 = 151_645;
/// What a template writes before a turn but not into its history.
pub(crate) const GLUE: [u32; 4] = [151_667, 271, 151_668, 271];

/// The records of a session of so many turns.
pub(crate) fn records(turns: usize, with_glue: bool) -> Vec<Value<'static>> {
    let mut numbers = Numbers(7);
    let mut prompt = numbers.ids(FIRST_PROMPT);
    let mut messages = vec![message("system", &numbers.text(2_000)), message("user", &numbers.text(500))];
    let tools: Vec<Value<'static>> = (0..TOOLS).map(|at| tool(at, &numbers.text(400))).collect();
    let mut records = Vec::new();
    for turn in 0..turns {
        let mut reply = numbers.ids(REPLY - 1);
        reply.push(END_OF_TURN);
        let mut sent = prompt.clone();
        if with_glue {
            sent.extend(GLUE);
        }
        let said = said(turn, &numbers.text(300));
        records.push(record(turn, sent, &messages, &tools, &reply, &said, &mut numbers));
        prompt.extend(reply);
        prompt.extend(numbers.ids(BETWEEN));
        messages.push(said);
        messages.push(Value::from(Object::from_iter([
            ("role", Value::from("tool")),
            ("content", Value::from(numbers.text(1_500))),
            ("tool_call_id", Value::from(format!("call_{turn}"))),
        ])));
    }
    records
}

/// A session as it is built from; responses are normalised already.
pub(crate) fn session(completions: Vec<Value<'static>>) -> Value<'static> {
    let mut session = header();
    if let Some(session) = session.as_object_mut() {
        session.insert("completions", completions);
    }
    session
}

/// A session without its completions.
pub(crate) fn header() -> Value<'static> {
    Value::from(Object::from_iter([("session_id", "s"), ("task_id", "t"), ("api_type", "openai_chat")]))
}

fn record(
    turn: usize,
    prompt: Vec<u32>,
    messages: &[Value<'static>],
    tools: &[Value<'static>],
    reply: &[u32],
    said: &Value<'static>,
    numbers: &mut Numbers,
) -> Value<'static> {
    let request = Object::from_iter([
        ("model", Value::from("m")),
        ("messages", Value::from(messages.to_vec())),
        ("tools", Value::from(tools.to_vec())),
        ("stream", Value::from(true)),
    ]);
    let content: Vec<Value<'static>> = reply
        .iter()
        .map(|id| {
            let token = Value::from(format!("t{id}"));
            Value::from(Object::from_iter([("token", token), ("logprob", Value::from(numbers.logprob()))]))
        })
        .collect();
    let choice = Object::from_iter([
        ("index", Value::from(0)),
        ("message", said.clone()),
        ("finish_reason", Value::from("tool_calls")),
        ("logprobs", Value::from(Object::from_iter([("content", content)]))),
        ("token_ids", Value::from(reply)),
    ]);
    let response = Object::from_iter([
        ("id", Value::from(format!("x{turn}"))),
        ("object", Value::from("chat.completion")),
        ("choices", Value::from(vec![Value::from(choice)])),
        ("prompt_token_ids", Value::from(prompt)),
    ]);
    Value::from(Object::from_iter([
        ("completion_id", Value::from(format!("c{turn:03}"))),
        ("timestamp", Value::from(format!("2026-01-01T00:{:02}:{:02}+00:00", turn / 60, turn % 60))),
        ("request", Value::from(request)),
        ("response", Value::from(response)),
        ("metadata", Value::from(Object::from_iter([("case_id", "c"), ("prompt_source", "free")]))),
    ]))
}

fn message(role: &'static str, text: &str) -> Value<'static> {
    Value::from(Object::from_iter([("role", Value::from(role)), ("content", Value::from(text.to_owned()))]))
}

fn said(turn: usize, arguments: &str) -> Value<'static> {
    let function = Object::from_iter([
        ("name", Value::from("read")),
        ("arguments", Value::from(format!("{{\"x\":\"{arguments}\"}}"))),
    ]);
    let call = Object::from_iter([
        ("id", Value::from(format!("call_{turn}"))),
        ("type", Value::from("function")),
        ("function", Value::from(function)),
    ]);
    Value::from(Object::from_iter([
        ("role", Value::from("assistant")),
        ("content", Value::Null),
        ("tool_calls", Value::from(vec![Value::from(call)])),
    ]))
}

fn tool(at: usize, description: &str) -> Value<'static> {
    let function = Object::from_iter([
        ("name", Value::from(format!("tool_{at}"))),
        ("description", Value::from(description.to_owned())),
        ("parameters", Value::from(Object::from_iter([("type", "object")]))),
    ]);
    Value::from(Object::from_iter([("type", Value::from("function")), ("function", Value::from(function))]))
}

/// The same numbers on every machine (Knuth's linear congruence).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as u32
    }

    /// Ordinary token ids.
    fn ids(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next() % 151_643).collect()
    }

    fn logprob(&mut self) -> f64 {
        -f64::from(self.next()) / 1e7
    }

    /// Words with a line feed or a quote now and then.
    fn text(&mut self, length: usize) -> String {
        let mut text = String::new();
        while text.len() < length {
            let word = match self.next() % 12 {
                0 => "\n",
                1 => "\"page\" ",
                2 => "page ",
                _ => "of the agreement ",
            };
            text.push_str(word);
        }
        text
    }
}
