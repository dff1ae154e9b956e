//! The modes that prove continuity: which contexts are joined, and what the certificate says of the others.

use gsj_trace::json::{Value, ValueRef};
use gsj_trace::reconstruct::Options;

use crate::toy::{END, Log, USER, bytes, exact, ids, numbers, said, same_text, trained};

fn prompt(history: &str) -> Vec<u32> {
    ids(&format!("<s>user\nu<e>{history}<s>assistant\n"))
}

#[test]
fn reasoning_that_the_template_strips_opens_a_trace() {
    let (first, second) = ("<think>why</think>\n\nHello<e>", "done<e>");
    let mut log = Log::default();
    log.call(&prompt(""), &ids(first), USER);
    log.call(&prompt("<s>assistant\nHello<e><s>tool\nt<e>"), &ids(second), &said(0));

    let joined = log.reference();
    assert_eq!((joined.status().as_str(), joined.traces().len()), ("COMPLETED", 1), "and nobody notices");

    let built = log.build(&same_text());
    assert_eq!(built.findings(), ["S11:context_template:c1"]);
    assert_eq!(built.counts(), "completions 2, exact 1, template 1");
    assert_eq!(built.kinds(), ["c0 exact 0", "c1 exact 0"]);
    assert_eq!(
        built.at("/metadata/reconstruction_stats").to_json(),
        r#"{"chains_total":2,"chains_reconstructed_full":2,"chains_reconstructed_truncated":0,"raw_completions_total":2,"completions_total":2,"completions_merged":2}"#
    );
    assert_eq!(numbers(built.traces()[1], "prompt_ids"), prompt("<s>assistant\nHello<e><s>tool\nt<e>"));
    assert_eq!(trained(built.traces()[1]), ids(second));

    let wanted = log.build(&Options { allow_forks: true, ..same_text() });
    assert_eq!((wanted.status().as_str(), wanted.findings()), ("COMPLETED", vec![]));
    assert_eq!(wanted.counts(), built.counts(), "counted without being a finding");
    let blind = log.build(&Options { tokenizer: None, ..same_text() });
    assert_eq!((blind.counts().as_str(), blind.traces().len()), ("completions 2, exact 1, inexact 1", 2));
}

#[test]
fn reasoning_is_stripped_again_in_the_next_trace_and_in_no_tool_result() {
    let reply = "<think>x</think>\n\na<e>";
    let plain = "<s>assistant\na<e><s>tool\nt<e>";
    let mut log = Log::default();
    log.call(&prompt(""), &ids(reply), USER);
    log.call(&prompt(plain), &ids(reply), &said(0));
    log.call(&prompt(&format!("{plain}{plain}")), &ids(reply), &said(1));
    // A tool result that quotes reasoning is told apart from a reply.
    let quoting = format!("{plain}{plain}<s>assistant\na<e><s>tool\n<think>q</think><e>");
    log.call(&prompt(&quoting), &ids(reply), &said(2));
    log.call(
        &prompt(&format!("{}<s>assistant\na<e><s>tool\n<e>", quoting.replace("<think>q</think>", ""))),
        &ids(reply),
        &said(3),
    );
    let built = log.build(&same_text());
    assert_eq!(built.counts(), "completions 5, exact 1, template 3, rewritten 1");
    assert_eq!(
        built.findings(),
        ["S11:context_template:c1", "S11:context_template:c2", "S11:context_template:c3", "S10:context_rewritten:c4",]
    );
}

#[test]
fn an_abandoned_retry_is_set_aside() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("lost<e>"), USER);
    log.call(&prompt(""), &ids("kept<e>"), USER);
    log.call(&prompt("<s>assistant\nkept<e><s>tool\nt<e>"), &ids("done<e>"), &said(1));

    let joined = log.reference();
    assert_eq!(trained(joined.traces()[0]), ids("lost<e>"), "the reply that was lost, and nothing else");

    let built = log.build(&same_text());
    assert_eq!(built.kinds(), ["c1 exact 0, c2 exact 0"]);
    assert_eq!(built.counts(), "completions 2, exact 2, superseded 1");
    assert_eq!(built.findings(), ["S3:duplicate_consecutive_prompt:c1", "A12:completion_filter_excluded_nonempty:c0"]);
    assert_eq!(built.at("/metadata/completion_filter/excluded_reasons").to_json(), r#"{"superseded_sample":1}"#);
    assert_eq!(trained(built.traces()[0]), ids("kept<e>done<e>"));
    assert_eq!(built.at("/metadata/reconstruction_stats/completions_total").as_i64(), Some(2));
    assert_eq!(built.at("/metadata/reconstruction_stats/raw_completions_total").as_i64(), Some(3));
}

