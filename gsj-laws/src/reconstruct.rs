//! Laws of building a trajectory (`checks.md` sections 10 to 12).

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use gsj_checks::{Policy, validate_parsed};
use gsj_trace::canonical::bytes_sha256;
use gsj_trace::engine::{Dialect, normalize_response};
use gsj_trace::json::{Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Incremental, Options, build};

use crate::documents::{elements, ids, object, text};
use crate::pins::whole;
use crate::sessions::{Call, planned};
use crate::vocabulary::{END, SPACE, THINK, THOUGHT, said, vocabulary};

/// Findings that a trace of ours never gets, whatever was in the session.
const NEVER: [&str; 8] = ["LP2:", "LP7:", "LP8:", "LP9:", "TY2:", "ADM3:", "ADM5:", "ADM7:"];

/// Any session. Bytes that begin a JSON document are a session, or an object with `session`, `engine` and `builder` as
/// the vectors have them; any other bytes are the choices that a well-formed one is made from.
///
/// Building never panics, gives the same trajectory twice, one record at a time or all at once, in a form that the
/// validators know. Of a well-formed session more is known: the tokens at mask 1 are the sampled ones of the kept
/// completions, in order and none twice, with their logprobs, and each turn that the certificate calls exact was
/// sampled from exactly the ids before it.
///
/// # Panics
/// When a law is broken.
pub fn reconstruct(data: &[u8]) {
    match data.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => document(data),
        _ => choices(data),
    }
}

/// Every way of building that differs.
fn all_options(end_of_turn: Option<i64>, glue: &[i64]) -> Vec<Options> {
    let base = Options { end_of_turn_token_id: end_of_turn, glue_ids: glue.to_vec(), ..Options::default() };
    let tokenizer = Some(vocabulary());
    vec![
        Options { continuity: Continuity::Reference, ..base.clone() },
        Options { continuity: Continuity::Exact, tokenizer: tokenizer.clone(), ..base.clone() },
        Options { continuity: Continuity::Exact, allow_forks: true, ..base.clone() },
        Options { continuity: Continuity::SameText, tokenizer: tokenizer.clone(), ..base.clone() },
        Options { continuity: Continuity::SameText, tokenizer, allow_forks: true, ..base.clone() },
        Options { continuity: Continuity::SameText, ..base },
    ]
}

fn document(data: &[u8]) {
    let Ok(input) = Value::parse(data) else { return };
    let session = input.get("session").unwrap_or(input.as_ref());
    let mut session = session.to_owned();
    let dialect = input.get("engine").and_then(ValueRef::as_str).and_then(Dialect::from_name);
    for record in session.get_mut("completions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let (Some(dialect), Some(response)) = (dialect, record.get_mut("response")) {
            normalize_response(dialect, response);
        }
    }
    let builder = input.get("builder");
    let end_of_turn = builder.and_then(|b| b.get("end_of_turn_token_id")).and_then(ValueRef::as_i64);
    let glue = builder.and_then(|b| b.get("generation_prompt_glue_ids"));
    let glue: Vec<i64> = elements(glue).filter_map(ValueRef::as_i64).collect();
    for options in all_options(end_of_turn, &glue) {
        let Ok(trajectory) = build(&session, &options) else {
            assert!(session.as_object().is_none(), "only what is no object at all cannot be built");
            continue;
        };
        assert_eq!(build(&session, &options).as_ref(), Ok(&trajectory), "built twice");
        well_formed(&trajectory);
        judged(&trajectory, &options);
    }
    // Without numbers and times records stand in the order of the document.
    for record in session.get_mut("completions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(record) = record.as_object_mut() {
            record.remove("sequence");
            record.remove("timestamp");
        }
    }
    for options in all_options(end_of_turn, &glue) {
        one_at_a_time(&session, &options);
    }
}

fn choices(data: &[u8]) {
    let tokens = vocabulary();
    let mut u = Unstructured::new(data);
    let Ok(plan) = planned(&mut u, &*tokens) else { return };
    for options in all_options(Some(i64::from(END)), &[]) {
        let trajectory = build(&plan.session, &options).expect("a session is an object");
        assert_eq!(build(&plan.session, &options).as_ref(), Ok(&trajectory), "built twice");
        well_formed(&trajectory);
        judged(&trajectory, &options);
        every_token_once(&trajectory, &plan.calls, &options);
        one_at_a_time(&plan.session, &options);
    }
    let glued = Options {
        continuity: Continuity::Reference,
        glue_ids: [THINK, THOUGHT, SPACE].map(i64::from).to_vec(),
        ..Options::default()
    };
    every_token_once(&build(&plan.session, &glued).expect("a session is an object"), &plan.calls, &glued);
}

