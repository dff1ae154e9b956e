//! Traces rendered anew: a scripted session, its edits, and recorded bodies.

use std::path::PathBuf;

use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::rerender::{ChatTemplate, Part, RenderOptions, Report, RerenderError, Verdict, rerender};
use gsj_trace::tokenizer::Tokenizer;

use crate::tokenizer::{first_trace, fixture, qwen3, real_bodies};

fn template() -> ChatTemplate {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/template/chat_template.jinja");
    ChatTemplate::named("chat_template.jinja", &std::fs::read_to_string(path).expect("the fixture")).expect("compiles")
}

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "read", "description": "Read <a> & b", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]"#;

/// A session as the scripted engine and an agent would have it: each prompt rendered, each reply said and remembered.
struct Session<'t> {
    tokenizer: &'t Tokenizer,
    template: ChatTemplate,
    thinking: bool,
    messages: Vec<Value<'static>>,
    prompt_messages: usize,
    prompt: Vec<u32>,
    response: Vec<u32>,
    mask: Vec<u32>,
}

fn json(text: &str) -> Value<'static> {
    Value::parse(text.as_bytes()).expect("json").into_owned()
}

impl<'t> Session<'t> {
    fn new(tokenizer: &'t Tokenizer, thinking: bool) -> Self {
        let messages = vec![
            json(r#"{"role": "system", "content": "You read pages."}"#),
            json(
                r#"{"role": "user", "content": [{"type": "text", "text": "Read page 1."}, {"type": "text", "text": "Then say what it is."}]}"#,
            ),
        ];
        let (prompt_messages, template) = (messages.len(), template());
        Self {
            tokenizer,
            template,
            thinking,
            messages,
            prompt_messages,
            prompt: vec![],
            response: vec![],
            mask: vec![],
        }
    }

    /// The engine's prompt; what is new of it goes into the trace.
    fn ask(&mut self) {
        let messages: Vec<ValueRef<'_>> = self.messages.iter().map(Value::as_ref).collect();
        let tools = json(TOOLS);
        let variables = Object::from_iter([("enable_thinking", self.thinking)]);
        let options = RenderOptions { variables, ..RenderOptions::default() };
        let text = self.template.render(&messages, Some(tools.as_ref()), &options).expect("renders");
        let ids = self.tokenizer.encode(&text).expect("encodes");
        if self.prompt.is_empty() {
            self.prompt = ids;
            return;
        }
        let so_far = [&self.prompt[..], &self.response].concat();
        let new = ids.strip_prefix(&so_far[..]).expect("the template is symmetric");
        self.response.extend(new);
        self.mask.extend(vec![0; new.len()]);
    }

    fn say(&mut self, text: &str, end: &str, message: &str) {
        let ids = self.tokenizer.encode(&format!("{text}{end}")).expect("encodes");
        self.sampled(&ids, message);
    }

    fn sampled(&mut self, ids: &[u32], message: &str) {
        self.response.extend(ids);
        self.mask.extend(vec![1; ids.len()]);
        self.messages.push(json(message));
    }

    fn hear(&mut self, message: &str) {
        self.messages.push(json(message));
    }

    fn trace(&self) -> Value<'static> {
        let list = |messages: &[Value<'static>]| messages.iter().cloned().collect::<Value<'static>>();
        Value::Object(Object::from_iter([
            ("prompt_ids", Value::from(self.prompt.clone())),
            ("response_ids", self.response.clone().into()),
            ("loss_mask", self.mask.clone().into()),
            ("prompt_messages", list(&self.messages[..self.prompt_messages])),
            ("response_messages", list(&self.messages[self.prompt_messages..])),
            ("tools", json(TOOLS)),
        ]))
    }
}

const CALL: &str = "I look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"md/page_0001.md\", \"n\": 1.0}}\n</tool_call>";
const CALL_MESSAGE: &str = r#"{"role": "assistant", "content": "I look.", "refusal": null, "tool_calls": [{"id": "c1", "type": "function",
    "function": {"name": "read", "arguments": "{\"path\": \"md/page_0001.md\", \"n\": 1.0}"}}]}"#;
const RESULT: &str = r##"{"role": "tool", "tool_call_id": "c1", "content": "# Page 1\n\nGrüße <b> 😀"}"##;