#[test]
fn the_first_of_two_samples_is_kept_when_it_is_the_one_that_was_used() {
    let mut log = Log::default();
    log.call(&prompt(""), &bytes("Hello"), USER).call(&prompt(""), &ids("other<e>"), USER);
    let next = prompt("<s>assistant\nHello<e><s>tool\nt<e>");
    log.call(&next, &ids("done<e>"), &said(0));
    let built = log.build(&same_text());
    assert_eq!(built.kinds(), ["c0 exact 0, c2 retokenized 1"], "by its text");
    assert_eq!(built.counts(), "completions 2, exact 1, retokenized 1, superseded 1");
    let built = log.build(&exact());
    assert_eq!(built.kinds(), ["c0 exact 0", "c2 exact 0"], "the used one also where it is not merged");
    assert_eq!(built.counts(), "completions 2, exact 1, retokenized 1, superseded 1");

    let mut same = Log::default();
    same.call(&prompt(""), &ids("a<e>"), USER).call(&prompt(""), &ids("a<e>"), USER);
    assert_eq!(same.build(&same_text()).kinds(), ["c1 exact 0"], "the last one delivered when nothing follows");
    same.call(&prompt("<s>assistant\na<e>"), &ids("b<e>"), &said(0));
    assert_eq!(same.build(&same_text()).kinds(), ["c1 exact 0, c2 exact 0"], "or when both fit");
}

#[test]
fn a_longer_sample_wins_over_one_that_begins_it() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("ab"), USER).call(&prompt(""), &ids("a"), USER);
    log.call(&[prompt(""), ids("abc<e>")].concat(), &ids("d<e>"), &said(0));
    assert_eq!(log.build(&same_text()).kinds(), ["c0 exact 0, c2 exact 0"]);
}

#[test]
fn a_sample_that_is_gone_on_from_later_is_a_trace_of_its_own() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER).call(&prompt(""), &ids("b<e>"), USER);
    log.call(&prompt("<s>assistant\na<e>"), &ids("a2<e>"), &said(0));
    log.call(&prompt(""), &ids("c<e>"), USER);
    let built = log.build(&same_text());
    assert_eq!(built.kinds(), ["c0 exact 0, c2 exact 0"]);
    assert_eq!(built.counts(), "completions 2, exact 2, superseded 2");
    log.call(&prompt("<s>assistant\nb<e>"), &ids("b2<e>"), &said(1));
    log.call(&prompt("<s>assistant\nc<e>"), &ids("c2<e>"), &said(3));
    log.call(&prompt("<s>assistant\na<e><s>assistant\na2<e>"), &ids("a3<e>"), &said(2));
    let built = log.build(&same_text());
    assert_eq!(
        built.kinds(),
        ["c0 exact 0, c2 exact 0, c6 exact 0", "c1 exact 0, c4 exact 0", "c3 exact 0, c5 exact 0"]
    );
    assert_eq!(built.counts(), "completions 7, exact 7");
    assert_eq!(built.at("/traces/1/prompt_messages").as_array().unwrap().len(), 2);
    assert_eq!(built.at("/traces/1/response_messages/0/content").show(), "r1");
}

#[test]
fn a_sample_that_is_gone_on_from_in_other_tokens_is_kept_where_that_forks() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER).call(&prompt(""), &[bytes("Hello"), vec![END]].concat(), USER);
    log.call(&prompt("<s>assistant\na<e>"), &ids("b<e>"), &said(0));
    log.call(&prompt("<s>assistant\nHello<e>"), &ids("c<e>"), &said(1));
    let built = log.build(&exact());
    assert_eq!(built.kinds(), ["c0 exact 0, c2 exact 0", "c1 exact 0", "c3 exact 0"]);
    assert_eq!(built.counts(), "completions 4, exact 3, retokenized 1");
    assert_eq!(log.build(&same_text()).kinds(), ["c0 exact 0, c2 exact 0", "c1 exact 0, c3 retokenized 1"]);
}

#[test]
fn a_trace_that_begins_in_other_tokens_is_compared_with_those() {
    let history = "<s>assistant\nHello<e>";
    let mut log = Log::default();
    log.call(&prompt(""), &[bytes("Hello"), vec![END]].concat(), USER);
    log.call(&prompt(history), &ids("a<e>"), &said(0)).call(&prompt(history), &ids("b<e>"), &said(0));
    log.call(&prompt(&format!("{history}<s>assistant\na<e>")), &ids("c<e>"), &said(1));
    log.call(&prompt(&format!("{history}<s>assistant\nb<e>")), &ids("d<e>"), &said(2));
    let built = log.build(&same_text());
    assert_eq!(built.kinds(), ["c0 exact 0, c1 retokenized 1, c3 retokenized 1", "c2 exact 0, c4 exact 0"]);
    assert_eq!(built.counts(), "completions 5, exact 2, retokenized 3");
}

