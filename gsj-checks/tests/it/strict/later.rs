use gsj_checks::{LaterText, Policy, Profile, validate_parsed_with, validate_with};
use gsj_trace::json::Value;

use super::body::{at, changed, clean, json, pins};

/// One sentence of each of two later pages.
struct Corpus;

impl LaterText for Corpus {
    fn later_pages(&self, case_id: &str, timestep: u64, text: &str) -> Vec<u64> {
        assert_eq!((case_id, timestep), ("case_0001", 5), "as the trace states them");
        [(9, "the verdict fell"), (7, "the ship sank")]
            .into_iter()
            .filter(|(_, own)| text.contains(own))
            .map(|(page, _)| page)
            .collect()
    }
}

fn found(body: &Value<'_>, profile: Profile) -> Vec<String> {
    let (pins, policy) = (pins(), Policy::of(profile));
    let verdict = validate_parsed_with(body.as_ref(), &pins, &policy, Some(&Corpus)).expect("pins are whole");
    let bytes = body.to_json();
    assert_eq!(Ok(&verdict), validate_with(bytes.as_bytes(), &pins, &policy, Some(&Corpus)).as_ref());
    verdict.findings
}

#[test]
fn text_of_later_pages_is_found_wherever_it_stands() {
    assert_eq!(found(&clean(), Profile::Strict), [""; 0]);
    let both = Some(r#""before the ship sank, the verdict fell""#);
    let body = changed("/trajectory/traces/0/response_messages/2/content", both);
    assert_eq!(found(&body, Profile::Strict), ["G8:later_page_text:7:4", "G8:later_page_text:9:4"]);
    assert_eq!(found(&body, Profile::Reference), [""; 0]);

    let mut body = clean();
    *at(&mut body, "/trajectory/traces/0/prompt_messages/1/content/0/text") = json(r#""the ship sank""#);
    *at(&mut body, "/trajectory/traces/0/response_messages/0/tool_calls/0/function/arguments") =
        json(r#""{\"query\": \"the verdict fell\"}""#);
    let last = at(&mut body, "/trajectory/traces/0/response_messages/2").as_object_mut().expect("message");
    last.insert("reasoning_content", "so the ship sank");
    assert_eq!(
        found(&body, Profile::Strict),
        ["G8:later_page_text:7:1", "G8:later_page_text:9:2", "G8:later_page_text:7:4"]
    );
}

#[test]
fn without_a_case_or_a_timestep_nothing_is_later() {
    let body = changed("/trajectory/traces/0/metadata/case_id", Some("7"));
    assert_eq!(found(&body, Profile::Strict), [""; 0]);
    let body = changed("/trajectory/traces/0/metadata/timestep", None);
    assert_eq!(found(&body, Profile::Strict), ["G5:missing_evidence:timestep"]);
}