fn one_at_a_time(session: &Value<'_>, options: &Options) {
    let Ok(whole) = build(session, options) else { return };
    let mut pieces = Incremental::new(options.clone());
    for record in elements(session.get("completions")) {
        pieces.push(record);
    }
    let pieces = pieces.finish(session.as_ref());
    assert!(
        pieces == whole,
        "one record at a time gives the same ({}):\n{}\n{}",
        options.continuity.name(),
        pieces.to_json(),
        whole.to_json()
    );
}

/// What holds for every trajectory.
fn well_formed(trajectory: &Value<'_>) {
    let said = || trajectory.to_json();
    let findings = elements(trajectory.pointer("/metadata/gsj_validation/findings")).count();
    let completed = text(trajectory.get("status")) == "COMPLETED";
    assert_eq!(completed, trajectory.get("error").is_some_and(ValueRef::is_null), "an error exactly without success");
    assert!(!completed || findings == 0, "nothing with findings is complete: {}", said());
    let traces = elements(trajectory.get("traces"));
    let mut merged = 0;
    for trace in traces {
        let length = |key: &str| trace.get(key).and_then(ValueRef::as_array).map(gsj_trace::json::Array::len);
        let responses = length("response_ids").expect("response_ids is an array");
        assert_eq!(length("loss_mask"), Some(responses), "a mask for each id: {}", said());
        assert!(length("response_logprobs").is_none_or(|n| n == responses), "a logprob for each id: {}", said());
        assert!(elements(trace.get("loss_mask")).all(|m| matches!(m.as_i64(), Some(0 | 1))), "a mask is 0 or 1");
        merged += elements(trace.pointer("/metadata/completion_metadata")).count();
        for key in ["prompt_messages", "response_messages"] {
            assert!(elements(trace.get(key)).all(|m| m.as_object().is_some()), "messages are objects: {}", said());
        }
    }
    if let Some(stats) = trajectory.pointer("/metadata/reconstruction_stats") {
        let stat = |key: &str| stats.get(key).and_then(ValueRef::as_i64).and_then(|n| usize::try_from(n).ok());
        assert_eq!(stat("completions_merged"), Some(merged), "as many merged as stand in the traces: {}", said());
        assert_eq!(stat("chains_total"), Some(elements(trajectory.get("traces")).count()), "a trace for each chain");
    }
}

/// The validators know what the builder writes.
fn judged(trajectory: &Value<'_>, options: &Options) {
    let body = object([("status", Value::from("COMPLETED")), ("trajectory", trajectory.clone().into_owned())]);
    let ours = options.continuity != Continuity::Reference;
    let policy = Policy { require_fidelity: ours, allow_forks: options.allow_forks, ..Policy::default() };
    let verdict = validate_parsed(body.as_ref(), &whole(), &policy).expect("the pins are whole");
    // The builder's own findings come back after ADM2 and may name anything.
    let own = elements(trajectory.pointer("/metadata/gsj_validation/findings")).count();
    for finding in verdict.findings.iter().filter(|finding| !finding.starts_with("ADM2:")).skip(own) {
        assert!(!NEVER.iter().any(|never| finding.starts_with(never)), "`{finding}` of {}", trajectory.to_json());
    }
    let built = trajectory.pointer("/metadata/reconstruction_stats").is_some();
    if ours && built && elements(trajectory.get("traces")).all(|trace| turns_are_runs(trace)) {
        let certified = |finding: &&String| finding.starts_with("F1:") || finding.starts_with("F2:");
        let broken = verdict.findings.iter().skip(own).find(certified);
        assert_eq!(broken, None, "the certificate of {}", trajectory.to_json());
    }
}

/// Whether each turn is one run of mask 1, which the certificate of a trace needs.
fn turns_are_runs(trace: ValueRef<'_>) -> bool {
    let mask = ids(trace.get("loss_mask"));
    let runs = mask.chunk_by(|a, b| a == b).filter(|run| run.first() == Some(&1)).count();
    runs == elements(trace.pointer("/metadata/gsj_fidelity/turns")).count()
}

