#![expect(clippy::print_stderr, clippy::panic, reason = "a skipped test says so; a vector of an unknown form fails")]

use std::path::{Path, PathBuf};

use gsj_checks::{FINDINGS, Origin, Pins, Policy, Profile, validate, validate_parsed};
use gsj_trace::json::{Value, ValueRef};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks")
}

fn text<'v>(vector: &'v Value<'_>, key: &str) -> Option<&'v str> {
    vector.get(key).and_then(ValueRef::as_str)
}

/// The pins that a vector asks for.
fn pins(wanted: ValueRef<'_>) -> Pins {
    if let Some(name) = wanted.as_str() {
        return Pins::read(&folder().join(format!("pins/{name}.json")));
    }
    let content = |key| wanted.get(key).and_then(ValueRef::as_str).expect("content of the pins file");
    match wanted.get("kind").and_then(ValueRef::as_str) {
        None => Pins::from_bytes("pins", wanted.to_json().into_bytes()),
        Some("missing") => Pins::read(Path::new("/nonexistent/pins.json")),
        Some("directory") => Pins::read(&folder()),
        Some("text") => Pins::from_bytes("pins", content("text").as_bytes().to_vec()),
        Some("b64") => Pins::from_bytes("pins", base64(content("b64"))),
        Some(other) => panic!("unknown kind of pins {other}"),
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut bits, mut have) = (0_u32, 0);
    for digit in text.chars().filter_map(|c| DIGITS.find(c)) {
        bits = bits << 6 | u32::try_from(digit).expect("six bits");
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have).to_le_bytes()[0]);
        }
    }
    out
}

fn policy(wanted: ValueRef<'_>) -> Policy {
    let mut policy = Policy::of(Profile::Reference);
    for (key, value) in wanted.as_object().into_iter().flatten() {
        policy.set(key.as_str().expect("name"), &value.to_json()).expect("knob");
    }
    policy
}

/// The answer in the vectors' notation.
fn answer(vector: &Value<'_>, profile: Profile) -> Vec<String> {
    let (pins, policy) = (pins(vector.get("pins").expect("pins")), policy(vector.get("policy").expect("policy")));
    // Recorded and mutated bodies are those of the reference: they have no certificate.
    let policy = Policy { profile, require_fidelity: false, ..policy };
    let verdict = match (vector.get("input"), text(vector, "input_file")) {
        (Some(input), _) => {
            let verdict = validate(input.to_json().as_bytes(), &pins, &policy);
            assert_eq!(verdict, validate_parsed(input, &pins, &policy), "both ways in give one answer");
            verdict
        }
        (None, file) => {
            let bytes = std::fs::read(folder().join(file.expect("input or input_file"))).expect("input file");
            match text(vector, "input_pointer") {
                None => validate(&bytes, &pins, &policy),
                Some(pointer) => {
                    let whole = Value::parse(&bytes).expect("the file around the body");
                    let body = whole.pointer(pointer).or_else(|| whole.get(pointer)).expect("the body");
                    validate_parsed(body, &pins, &policy)
                }
            }
        }
    };
    match verdict {
        Err(_) => vec!["error PinsConfigurationError".to_owned()],
        Ok(verdict) => match verdict.unreadable {
            Some(reason) => vec![format!("error {}", reason.code())],
            None => verdict.findings,
        },
    }
}

fn expected(vector: &Value<'_>) -> Vec<String> {
    let parsed = text(vector, "expected_json").map(|json| Value::parse(json.as_bytes()).expect("expected_json"));
    let value = match &parsed {
        Some(parsed) => parsed.as_ref(),
        None => vector.get("expected").expect("expected"),
    };
    match value.get("error").and_then(ValueRef::as_str) {
        Some(code) => vec![format!("error {code}")],
        None => value.as_array().expect("findings").iter().map(ValueRef::show).collect(),
    }
}

