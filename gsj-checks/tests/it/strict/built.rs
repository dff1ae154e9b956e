//! Certificates as our builder writes them: what it calls exact has its hash.

use std::path::PathBuf;

use gsj_checks::{Pins, Policy, validate_parsed};
use gsj_trace::engine::{Dialect, normalize_whole};
use gsj_trace::json::{Object, Value, ValueRef};
use gsj_trace::reconstruct::{Continuity, Options, build};

/// The trajectory that our builder makes of a vector's session.
fn trajectory(input: ValueRef<'_>, continuity: Continuity) -> Option<Value<'static>> {
    let mut session = input.get("session")?.to_owned();
    if let Some(dialect) = input.get("engine").and_then(ValueRef::as_str).and_then(Dialect::from_name) {
        for record in session.get_mut("completions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(response) = record.get_mut("response") {
                normalize_whole(dialect, response);
            }
        }
    }
    let end = input.get("builder").and_then(|builder| builder.get("end_of_turn_token_id")).and_then(ValueRef::as_i64);
    build(&session, &Options { continuity, end_of_turn_token_id: end, ..Options::default() }).ok()
}

fn has(findings: &[String], prefixes: &[&str]) -> bool {
    findings.iter().any(|finding| prefixes.iter().any(|prefix| finding.starts_with(prefix)))
}

#[test]
fn a_built_trace_proves_its_contexts() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks");
    let Ok(lines) = std::fs::read_to_string(folder.join("reconstruct.jsonl")) else {
        return eprintln!("SKIPPED: no vectors in {}", folder.display());
    };
    let pins = Pins::read(&folder.join("pins/small.json"));
    let (mut proven, mut several) = (0, 0);
    for line in lines.lines() {
        let vector = Value::parse(line.as_bytes()).expect("a vector");
        let name = vector.get("name").map(ValueRef::show).unwrap_or_default();
        let file = vector.get("input_file").and_then(ValueRef::as_str).map(|file| folder.join(file));
        let bytes = file.map(|file| std::fs::read(file).expect("an input file"));
        let of_file = bytes.as_deref().map(|bytes| Value::parse(bytes).expect("json"));
        let input = of_file.as_ref().map_or_else(|| vector.get("input"), |value| Some(value.as_ref())).expect("input");
        for continuity in [Continuity::Exact, Continuity::SameText] {
            let Some(trajectory) = trajectory(input, continuity) else { continue };
            let traces = trajectory.get("traces").and_then(ValueRef::as_array).map_or(0, |traces| traces.len());
            let body =
                Value::from(Object::from_iter([("status", Value::from("COMPLETED")), ("trajectory", trajectory)]));
            let found = validate_parsed(body.as_ref(), &pins, &Policy::default()).expect("pins are whole").findings;
            assert!(!has(&found, &["F2:", "F3:"]), "{name}: {found:?}");
            if has(&found, &["F1:"]) {
                // Where replies and runs are not one to one, something else says so too.
                let excused = ["S6:", "S15:", "G6:", "ADM4:"];
                assert!(has(&found, &excused), "{name}: {found:?}");
            } else {
                proven += 1;
                several += usize::from(traces > 1);
            }
        }
    }
    assert!(proven > 50 && several > 5, "the vectors hold whole sessions, forked ones among them: {proven}, {several}");
}