/// The laws of a session of which it is known what was sampled.
fn every_token_once(trajectory: &Value<'_>, calls: &[Call], options: &Options) {
    let said_all = || format!("{} of {calls:?}", trajectory.to_json());
    let mut seen = BTreeSet::new();
    for trace in elements(trajectory.get("traces")) {
        let turns: Vec<usize> = elements(trace.pointer("/metadata/completion_metadata"))
            .map(|m| m.get("n").and_then(ValueRef::as_i64).and_then(|n| usize::try_from(n).ok()).expect("its number"))
            .collect();
        assert!(turns.is_sorted(), "turns in their order: {}", said_all());
        assert!(turns.iter().all(|turn| seen.insert(*turn)), "no completion twice: {}", said_all());
        let (response, mask) = (ids(trace.get("response_ids")), ids(trace.get("loss_mask")));
        let trained: Vec<usize> = (0..mask.len()).filter(|i| mask[*i] == 1).collect();
        let sampled: Vec<u32> = turns.iter().flat_map(|turn| calls[*turn].sampled.iter().copied()).collect();
        let at_mask: Vec<u32> = trained.iter().map(|i| response[*i]).collect();
        assert_eq!(at_mask, sampled, "the tokens at mask 1 are the sampled ones: {}", said_all());
        logprobs(trace, &trained, &mask, &turns, calls);
        if options.continuity != Continuity::Reference {
            contexts(trace, &trained, &turns, calls, options);
        }
    }
    let excluded: BTreeSet<String> =
        elements(trajectory.pointer("/metadata/completion_filter/excluded_completion_ids"))
            .map(ValueRef::show)
            .collect();
    for n in 0..calls.len() {
        let (kept, set_aside) = (seen.contains(&n), excluded.contains(&format!("c{n:02}")));
        assert!(!(kept && set_aside), "kept or excluded, not both: {}", said_all());
        // The reference drops what it cannot join.
        let lost = !kept && !set_aside && options.continuity != Continuity::Reference;
        assert!(!lost, "completion {n} is nowhere: {}", said_all());
    }
}

fn logprobs(trace: ValueRef<'_>, trained: &[usize], mask: &[u32], turns: &[usize], calls: &[Call]) {
    let Some(logprobs) = trace.get("response_logprobs").and_then(ValueRef::as_array) else { return };
    let logprobs: Vec<f64> = logprobs.iter().filter_map(ValueRef::as_f64).collect();
    let at_mask: Vec<f64> = trained.iter().map(|i| logprobs[*i]).collect();
    let given: Vec<f64> = turns.iter().flat_map(|turn| calls[*turn].logprobs.iter().flatten().copied()).collect();
    assert_eq!(at_mask, given, "the logprobs at mask 1 are the engine's");
    assert!(mask.iter().zip(&logprobs).all(|(mask, x)| *mask == 1 || *x == 0.0), "at mask 0 there are none");
}

/// Compares each turn's context with what the engine was given.
fn contexts(trace: ValueRef<'_>, trained: &[usize], turns: &[usize], calls: &[Call], options: &Options) {
    let certificate: Vec<ValueRef<'_>> = elements(trace.pointer("/metadata/gsj_fidelity/turns")).collect();
    assert_eq!(certificate.len(), turns.len(), "an entry for each turn");
    let mut stream = ids(trace.get("prompt_ids"));
    let start = stream.len();
    stream.extend(ids(trace.get("response_ids")));
    let tokens = vocabulary();
    let mut sampled_before = 0;
    for (k, (turn, entry)) in turns.iter().zip(certificate).enumerate() {
        let call = &calls[*turn];
        let kind = text(entry.get("kind"));
        let at = || format!("turn {k} ({kind}) of {}", trace.to_json());
        let little_endian: Vec<u8> = call.prompt.iter().flat_map(|id| id.to_le_bytes()).collect();
        assert_eq!(text(entry.get("completion_id")), format!("c{turn:02}"), "{}", at());
        assert_eq!(text(entry.get("context_sha256")), bytes_sha256(&little_endian), "{}", at());
        let mergeable: &[&str] = match options.continuity {
            Continuity::SameText if options.tokenizer.is_some() => &["exact", "retokenized"],
            _ => &["exact"],
        };
        assert!(mergeable.contains(&&*kind), "{}", at());
        assert!(k > 0 || kind == "exact", "the first turn is exact: {}", at());
        let begins = trained.get(sampled_before);
        sampled_before += call.sampled.len();
        // Where nothing was sampled the trace does not say where the turn stands.
        let (Some(begins), false) = (begins, call.sampled.is_empty()) else { continue };
        let context = &stream[..start + begins];
        let differing = entry.get("differing_tokens").and_then(ValueRef::as_i64).and_then(|n| usize::try_from(n).ok());
        if kind == "exact" {
            assert_eq!(context, call.prompt, "sampled from exactly what stands before: {}", at());
            assert_eq!(differing, Some(0), "{}", at());
        } else {
            assert_ne!(context, call.prompt, "{}", at());
            assert_eq!(said(&*tokens, context), said(&*tokens, &call.prompt), "the same text: {}", at());
            assert_eq!(differing, Some(differing_ids(&call.prompt, context)), "{}", at());
        }
    }
}

/// How many ids of `q` stand outside its longest common prefix and, of what remains, longest common suffix with `c`.
fn differing_ids(q: &[u32], c: &[u32]) -> usize {
    let prefix = q.iter().zip(c).take_while(|(a, b)| a == b).count();
    let (q, c) = (&q[prefix..], &c[prefix..]);
    q.len() - q.iter().rev().zip(c.iter().rev()).take_while(|(a, b)| a == b).count()
}
