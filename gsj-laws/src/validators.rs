//! Laws of the validators (`checks.md` sections 8 to 10 and 13).

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use gsj_checks::{FindingKind, Origin, Pins, Policy, Profile, Verdict, validate, validate_parsed};
use gsj_trace::canonical::canonical_text;
use gsj_trace::json::{Object, Value, ValueRef};

use crate::bodies::body;
use crate::documents::{elements, object};
use crate::pins::whole;

/// The one rule in which the strict profile may be silent where the reference speaks: a page whose own prose names a
/// later one (D8).
const FALSE_ALARM: &str = "G5:search_page_gt_timestep:";
/// Findings that name a digest which pins could approve.
const DIGESTS: [(&str, &str); 4] = [
    ("G3:tool_roster_hash_not_approved:", "tool_roster_hash"),
    ("G2:system_prompt_hash_not_approved:", "system_prompt_hash"),
    ("G1:skill_card_hash_not_approved:", "skill_card_hash"),
    ("G7:settings_hash_not_approved:", "settings_hash"),
];

/// Begins what is no JSON in any encoding: the rest are choices that a session result is made from.
const CHOICES: u8 = 1;

/// Any bytes as a session result, or the choices that one is made from (after a byte 1): judging never panics, never fails but for the pins, gives the same answer twice,
/// read before or not, written anew or not; every finding is in the catalogue; the strict profile says all that the
/// reference's says, in its order (but for D8's false alarm); approving a digest silences its finding and no other.
///
/// # Panics
/// When a law is broken.
pub fn validators(data: &[u8]) {
    match data {
        [CHOICES, choices @ ..] => {
            if let Ok(body) = body(&mut Unstructured::new(choices)) {
                lawful(body.to_json().as_bytes());
            }
        }
        _ => lawful(data),
    }
}

fn lawful(data: &[u8]) {
    let strange = whole();
    let reference = judged(data, &strange, &Policy::of(Profile::Reference));
    judged(data, &strange, &Policy::default());
    lazy(data);
    let Ok(body) = Value::parse(data) else { return };
    for policy in policies() {
        compared(body.as_ref(), &strange, &policy);
    }
    let (approving, silenced) = approving(body.as_ref(), &reference.findings);
    let approved = validate_parsed(body.as_ref(), &approving, &Policy::of(Profile::Reference)).expect("usable pins");
    let openings = |finding: &&String| !finding.starts_with("G6:");
    let rest: Vec<&String> = reference.findings.iter().filter(|f| !silenced.contains(*f)).filter(openings).collect();
    let left: Vec<&String> = approved.findings.iter().filter(openings).collect();
    // A finding of the builder may be one of the strings that were silenced.
    if !reference.findings.iter().any(|finding| finding.starts_with("ADM2:")) {
        assert_eq!(left, rest, "approving silences what it approves and nothing else");
    }
    if approving.check_whole().is_ok() {
        for policy in policies() {
            compared(body.as_ref(), &approving, &policy);
        }
    }
    // The same body without its builder's findings, which may be any text.
    if let Some(plain) = without_builder_findings(&body) {
        let judged = |policy| validate_parsed(plain.as_ref(), &strange, &policy).expect("the pins are whole");
        let strict = judged(Policy::default());
        known(&strict, Profile::Strict);
        known(&judged(Policy::of(Profile::Reference)), Profile::Reference);
        if let Some(sorted) = canonical_text(plain.as_ref()) {
            let sorted = validate(sorted.as_bytes(), &strange, &Policy::default()).expect("the pins are whole");
            assert_eq!(sorted.findings, strict.findings, "the order of members does not matter");
        }
    }
}

/// Whether the session result that is made from these choices is clean under the strict profile.
pub fn is_clean(choices: &[u8]) -> bool {
    body(&mut Unstructured::new(choices)).is_ok_and(|body| {
        let reference = validate_parsed(body.as_ref(), &whole(), &Policy::of(Profile::Reference));
        let findings = reference.map(|verdict| verdict.findings).unwrap_or_default();
        let (approving, _) = approving(body.as_ref(), &findings);
        validate_parsed(body.as_ref(), &approving, &Policy::default()).is_ok_and(|verdict| verdict.accepted())
    })
}

fn policies() -> [Policy; 4] {
    let strict = Policy::default();
    [
        Policy { reject_toolless_roster: true, ..strict.clone() },
        Policy { require_fidelity: false, ..strict.clone() },
        Policy { require_fidelity: false, zero_at_mask1_max_rate: 0.0, sentinel_threshold: -1.0, ..strict.clone() },
        Policy { allow_forks: true, count_retokenized: true, max_inexact_contexts: 1, ..strict },
    ]
}

/// The verdict, which is the same in every way to it.
fn judged(data: &[u8], pins: &Pins, policy: &Policy) -> Verdict {
    let verdict = validate(data, pins, policy);
    assert_eq!(verdict, validate(data, pins, policy), "the same answer twice");
    if let Ok(body) = Value::parse(data) {
        assert_eq!(verdict, validate_parsed(body.as_ref(), pins, policy), "read before or not");
        let written = validate(body.to_json().as_bytes(), pins, policy);
        // Both name the same text, but not the same place in it.
        if verdict.as_ref().is_ok_and(|verdict| verdict.unreadable.is_none()) {
            assert_eq!(verdict, written, "written anew");
        }
    }
    let verdict = verdict.expect("only unusable pins make a validator fail");
    assert!(verdict.unreadable.is_none() || verdict.findings.is_empty(), "nothing is found in no body");
    assert!(!verdict.accepted() || data.len() > 2, "an accepted body says something");
    verdict
}

