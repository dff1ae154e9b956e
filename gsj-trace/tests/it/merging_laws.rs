//! Laws of the modes that prove continuity.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use gsj_trace::canonical::ContextHash;
use gsj_trace::json::{Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Incremental, Options, build};
use proptest::prelude::*;

use crate::reconstruct::ordered;
use crate::toy::{Built, END, Log, USER, contexts, exact, ids, numbers, said, same_text, trained};

/// What an agent and its template do next.
#[derive(Debug, Clone)]
enum Act {
    /// The next turn, the history as it was.
    Next,
    /// The same request again.
    Again,
    /// An earlier request again.
    Back(usize),
    /// The next turn, the history in other tokens.
    Retokenized,
    /// The next turn without reasoning in the history.
    Stripped,
    /// The next turn after a reply that was changed.
    Edited,
    /// Another agent.
    Fresh,
}

#[derive(Debug, Clone)]
struct Call {
    act: Act,
    reply: Vec<u32>,
}

fn replies() -> impl Strategy<Value = Vec<u32>> {
    let piece = prop_oneof![
        Just(ids("Hello")),
        Just(ids("<think>x</think>\n\n")),
        Just(vec![END]),
        proptest::collection::vec(97u32..123, 1..4),
        Just(vec![u32::from(b'H'), u32::from(b'e'), u32::from(b'l')]),
        Just(ids("lo wor")),
    ];
    (proptest::collection::vec(piece, 0..4), any::<bool>()).prop_map(|(pieces, ended)| {
        let mut reply = pieces.concat();
        if ended {
            reply.push(END);
        }
        reply
    })
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let act = prop_oneof![
        4 => Just(Act::Next),
        1 => Just(Act::Again),
        1 => (0usize..8).prop_map(Act::Back),
        1 => Just(Act::Retokenized),
        1 => Just(Act::Stripped),
        1 => Just(Act::Edited),
        1 => Just(Act::Fresh),
    ];
    proptest::collection::vec((act, replies()).prop_map(|(act, reply)| Call { act, reply }), 1..14)
}