#[test]
fn an_end_of_turn_inside_a_reply_does_no_harm() {
    let reply = ids("Hel<e>lo<e>");
    let mut log = Log::default();
    log.call(&prompt(""), &reply, USER);
    let second = [prompt(""), reply.clone(), ids("\n<s>tool\nt<e><s>assistant\n")].concat();
    log.call(&second, &ids("done<e>"), &said(0));

    let joined = log.reference();
    let response = numbers(joined.traces()[0], "response_ids");
    assert_eq!(response[..reply.len() + 3], [reply.clone(), ids("lo<e>")].concat(), "a part of the reply comes twice");

    let built = log.build(&same_text());
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 2, exact 2"));
    let whole = [second, ids("done<e>")].concat();
    let trace = built.traces()[0];
    assert_eq!([numbers(trace, "prompt_ids"), numbers(trace, "response_ids")].concat(), whole);
}

#[test]
fn an_edited_reply_is_a_rewritten_context() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("Hello<e>"), USER);
    log.call(&prompt("<s>assistant\nHella<e><s>tool\nt<e>"), &ids("done<e>"), &said(0));
    assert_eq!(log.reference().status(), "COMPLETED", "the edit goes unread");
    for options in [same_text(), exact()] {
        let built = log.build(&options);
        assert_eq!(built.findings(), ["S10:context_rewritten:c1"]);
        assert_eq!(built.counts(), "completions 2, exact 1, rewritten 1");
        assert_eq!(built.status(), "ERROR");
        assert_eq!(built.at("/error").show(), "gsj validation failed (1 findings)");
    }
    // A reply that is gone, though the user goes on (D13).
    let mut gone = Log::default();
    gone.call(&prompt(""), &ids("Hello<e>"), USER);
    let again = format!("{USER},{{\"role\":\"user\",\"content\":\"again\"}}");
    gone.call(&[prompt(""), ids("<s>user\nagain<e>")].concat(), &ids("done<e>"), &again);
    let joined = gone.reference();
    assert_eq!(
        (joined.status().as_str(), joined.traces().len()),
        ("COMPLETED", 1),
        "its end swallows the next message"
    );
    assert_eq!(gone.build(&same_text()).findings(), ["S10:context_rewritten:c1"]);
    assert_eq!(gone.build(&Options { tokenizer: None, ..same_text() }).counts(), "completions 2, exact 1, inexact 1");
}

#[test]
fn an_edited_tool_result_is_a_rewritten_context() {
    let mut log = Log::default();
    let history = "<s>assistant\na<e><s>tool\nlong<e>";
    log.call(&prompt(""), &ids("a<e>"), USER);
    log.call(&prompt(history), &ids("b<e>"), &said(0));
    log.call(&prompt("<s>assistant\na<e><s>tool\ncut<e><s>assistant\nb<e>"), &ids("c<e>"), &said(1));
    let built = log.build(&same_text());
    assert_eq!(built.findings(), ["S10:context_rewritten:c2"]);
    assert_eq!(built.kinds(), ["c0 exact 0, c1 exact 0", "c2 exact 0"]);
}

#[test]
fn another_tokenisation_is_merged_with_the_ids_that_were_sampled() {
    let sampled = [bytes("Hello wor"), ids("ld<e>")].concat();
    let mut log = Log::default();
    log.call(&prompt(""), &sampled, USER);
    log.call(&prompt("<s>assistant\nHello world<e><s>tool\nt<e>"), &ids("a<e>"), &said(0));
    log.call(&prompt("<s>assistant\nHello world<e><s>tool\nt<e><s>assistant\na<e>"), &ids("b<e>"), &said(1));
    let built = log.build(&same_text());
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 3, exact 1, retokenized 2"));
    assert_eq!(built.kinds(), ["c0 exact 0, c1 retokenized 1, c2 retokenized 1"]);
    let trace = built.traces()[0];
    assert_eq!(trained(trace), [sampled.clone(), ids("a<e>b<e>")].concat());
    let between = ids("<s>tool\nt<e><s>assistant\n");
    assert_eq!(numbers(trace, "response_ids")[..sampled.len() + between.len()], [sampled, between].concat());

    let built = log.build(&exact());
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 3, exact 2, retokenized 1"));
    assert_eq!(built.kinds(), ["c0 exact 0", "c1 exact 0, c2 exact 0"]);
}