fn session(tokenizer: &Tokenizer, thinking: bool) -> Session<'_> {
    let mut session = Session::new(tokenizer, thinking);
    let (before, reasoning) =
        if thinking { ("<think>\nHm.\n</think>\n\n", r#""reasoning_content": "Hm.", "#) } else { ("", "") };
    session.ask();
    session.say(&format!("{before}{CALL}"), "<|im_end|>", &CALL_MESSAGE.replacen('{', &format!("{{{reasoning}"), 1));
    session.hear(RESULT);
    session.ask();
    let message = format!(r#"{{"role": "assistant", {reasoning}"content": "It is page 1."}}"#);
    session.say(&format!("{before}It is page 1."), "<|im_end|>", &message);
    session
}

fn compare(trace: &Value<'_>) -> Report {
    rerender(trace.as_ref(), fixture(), &template(), &RenderOptions::default()).expect("compares")
}

#[test]
fn a_scripted_session_comes_out_id_by_id() {
    for thinking in [false, true] {
        let trace = session(fixture(), thinking).trace();
        let report = compare(&trace);
        assert_eq!(report.verdict, Verdict::Equal, "{}", report.to_text());
        assert_eq!((report.differing, report.differing_rendered, &report.first), (0, 0, &None));
        assert!(report.closing > 0, "the template ends a turn with a line feed that no trace has");
        assert_eq!(report.rendered, report.ids);
        assert_eq!(report.turns.len(), 2);
        for turn in &report.turns {
            let all = (turn.prompt, turn.added, turn.reply);
            assert_eq!(all, (Some(Verdict::Equal), Verdict::Equal, Verdict::Equal), "{}", report.to_text());
        }
        assert_eq!(report.inferred, !thinking, "an empty think block in front of the reply gives the switch away");
        assert_eq!(report.notes, [""; 0]);
    }
}

#[test]
fn a_reply_that_was_cut_is_not_expected_to_end() {
    let mut session = Session::new(fixture(), false);
    session.ask();
    session.say("I look and", "", r#"{"role": "assistant", "content": "I look and"}"#);
    let report = compare(&session.trace());
    assert_eq!(report.verdict, Verdict::Equal, "{}", report.to_text());
    assert_eq!(report.closing, fixture().encode("<|im_end|>\n").expect("encodes").len());
}

#[test]
fn an_edited_reply_is_found_with_its_place() {
    let mut session = session(fixture(), false);
    session.messages[2] = json(&CALL_MESSAGE.replace("page_0001", "page_0002"));
    let report = compare(&session.trace());
    assert_eq!(report.verdict, Verdict::Different);
    let first = report.first.as_ref().expect("a difference");
    assert_eq!((first.turn, first.part), (Some(1), Part::Reply));
    assert_eq!(first.message.as_ref().map(ToString::to_string).as_deref(), Some("response_messages[0] (assistant)"));
    assert!(first.trace.text.starts_with('1') && first.rendered.text.starts_with('2'), "{first:?}");
    let [one, two] = &report.turns[..] else { panic!("{report:?}") };
    assert_eq!((one.prompt, one.added, one.reply), (Some(Verdict::Equal), Verdict::Equal, Verdict::Different));
    assert_eq!((two.prompt, two.added, two.reply), (Some(Verdict::Different), Verdict::Equal, Verdict::Equal));
    assert_eq!((report.differing, report.differing_rendered), (1, 1));
}

#[test]
fn an_edited_tool_result_is_found_in_front_of_the_next_reply() {
    let mut session = session(fixture(), false);
    session.messages[3] = json(&RESULT.replace("Page 1", "Page 1 of 9"));
    let report = compare(&session.trace());
    let first = report.first.as_ref().expect("a difference");
    assert_eq!((first.turn, first.part), (Some(2), Part::Context));
    assert_eq!(first.message.as_ref().map(|place| (place.field, place.index)), Some(("response_messages", 1)));
    assert_eq!(report.turns[1].added, Verdict::Different);
    assert_eq!(report.turns[1].reply, Verdict::Equal, "what stands behind it is found again");
}

#[test]
fn a_reply_sampled_in_other_pieces_says_the_same() {
    let mut session = Session::new(fixture(), false);
    session.ask();
    let ids = fixture().encode("It is page 1.").expect("encodes");
    let letters: Vec<u32> =
        "It is page 1.".chars().flat_map(|c| fixture().encode(&c.to_string()).expect("encodes")).collect();
    assert_ne!(ids, letters, "the vocabulary has words");
    let end = fixture().encode("<|im_end|>").expect("encodes");
    session.sampled(&[letters.clone(), end].concat(), r#"{"role": "assistant", "content": "It is page 1."}"#);
    let report = compare(&session.trace());
    assert_eq!(report.verdict, Verdict::Retokenized, "{}", report.to_text());
    assert!(report.differing > 0 && report.differing <= letters.len());
    assert_eq!(report.turns[0].reply, Verdict::Retokenized);
}

#[test]
fn a_dropped_message_does_not_make_everything_behind_it_differ() {
    let mut session = session(fixture(), false);
    session.messages.remove(3);
    let report = compare(&session.trace());
    assert_eq!(report.verdict, Verdict::Different);
    assert_eq!(report.turns[1].reply, Verdict::Equal, "{}", report.to_text());
}

#[test]
fn what_is_no_trace_is_refused_by_its_member() {
    let refused = |change: &dyn Fn(&mut Object<'static>)| {
        let mut trace = session(fixture(), false).trace();
        change(trace.as_object_mut().expect("an object"));
        match rerender(trace.as_ref(), fixture(), &template(), &RenderOptions::default()) {
            Err(error @ RerenderError::Trace { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|trace| drop(trace.remove("prompt_ids"))), "`prompt_ids` is missing");
    assert_eq!(
        refused(&|trace| drop(trace.insert("response_ids", json("[1, null]")))),
        "`response_ids` is no list of token ids: entry 1 is None"
    );
    assert_eq!(
        refused(&|trace| drop(trace.insert("response_messages", json("[\"x\"]")))),
        "`response_messages` is no list of messages: entry 0 is not an object"
    );
    assert_eq!(
        refused(&|trace| {
            trace.insert("prompt_ids", json("[]"));
            trace.insert("response_ids", json("[]"));
        }),
        "`prompt_ids` is empty, and so is `response_ids`"
    );
}

#[test]
fn no_trace_makes_it_panic() {
    use proptest::prelude::*;
    let odd = [
        "null",
        "true",
        "[]",
        "{}",
        "\"x\"",
        "-1",
        "1e400",
        "[null]",
        "[[1]]",
        "[{}]",
        "\"\\ud800\"",
        "4294967296",
        "[1,0,1]",
        r#"[{"role": "assistant"}]"#,
        r#"[{"role": "tool", "content": [{"text": 3}, "a"]}]"#,
        r#"{"function": {"arguments": "{"}}"#,
    ];
    let paths = [
        vec!["prompt_ids"],
        vec!["response_ids"],
        vec!["loss_mask"],
        vec!["tools"],
        vec!["prompt_messages"],
        vec!["response_messages"],
        vec!["prompt_messages", "0"],
        vec!["prompt_messages", "1", "content"],
        vec!["response_messages", "0", "role"],
        vec!["response_messages", "0", "tool_calls"],
        vec!["response_messages", "0", "tool_calls", "0", "function"],
        vec!["response_messages", "0", "tool_calls", "0", "function", "arguments"],
        vec!["response_messages", "1", "content"],
        vec!["response_messages", "2"],
        vec!["response_ids", "3"],
        vec!["loss_mask", "9"],
    ];
    let edits = prop::collection::vec((prop::sample::select(paths.to_vec()), prop::sample::select(odd.to_vec())), 1..4);
    let good = session(fixture(), true).trace();
    let template = template();
    let mut runner = proptest::test_runner::TestRunner::new(proptest::test_runner::Config::with_cases(128));
    let law = |edits: Vec<(Vec<&str>, &str)>| {
        let mut trace = good.clone();
        for (path, new) in edits {
            let mut place = Some(&mut trace);
            for step in path {
                place = place.and_then(|value| match value {
                    Value::Array(_) => step.parse().ok().and_then(|at: usize| value.as_array_mut()?.get_mut(at)),
                    other => other.get_mut(step),
                });
            }
            if let Some(place) = place {
                *place = json(new);
            }
        }
        if let Ok(report) = rerender(trace.as_ref(), fixture(), &template, &RenderOptions::default()) {
            prop_assert_eq!(report.verdict == Verdict::Equal, report.first.is_none());
            prop_assert!(!report.to_text().is_empty() && !report.to_value().to_json().is_empty());
        }
        Ok(())
    };
    runner.run(&edits, law).expect("the law holds");
}

#[test]
fn replies_without_messages_are_said_and_still_compared() {
    let mut session = session(fixture(), false);
    session.messages.pop();
    let report = compare(&session.trace());
    assert!(report.notes.iter().any(|note| note.contains("2 sampled stretches, 1 assistant messages")), "{report:?}");
    assert_eq!(report.verdict, Verdict::Different);
    assert_eq!(report.turns[0].reply, Verdict::Equal);
    assert_eq!(report.turns[1].reply, Verdict::Different, "its text is nowhere");
}

#[test]
fn a_report_reads_like_this() {
    let mut session = session(fixture(), false);
    session.messages[2] = json(&CALL_MESSAGE.replace("page_0001", "page_0002"));
    let report = compare(&session.trace());
    insta::assert_snapshot!(report.to_text(), @r#"
    different: 1 of 235 ids of the trace are not in the rendering, 1 of its 235 not in the trace
      rendered with enable_thinking=false (found by trying)
      first at id 176 of 235, in the reply of turn 1: response_messages[0] (assistant)
        after      "read", "arguments": {"path": "md/page_000
        trace     1.md", "n": 1.0}}\n</tool_call><|im_end|>\n<|im_start|>u   ids 25
        rendered  2.md", "n": 1.0}}\n</tool_call><|im_end|>\n<|im_start|>u   ids 26
      turn  prompt ids  prompt       added        reply ids  reply        message
         1         152  equal        equal               37  different    response_messages[0]
         2         228  different    equal                7  equal        response_messages[2]
    "#);
    insta::assert_snapshot!(compare(&self::session(fixture(), false).trace()).to_text(), @r"
    equal: template and tokenizer give all 235 ids of the trace
      rendered with enable_thinking=false (found by trying)
      turn  prompt ids  prompt       added        reply ids  reply        message
         1         152  equal        equal               37  equal        response_messages[0]
         2         228  equal        equal                7  equal        response_messages[2]
    ");
    let mut value = report.to_value();
    value.as_object_mut().expect("an object").remove("first");
    insta::assert_snapshot!(value.to_json(), @r#"{"verdict":"different","ids":235,"rendered":235,"closing":1,"differing":1,"differing_rendered":1,"variables":{"enable_thinking":false},"inferred":true,"turns":[{"turn":1,"message":{"field":"response_messages","index":0,"role":"assistant"},"prompt_ids":152,"reply_ids":37,"prompt":"equal","added":"equal","reply":"different"},{"turn":2,"message":{"field":"response_messages","index":2,"role":"assistant"},"prompt_ids":228,"reply_ids":7,"prompt":"different","added":"equal","reply":"equal"}],"notes":[]}"#);
    insta::assert_snapshot!(report.to_value().pointer("/first/rendered").expect("a side").to_json(), @r#"{"ids":[26],"text":"2.md\", \"n\": 1.0}}\n</tool_call><|im_end|>\n<|im_start|>u"}"#);
}

#[test]
fn recorded_bodies_come_out_id_by_id() {
    let Some(tokenizer) = qwen3() else { return };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/qwen3_training.jinja");
    let Ok(source) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    };
    let template = ChatTemplate::named("qwen3_training.jinja", &source).expect("compiles");
    for (name, body) in real_bodies() {
        let body = Value::parse(&body).expect("json");
        let trace = first_trace(&body);
        let report = rerender(trace, tokenizer, &template, &RenderOptions::default()).expect("compares");
        let text = report.to_text();
        match name.as_str() {
            // A stand-in engine with a vocabulary of its own.
            "pi_callback_session_result.json" => {
                assert_eq!(report.verdict, Verdict::Different, "{text}");
            }
            // The model ended its last reply right behind the reasoning, with another end token.
            "thinking-on_episode-on.accepted.json" => {
                let first = report.first.as_ref().expect("a difference");
                assert_eq!((first.turn, first.part, first.position), (Some(3), Part::Reply, 12_463), "{text}");
                assert_eq!((&*first.trace.ids, &*first.rendered.ids), (&[198][..], &[271][..]));
                assert!(
                    report.notes.iter().any(|note| note.contains("<|endoftext|>; the template writes <|im_end|>")),
                    "{text}"
                );
                assert!(report.turns.iter().all(|turn| turn.prompt == Some(Verdict::Equal)), "{text}");
            }
            _ => {
                assert_eq!(report.verdict, Verdict::Equal, "{name}\n{text}");
                assert!(report.turns.iter().all(|turn| turn.prompt == Some(Verdict::Equal)), "{name}\n{text}");
                assert_eq!(report.variables.get("enable_thinking").and_then(ValueRef::as_bool), Some(false), "{name}");
            }
        }
    }
}