/// Both profiles side by side.
fn compared(body: ValueRef<'_>, pins: &Pins, policy: &Policy) {
    let judged = |policy: &Policy| validate_parsed(body, pins, policy).expect("the pins are whole");
    let strict = judged(policy);
    let reference = judged(&Policy { profile: Profile::Reference, ..policy.clone() });
    assert_eq!(strict.unreadable, reference.unreadable, "both read the same");
    if policy.allow_forks {
        return; // then a fork is no finding, which it always is for the reference
    }
    let mut rest = strict.findings.iter();
    for finding in &reference.findings {
        let there = finding.starts_with(FALSE_ALARM) || rest.any(|other| other == finding);
        assert!(there, "strict leaves out `{finding}` or its place: {:?} {:?}", strict.findings, reference.findings);
    }
    if strict.accepted() {
        let other = reference.findings.iter().find(|finding| !finding.starts_with(FALSE_ALARM));
        assert_eq!(other, None, "clean under strict is clean under reference");
    }
}

/// Pins that cannot be read are noticed when a gate asks, and then replace the answer.
fn lazy(data: &[u8]) {
    let fault = Pins::from_fault("fault", "gone");
    let reference = Policy::of(Profile::Reference);
    assert!(validate(data, &fault, &Policy::default()).is_err(), "strict asks at once");
    let asks = Value::parse(data).is_ok_and(|body| {
        let traces = elements(body.pointer("/trajectory/traces")).any(|trace| trace.as_object().is_some());
        traces && body.get("trajectory").is_some_and(|trajectory| trajectory.as_object().is_some())
    });
    assert_eq!(validate(data, &fault, &reference).is_err(), asks, "every trace asks, and nothing else does");
}

/// Every finding has a page.
fn known(verdict: &Verdict, profile: Profile) {
    for finding in &verdict.findings {
        let kind = FindingKind::of(finding);
        let made = kind.is_some_and(|kind| match kind.origin {
            Origin::Both => true,
            Origin::Strict => profile == Profile::Strict,
            _ => false,
        });
        assert!(made, "`{finding}` is in the catalogue, made by {profile}");
    }
}

/// Pins that approve what was found not to be approved, with the findings that they silence.
fn approving(body: ValueRef<'_>, findings: &[String]) -> (Pins, BTreeSet<String>) {
    let mut silenced = BTreeSet::new();
    let mut sets = Object::new();
    for (prefix, set) in DIGESTS {
        let mut digests = BTreeSet::new();
        for finding in findings {
            let digest = finding.strip_prefix(prefix).filter(|digest| is_digest(digest) && !is_cut(body, digest));
            if let Some(digest) = digest {
                digests.insert(digest);
                silenced.insert(finding.clone());
            }
        }
        let none = digests.is_empty().then_some("00".repeat(32));
        let digests = digests.into_iter().map(str::to_owned).chain(none).map(Value::from);
        sets.insert(set, digests.collect::<Vec<_>>());
    }
    let tails: Vec<Value<'static>> = tails(body).into_iter().map(|id| Value::from(vec![id])).collect();
    sets.insert("g6_expected_tail_ids", if tails.is_empty() { vec![Value::from(vec![0_u32])] } else { tails });
    (Pins::from_bytes("approving", object([("pins", Value::from(sets))]).to_json().into_bytes()), silenced)
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether a finding shows only the beginning of a card's hash: what it shows is then not what pins must approve.
fn is_cut(body: ValueRef<'_>, shown: &str) -> bool {
    elements(body.pointer("/trajectory/traces")).any(|trace| {
        let card = trace.pointer("/metadata/skill_card_hash").and_then(ValueRef::as_text);
        card.is_some_and(|card| card.lossy().len() > shown.len() && card.lossy().starts_with(shown))
    })
}

/// The last ids of the openings, as far as they are plain ids.
fn tails(body: ValueRef<'_>) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    for trace in elements(body.pointer("/trajectory/traces")) {
        let id = |value: Option<ValueRef<'_>>| value.and_then(ValueRef::as_i64).and_then(|id| u32::try_from(id).ok());
        out.extend(id(elements(trace.get("prompt_ids")).last()));
        let response = elements(trace.get("response_ids"));
        for (mask, value) in elements(trace.get("loss_mask")).skip(1).zip(response) {
            if mask.as_i64() == Some(1) {
                out.extend(id(Some(value)));
            }
        }
    }
    out
}

fn without_builder_findings(body: &Value<'_>) -> Option<Value<'static>> {
    let mut body = body.clone().into_owned();
    let trajectory = body.get_mut("trajectory")?;
    let validation = trajectory.get_mut("metadata").and_then(|m| m.get_mut("gsj_validation"));
    if let Some(validation) = validation.and_then(Value::as_object_mut) {
        validation.remove("findings");
    }
    Some(body)
}