/// `id:slug` of each finding.
fn rules(findings: &[String]) -> Vec<String> {
    findings.iter().map(|finding| finding.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect()
}

fn run(file: &str, at_least: usize) {
    let path = folder().join(file);
    let lines = match std::fs::read_to_string(&path) {
        Ok(lines) => lines,
        Err(error) => return eprintln!("SKIPPED: vectors {}: {error}", path.display()),
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for line in lines.lines() {
        let vector = Value::parse(line.as_bytes()).expect("vector line");
        let (ours, expected) = (answer(&vector, Profile::Reference), expected(&vector));
        count += 1;
        let equal = match text(&vector, "match") {
            Some("exact") => ours == expected,
            Some("rules") => rules(&ours) == rules(&expected),
            other => panic!("unknown match {other:?}"),
        };
        if !equal {
            let name = text(&vector, "name").unwrap_or_default();
            failures.push(format!("{name}\n  ours     {ours:?}\n  expected {expected:?}"));
        }
    }
    assert!(count >= at_least, "{file} is whole: {count} vectors");
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn recorded_bodies() {
    run("checks.real.jsonl", 28);
}

#[test]
fn mutated_bodies() {
    run("checks.mutated.jsonl", 657);
}

#[test]
fn pins_faults() {
    run("pins.jsonl", 70);
}

/// Kinds of vectors that show a defect which the strict profile guards against with any pins.
const DEFECTS: [&str; 11] = [
    "trajectory_status_ignored",
    "adm2_validation_wrong_type",
    "adm2_findings_falsy",
    "two_traces",
    "g2_system_in_response_ignored",
    "p_shadowed_id",
    "p_unresolved",
    "p_member_forms",
    "p_path_forms",
    "p_name_wrong_type",
    "ws_remotes_zero_like",
];

/// On every vector the strict profile says what the reference says, search results apart, and more.
#[test]
fn strict_takes_nothing_away() {
    let Ok(lines) = std::fs::read_to_string(folder().join("checks.mutated.jsonl")) else {
        return eprintln!("SKIPPED: no vectors in {}", folder().display());
    };
    let mut caught = std::collections::BTreeSet::new();
    for line in lines.lines() {
        let vector = Value::parse(line.as_bytes()).expect("vector line");
        let (name, kind) = (text(&vector, "name").expect("name"), text(&vector, "kind").expect("kind"));
        let (strict, reference) = (answer(&vector, Profile::Strict), answer(&vector, Profile::Reference));
        let mut rest = strict.iter();
        for finding in reference.iter().filter(|finding| !finding.starts_with("G5:search_page_gt_timestep:")) {
            assert!(rest.any(|found| found == finding), "{name}: `{finding}` is missing or out of order in {strict:?}");
        }
        assert!(!strict.is_empty() || reference.is_empty(), "{name}: {reference:?}");
        if let Some(defect) = DEFECTS.iter().find(|defect| **defect == kind) {
            assert!(!strict.is_empty(), "{name}: the defect is caught");
            caught.insert(defect);
        }
        if kind.starts_with("clean") {
            assert_eq!(strict, reference, "{name}: what is clean stays clean");
        }
    }
    assert_eq!(caught.len(), DEFECTS.len(), "each kind is among the vectors: {caught:?}");
}

/// Every kind of the reference is met in the vectors, so none is misspelt.
#[test]
fn the_catalogue_names_what_the_vectors_expect() {
    let Ok(lines) = std::fs::read_to_string(folder().join("checks.mutated.jsonl")) else {
        return eprintln!("SKIPPED: no vectors in {}", folder().display());
    };
    for kind in FINDINGS.iter().filter(|kind| kind.origin == Origin::Both) {
        let met = lines
            .match_indices(&format!("\"{}", kind.prefix))
            .any(|(at, found)| matches!(lines.as_bytes()[at + found.len()], b'"' | b':' | b'.'));
        assert!(met, "{}", kind.prefix);
    }
}