fn text(ids: &[u32]) -> String {
    use gsj_trace::tokens::TokenText as _;
    let toy = crate::toy::Toy::new();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| toy.bytes(*id).unwrap_or_default().to_vec()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Plays calls; gives the log and what each record sampled.
fn play(calls: &[Call]) -> Log {
    let mut log = Log::default();
    let mut history: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    for (i, Call { act, reply }) in calls.iter().enumerate() {
        let opening = ids("<s>user\nu<e><s>assistant\n");
        let last = history.last().cloned().unwrap_or((opening.clone(), Vec::new()));
        let between = ids(&format!("<s>tool\nt{i}<e><s>assistant\n"));
        let whole = [last.0.clone(), last.1.clone()].concat();
        let prompt = match act {
            Act::Again => last.0,
            Act::Back(at) => history.get(at % history.len().max(1)).map_or(opening, |(prompt, _)| prompt.clone()),
            Act::Next if history.is_empty() => opening,
            Act::Next => [whole, between].concat(),
            Act::Retokenized => [ids(&text(&whole)), between].concat(),
            Act::Stripped => [ids(&text(&whole).replace("<think>x</think>\n\n", "")), between].concat(),
            Act::Edited => [ids(&text(&whole).replace("Hel", "Bal")), between].concat(),
            Act::Fresh => ids(&format!("<s>user\n{i}<e><s>assistant\n")),
        };
        let messages = if matches!(act, Act::Fresh) || i == 0 { USER.to_owned() } else { said(i - 1) };
        log.call(&prompt, reply, &messages);
        history.push((prompt, reply.clone()));
    }
    log
}

fn incremental(log: &Log, options: &Options) -> Value<'static> {
    let mut state = Incremental::new(options.clone());
    for record in &log.0 {
        state.push(record.as_ref());
    }
    let header = Value::parse(br#"{"session_id":"s"}"#).unwrap();
    state.finish(header.as_ref())
}

fn member(turn: ValueRef<'_>, key: &str) -> String {
    turn.get(key).unwrap().show()
}

/// Each kept record is one turn of one trace, its ids are trained there once, in order, and nothing else is; a context
/// that is called exact is the one that the engine was given.
fn holds(log: &Log, built: &Built) -> Result<(), TestCaseError> {
    let mut prompts = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for record in &log.0 {
        let id = member(record.as_ref(), "completion_id");
        let choice = record.pointer("/response/choices/0").unwrap();
        prompts.insert(id.clone(), numbers(choice, "prompt_token_ids"));
        samples.insert(id, numbers(choice, "token_ids"));
    }
    let excluded: Vec<String> = built
        .at("/metadata/completion_filter/excluded_completion_ids")
        .as_array()
        .unwrap()
        .iter()
        .map(ValueRef::show)
        .collect();
    let mut seen = Vec::new();
    for trace in built.traces() {
        let turns: Vec<ValueRef<'_>> =
            trace.pointer("/metadata/gsj_fidelity/turns").unwrap().as_array().unwrap().iter().collect();
        let merged: Vec<String> = turns.iter().map(|turn| member(*turn, "completion_id")).collect();
        let want: Vec<u32> = merged.iter().flat_map(|id| samples[id].clone()).collect();
        prop_assert_eq!(trained(trace), want, "the trained ids are the sampled ones, in order");
        prop_assert_eq!(member(turns[0], "kind"), "exact");
        let starts = contexts(trace);
        // Two replies with nothing between them are one run of trained ids, and an empty reply is none.
        if starts.len() == turns.len() {
            for (turn, context) in turns.iter().zip(&starts) {
                let mut hash = ContextHash::new();
                let q = &prompts[&member(*turn, "completion_id")];
                hash.add(q);
                prop_assert_eq!(member(*turn, "context_sha256"), hash.digest(), "the hash is that of the prompt");
                match member(*turn, "kind").as_str() {
                    "exact" => prop_assert_eq!(q, context),
                    "retokenized" => prop_assert!(q != context && text(q) == text(context)),
                    other => prop_assert!(false, "a merged turn is {}", other),
                }
            }
        }
        if let Some(logprobs) = trace.get("response_logprobs").and_then(ValueRef::as_array) {
            prop_assert_eq!(logprobs.len(), numbers(trace, "response_ids").len());
        }
        seen.extend(merged);
    }
    seen.extend(excluded);
    let mut all: Vec<String> = samples.into_keys().collect();
    seen.sort_unstable();
    all.sort_unstable();
    prop_assert_eq!(seen, all, "each record is in one trace or excluded");
    let total = |name: &str| built.at(&format!("/metadata/gsj_fidelity/{name}")).as_i64().unwrap();
    let kinds: i64 = ["exact", "retokenized", "template", "rewritten", "inexact"].into_iter().map(total).sum();
    prop_assert_eq!(kinds, total("completions"));
    let stats = |name: &str| built.at(&format!("/metadata/reconstruction_stats/{name}")).as_i64();
    prop_assert_eq!(stats("completions_merged"), Some(kinds));
    prop_assert_eq!(stats("completions_total"), Some(kinds));
    prop_assert_eq!(stats("raw_completions_total"), i64::try_from(log.0.len()).ok());
    prop_assert_eq!(stats("chains_total"), i64::try_from(built.traces().len()).ok());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_sampled_token_is_trained_once_in_its_own_context(calls in calls()) {
        let log = play(&calls);
        for options in [same_text(), exact(), Options { tokenizer: None, ..same_text() }] {
            let built = log.build(&options);
            holds(&log, &built)?;
            let by_one = incremental(&log, &options);
            prop_assert_eq!(ordered(by_one.as_ref()), ordered(built.0.as_ref()), "one by one as all at once");
        }
        let reference = Options { continuity: Continuity::Reference, ..same_text() };
        prop_assert_eq!(ordered(incremental(&log, &reference).as_ref()), ordered(log.build(&reference).0.as_ref()));
    }

    #[test]
    fn a_symmetric_history_is_one_exact_trace(replies in proptest::collection::vec(replies(), 1..12)) {
        let mut log = Log::default();
        let mut context = ids("<s>user\nu<e><s>assistant\n");
        for (i, reply) in replies.iter().enumerate() {
            log.call(&context, reply, &if i == 0 { USER.to_owned() } else { said(i - 1) });
            context.extend(reply);
            if i + 1 < replies.len() {
                context.extend(ids(&format!("<s>tool\n{i}<e><s>assistant\n")));
            }
        }
        let built = log.build(&exact());
        prop_assert_eq!(built.counts(), format!("completions {0}, exact {0}", replies.len()));
        let trace = built.traces()[0];
        prop_assert_eq!([numbers(trace, "prompt_ids"), numbers(trace, "response_ids")].concat(), context);
        holds(&log, &built)?;
    }

    #[test]
    fn nothing_in_a_record_makes_building_fail(
        calls in calls(),
        changes in proptest::collection::vec((any::<usize>(), 0usize..16, 0usize..15), 0..12),
    ) {
        let mut log = play(&calls);
        let paths = [
            "", "completion_id", "request", "response", "metadata", "sequence", "timestamp", "request/messages",
            "request/tools", "response/choices", "response/usage", "response/choices/0/prompt_token_ids",
            "response/choices/0/token_ids", "response/choices/0/meta_info", "response/choices/0/message",
            "response/choices/0/finish_reason",
        ];
        let values = [
            "null", "true", "-1", "1e999", "\"\\ud800\"", "[]", "{}", "[null]", "[1,2]", "[[1,2],[3]]", "[1.5]",
            "{\"completion_tokens\":-1}", "{\"output_token_logprobs\":[[-1,7],[0]]}", "[{\"role\":\"assistant\"},7]",
            "99999999999999999999",
        ];
        for (at, path, value) in changes {
            let at = at % log.0.len();
            let value = Value::parse(values[value].as_bytes()).unwrap();
            let mut place = Some(&mut log.0[at]);
            for step in paths[path].split('/').filter(|step| !step.is_empty()) {
                place = place.and_then(|place| match step {
                    "0" => place.as_array_mut().and_then(|a| a.first_mut()),
                    key => place.as_object_mut().map(|object| object.entry(key)),
                });
            }
            if let Some(place) = place {
                *place = value.into_owned();
            }
        }
        for options in [same_text(), exact(), Options { tokenizer: None, ..same_text() }] {
            let built = Built(build(&log.session(), &options).unwrap());
            // What is written can be read again by a strict reader: no infinity, no NaN.
            for trace in built.traces() {
                prop_assert!(!trace.get("response_logprobs").unwrap().to_json().contains("NaN"));
                let lengths = ["response_ids", "loss_mask"].map(|key| trace.get(key).unwrap().as_array().unwrap().len());
                prop_assert_eq!(lengths[0], lengths[1]);
            }
            let _ = incremental(&log, &options);
        }
    }
}