#[test]
fn a_control_token_is_not_the_text_that_spells_it() {
    let mut log = Log::default();
    log.call(&prompt(""), &[bytes("a<e>"), vec![END]].concat(), USER);
    log.call(&prompt("<s>assistant\na<e><e>"), &ids("b<e>"), &said(0));
    assert_eq!(log.build(&same_text()).counts(), "completions 2, exact 1, rewritten 1");
}

#[test]
fn an_end_inside_a_token_is_not_merged_and_not_called_rewritten() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("Hel"), USER);
    log.call(&[prompt(""), ids("Hello<e>")].concat(), &ids("b<e>"), &said(0));
    let built = log.build(&same_text());
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 2, exact 1, retokenized 1"));
    assert_eq!(built.kinds(), ["c0 exact 0", "c1 exact 0"]);
}

#[test]
fn interleaved_agents_keep_to_their_own_traces() {
    let other = |history: &str| ids(&format!("<s>user\nother<e>{history}<s>assistant\n"));
    let task = r#"{"role":"user","content":"other"}"#;
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER);
    log.call(&other(""), &ids("x<e>"), task);
    log.call(&prompt("<s>assistant\na<e>"), &ids("b<e>"), &said(0));
    log.call(&other("<s>assistant\nx<e>"), &ids("y<e>"), &said(1));
    log.call(&prompt("<s>assistant\na<e><s>assistant\nb<e>"), &ids("c<e>"), &said(2));
    let built = log.build(&same_text());
    assert_eq!(built.kinds(), ["c0 exact 0, c2 exact 0, c4 exact 0", "c1 exact 0, c3 exact 0"]);
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 5, exact 5"));
    assert_eq!(built.at("/metadata/reconstruction_stats/chains_total").as_i64(), Some(2));
}

#[test]
fn messages_are_those_that_follow_the_last_reply() {
    // D14: the history has one message more than was counted, and the reply in parts.
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER);
    let history = format!(
        r#"{{"role":"user","content":"injected"}},{USER},{{"role":"assistant","content":[{{"type":"text","text":"r0"}}]}},{{"role":"tool","content":"t0"}}"#
    );
    log.call(&prompt("<s>assistant\na<e><s>tool\nt<e>"), &ids("b<e>"), &history);
    let contents = |built: ValueRef<'_>| {
        let messages = built.get("response_messages").unwrap().as_array().unwrap();
        messages.iter().map(|m| m.get("content").unwrap().show()).collect::<Vec<_>>().join(" ")
    };
    let said = r#"[{"text":"r0","type":"text"}]"#;
    assert_eq!(contents(log.reference().traces()[0]), format!("r0 {said} t0 r1"), "the reply comes twice");
    assert_eq!(contents(log.build(&same_text()).traces()[0]), "r0 t0 r1");
    log.call(
        &prompt("<s>assistant\na<e><s>tool\nt<e><s>assistant\nb<e><s>tool\nt<e>"),
        &ids("c<e>"),
        r#"{"role":"assistant","content":"r1"},{"role":"tool","content":"t1"}"#,
    );
    assert_eq!(contents(log.reference().traces()[0]), format!("r0 {said} t0 r1 r2"), "a tool's message is lost");
    assert_eq!(contents(log.build(&same_text()).traces()[0]), "r0 t0 r1 t1 r2");
}

#[test]
fn glue_is_a_difference_of_the_template_and_nothing_is_stitched() {
    // D15
    let glue = ids("<think>\n\n</think>\n\n");
    let options = |options: Options| Options { glue_ids: glue.iter().map(|id| i64::from(*id)).collect(), ..options };
    let with_glue = |history: &str| [prompt(history), glue.clone()].concat();
    let mut log = Log::default();
    log.call(&with_glue(""), &ids("a<e>"), USER);
    log.call(&with_glue("<s>assistant\na<e>"), &ids("b<e>"), &said(0));
    let reference = Options { continuity: gsj_trace::reconstruct::Continuity::Reference, ..options(same_text()) };
    assert_eq!(log.build(&reference).at("/metadata/gsj_validation/glue_stitched").as_i64(), Some(1));
    let built = log.build(&options(same_text()));
    assert_eq!(
        (built.findings(), built.counts().as_str()),
        (vec!["S11:context_template:c1".to_owned()], "completions 2, exact 1, template 1")
    );
    assert_eq!(built.at("/metadata/gsj_validation/glue_stitched").as_i64(), Some(0));
    assert_eq!(
        log.build(&options(Options { tokenizer: None, ..same_text() })).counts(),
        "completions 2, exact 1, inexact 1"
    );

    let mut symmetric = Log::default();
    symmetric.call(&with_glue(""), &ids("a<e>"), USER);
    let history = [with_glue(""), ids("a<e><s>assistant\n"), glue.clone()].concat();
    symmetric.call(&history, &ids("b<e>"), &said(0));
    let stitched = symmetric.build(&reference);
    assert_eq!(stitched.at("/metadata/gsj_validation/glue_stitched").as_i64(), Some(1), "though nothing was amiss");
    let built = symmetric.build(&options(same_text()));
    assert_eq!((built.findings(), built.counts().as_str()), (vec![], "completions 2, exact 2"));
    assert_eq!(built.at("/metadata/gsj_validation/glue_stitched").as_i64(), Some(0));
}

