//! Sessions of several traces, for those who want them.

use gsj_checks::{Policy, Profile};
use gsj_trace::json::Value;

use super::body::{at, clean, findings, json, verdict};

/// Two chains, two traces.
fn forked(builder: &str) -> Value<'static> {
    let mut body = clean();
    let traces = at(&mut body, "/trajectory/traces").as_array_mut().expect("traces");
    traces.push(traces[0].clone());
    *at(&mut body, "/trajectory/metadata/gsj_validation/findings") = json(builder);
    let stats = r#"{"chains_total":2,"chains_reconstructed_full":2,"chains_reconstructed_truncated":0,
        "raw_completions_total":4,"completions_total":4,"completions_merged":4}"#;
    *at(&mut body, "/trajectory/metadata/reconstruction_stats") = json(stats);
    body
}

fn allowing(body: &Value<'_>) -> Vec<String> {
    verdict(body, &Policy { allow_forks: true, ..Policy::default() }).findings
}

#[test]
fn a_forked_session_passes_only_where_it_is_wanted() {
    let body = forked("[]");
    assert_eq!(findings(&body, Profile::Strict), ["G7:chains_total_ne_1:2"]);
    assert_eq!(allowing(&body), [""; 0]);
    assert_eq!(allowing(&clean()), [""; 0], "one trace is as good as ever");
    let reference = Policy { allow_forks: true, ..Policy::of(Profile::Reference) };
    assert_eq!(verdict(&body, &reference).findings, ["G7:chains_total_ne_1:2"], "the reference knows no such knob");
}

#[test]
fn what_the_builder_says_of_forks_is_not_counted() {
    let body = forked(r#"["S10:context_rewritten:c3","S11:context_template:c4"]"#);
    assert_eq!(
        findings(&body, Profile::Strict),
        [
            "ADM2:builder_findings_present:2",
            "S10:context_rewritten:c3",
            "S11:context_template:c4",
            "G7:chains_total_ne_1:2"
        ]
    );
    assert_eq!(allowing(&body), [""; 0]);
    let other = forked(r#"["S10:context_rewritten:c3","S1:empty_prompt_ids:c4","S100:x",7]"#);
    assert_eq!(
        allowing(&other),
        ["ADM2:builder_findings_present:3", "S1:empty_prompt_ids:c4", "S100:x", "7"],
        "whatever else it found counts"
    );
}

#[test]
fn every_chain_is_a_trace() {
    let mut body = forked("[]");
    at(&mut body, "/trajectory/traces").as_array_mut().expect("traces").pop();
    assert_eq!(allowing(&body), ["ADM8:trace_count_ne_chains_total:1!=2"]);
}