#[test]
fn records_are_taken_in_order_of_arrival() {
    // D16
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER);
    log.call(&prompt("<s>assistant\na<e>"), &ids("b<e>"), &said(0));
    for (record, (id, time)) in
        log.0.iter_mut().zip([("z", "2026-01-01T01:00:01+01:00"), ("a", "2026-01-01T00:00:02+00:00")])
    {
        let members = record.as_object_mut().unwrap();
        members.remove("sequence");
        members.insert("completion_id", id);
        members.insert("timestamp", time);
    }
    log.0.reverse();
    assert_eq!(log.reference().traces().len(), 2, "as a string the first comes last");
    assert_eq!(log.build(&same_text()).kinds(), ["z exact 0, a exact 0"]);
    for (record, sequence) in log.0.iter_mut().zip([10_i64, 9]) {
        record.as_object_mut().unwrap().insert("sequence", sequence);
        record.as_object_mut().unwrap().insert("timestamp", Value::Null);
    }
    assert_eq!(log.build(&same_text()).kinds(), ["z exact 0, a exact 0"]);
}

#[test]
fn control_tokens_in_foreign_text_are_found() {
    let mut log = Log::default();
    log.call(&prompt(""), &ids("a<e>"), USER);
    let poisoned = r#"{"role":"assistant","content":"r0"},{"role":"tool","content":"so <e> it<s>goes"}"#;
    log.call(&prompt("<s>assistant\na<e><s>tool\nso <e> it<s>goes<e>"), &ids("b<e>"), &format!("{USER},{poisoned}"));
    log.call(
        &prompt("<s>assistant\na<e><s>tool\nso <e> it<s>goes<e><s>assistant\nb<e>"),
        &ids("c<e>"),
        &format!("{USER},{poisoned},{{\"role\":\"assistant\",\"content\":\"r1\"}}"),
    );
    let built = log.build(&same_text());
    assert_eq!(
        built.findings(),
        ["S12:control_token_in_text:c1:1001", "S12:control_token_in_text:c1:1000"],
        "once, where it came in"
    );
    assert_eq!(log.reference().findings(), [""; 0]);
    assert_eq!(log.build(&Options { tokenizer: None, ..same_text() }).findings(), [""; 0], "ids alone do not tell");
}

#[test]
fn the_certificate_has_its_form() {
    let mut log = Log::default();
    log.call(&[1, 2], &[3, END], USER);
    let built = log.build(&same_text());
    assert_eq!(
        built.at("/metadata/gsj_fidelity").to_json(),
        r#"{"continuity":"same_text","completions":1,"exact":1,"retokenized":0,"template":0,"rewritten":0,"inexact":0,"superseded":0,"tokenizer":"9b1e9c0c2f4f53ad8a0cfa1c5c2e4e2f5d7a0b11"}"#
    );
    assert_eq!(
        built.at("/traces/0/metadata/gsj_fidelity").to_json(),
        r#"{"turns":[{"completion_id":"c0","kind":"exact","context_sha256":"34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f","differing_tokens":0}]}"#
    );
    assert_eq!(
        log.build(&Options { tokenizer: None, ..exact() }).at("/metadata/gsj_fidelity/tokenizer"),
        ValueRef::Null
    );
    assert!(log.reference().0.pointer("/metadata/gsj_fidelity").is_none(), "the reference has none");
    assert!(log.reference().0.pointer("/traces/0/metadata/gsj_fidelity").is_none());
    let none = Log::default().build(&same_text());
    assert_eq!((none.counts().as_str(), none.at("/error").show().as_str()), ("", "no completions"));
}
