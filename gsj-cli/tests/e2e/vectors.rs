//! The founders' vectors through the binary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gsj_trace::json::{Value, ValueRef};

use crate::support::{gsj, output, shared, text};

fn vectors(name: &str) -> Option<(PathBuf, Vec<Value<'static>>)> {
    let folder = shared("vectors/checks")?;
    let lines = std::fs::read_to_string(folder.join(name)).unwrap();
    Some((folder, lines.lines().map(|line| parse(line.as_bytes())).collect()))
}

fn parse(bytes: &[u8]) -> Value<'static> {
    Value::parse(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes))).into_owned()
}

fn string(vector: &Value<'_>, key: &str) -> Option<String> {
    vector.get(key).and_then(ValueRef::as_str).map(str::to_owned)
}

fn expected(vector: &Value<'_>) -> Value<'static> {
    match string(vector, "expected_json") {
        Some(json) => parse(json.as_bytes()),
        None => vector.get("expected").unwrap().to_owned(),
    }
}

/// The exact bytes of a vector's input.
fn input(folder: &Path, vector: &Value<'_>) -> Vec<u8> {
    let Some(file) = string(vector, "input_file") else { return vector.get("input").unwrap().to_json().into_bytes() };
    let bytes = std::fs::read(folder.join(file)).unwrap();
    match string(vector, "input_pointer") {
        Some(member) => parse(&bytes).get(member.trim_start_matches('/')).unwrap().to_json().into_bytes(),
        None => bytes,
    }
}

/// The options for a vector's policy.
fn policy(vector: &Value<'_>) -> Vec<String> {
    let knobs = vector.get("policy").and_then(ValueRef::as_object).into_iter().flatten();
    knobs.map(|(key, value)| format!("--policy={}={}", key.escaped(), value.to_json())).collect()
}

/// `id:slug` of each finding.
fn rules(findings: &Value<'_>) -> Vec<String> {
    let findings = findings.as_array().unwrap_or_else(|| panic!("findings: {findings:?}"));
    findings.iter().map(|f| f.show().splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect()
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut bits, mut have) = (0_u32, 0);
    for digit in text.chars().filter_map(|c| DIGITS.find(c)) {
        bits = bits << 6 | u32::try_from(digit).unwrap();
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have).to_le_bytes()[0]);
        }
    }
    out
}

/// Runs `gsj check` on the vectors that share pins and policy, and gives what differs.
fn check(folder: &Path, pins: &Path, vectors: &[&Value<'_>]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    for (i, vector) in vectors.iter().enumerate() {
        std::fs::write(home.path().join(format!("{i:05}.json")), input(folder, vector)).unwrap();
    }
    let mut command = gsj();
    command.args(["check", "--profile", "reference", "--format", "json", "--pins"]).arg(pins);
    let ran = output(command.args(policy(vectors[0])).arg(home.path()));
    let lines: Vec<Value<'_>> = ran.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(parse).collect();
    assert_eq!(lines.len(), vectors.len(), "a line for each: {}", text(&ran));
    let mut wrong = Vec::new();
    let mut clean = true;
    for (i, (vector, line)) in vectors.iter().zip(&lines).enumerate() {
        assert!(string(line, "source").is_some_and(|s| s.ends_with(&format!("{i:05}.json"))), "in order: {line:?}");
        let (want, name) = (expected(vector), string(vector, "name").unwrap_or_default());
        let got = match line.get("error") {
            Some(code) => parse(format!(r#"{{"error":{}}}"#, code.to_json()).as_bytes()),
            None => line.get("findings").unwrap().to_owned(),
        };
        clean &= line.get("error").is_none() && got.as_array().is_some_and(|findings| findings.is_empty());
        let same = match string(vector, "match").as_deref() {
            Some("rules") => rules(&got) == rules(&want),
            _ => got == want,
        };
        if !same {
            wrong.push(format!("{name}:\n want {want:?}\n  got {got:?}"));
        }
    }
    assert_eq!(ran.status.code(), Some(i32::from(!clean)), "{}", text(&ran));
    wrong
}

#[test]
fn check_gives_every_vectors_findings() {
    for file in ["checks.real.jsonl", "checks.mutated.jsonl"] {
        let Some((folder, vectors)) = vectors(file) else { return };
        let mut groups = BTreeMap::<String, Vec<&Value<'_>>>::new();
        for vector in &vectors {
            let key = format!("{:?} {:?}", vector.get("pins"), vector.get("policy"));
            groups.entry(key).or_default().push(vector);
        }
        let mut wrong = Vec::new();
        for group in groups.values() {
            let pins = folder.join(format!("pins/{}.json", string(group[0], "pins").unwrap()));
            wrong.extend(check(&folder, &pins, group));
        }
        assert!(wrong.is_empty(), "{} of {} vectors differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    }
}

#[test]
fn a_pins_fault_ends_the_run() {
    let Some((folder, vectors)) = vectors("pins.jsonl") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for vector in &vectors {
        let name = string(vector, "name").unwrap();
        let wanted = vector.get("pins").unwrap();
        let content = |key| wanted.get(key).and_then(ValueRef::as_str).unwrap().to_owned();
        let file = home.path().join("pins.json");
        let pins = match wanted.get("kind").and_then(ValueRef::as_str) {
            Some("missing") => home.path().join("none.json"),
            Some("directory") => home.path().to_owned(),
            Some("text") => std::fs::write(&file, content("text")).map(|()| file).unwrap(),
            Some("b64") => std::fs::write(&file, base64(&content("b64"))).map(|()| file).unwrap(),
            _ => std::fs::write(&file, wanted.to_json()).map(|()| file).unwrap(),
        };
        let want = expected(vector);
        if want.get("error").is_none() {
            wrong.extend(check(&folder, &pins, &[vector]));
            continue;
        }
        let body = home.path().join("body.json");
        std::fs::write(&body, input(&folder, vector)).unwrap();
        let mut command = gsj();
        command.args(["check", "--profile", "reference", "--format", "json", "--pins"]).arg(&pins);
        let ran = output(command.args(policy(vector)).arg(&body));
        let line = parse(ran.stdout.trim_ascii());
        let told = string(&line, "error").as_deref() == Some("pins_configuration")
            && string(&line, "source").is_some_and(|source| source.ends_with("body.json"))
            && string(&line, "message").is_some_and(|message| message.contains(&pins.display().to_string()));
        if !told || ran.status.code() != Some(2) {
            wrong.push(format!("{name}: {}", text(&ran)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} vectors differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}

#[test]
fn hash_gives_every_canonical_text_and_digest() {
    let Some((_, vectors)) = vectors("canonical.jsonl") else { return };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("document.json");
    let mut wrong = Vec::new();
    for vector in &vectors {
        let name = string(vector, "name").unwrap();
        let bytes = string(vector, "input_text")
            .map_or_else(|| base64(&string(vector, "input_b64").unwrap()), String::into_bytes);
        std::fs::write(&file, bytes).unwrap();
        let want = expected(vector);
        for (option, key) in [(None, "sha256"), (Some("--text"), "canonical")] {
            let ran = output(gsj().args(["pins", "hash", "canonical-json"]).args(option).arg(&file));
            let printed = String::from_utf8(ran.stdout.clone()).unwrap();
            let right = match (want.get("error"), string(&want, key)) {
                (Some(_), _) => printed.is_empty() && ran.status.code() == Some(1),
                (None, Some(value)) => printed == format!("{value}\n") && ran.status.success(),
                (None, None) => printed == "unhashable\n" && ran.status.code() == Some(1),
            };
            if !right {
                wrong.push(format!("{name} {key}: want {want:?}, got {}", text(&ran)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}

#[test]
fn reconstruct_gives_every_trajectory() {
    let Some((folder, vectors)) = vectors("reconstruct.jsonl") else { return };
    let mut groups = BTreeMap::<Vec<String>, Vec<(&Value<'_>, Value<'static>)>>::new();
    for vector in &vectors {
        let input = parse(&input(&folder, vector));
        let mut options = Vec::new();
        options.extend(input.get("engine").and_then(ValueRef::as_str).map(|engine| format!("--engine={engine}")));
        let builder = input.get("builder").unwrap();
        options.extend(builder.get("end_of_turn_token_id").and_then(ValueRef::as_i64).map(|id| format!("--eot={id}")));
        let glue: Vec<String> = builder
            .get("generation_prompt_glue_ids")
            .and_then(ValueRef::as_array)
            .into_iter()
            .flatten()
            .map(|id| id.to_json())
            .collect();
        options.extend((!glue.is_empty()).then(|| format!("--glue={}", glue.join(","))));
        groups.entry(options).or_default().push((vector, input.get("session").unwrap().to_owned()));
    }
    let mut wrong = Vec::new();
    for (options, group) in &groups {
        let home = tempfile::tempdir().unwrap();
        for (i, (_, session)) in group.iter().enumerate() {
            std::fs::write(home.path().join(format!("{i:05}.json")), session.to_json()).unwrap();
        }
        let mut command = gsj();
        let ran = output(
            command.args(["reconstruct", "--continuity=reference", "--format=json"]).args(options).arg(home.path()),
        );
        let lines: Vec<&[u8]> = ran.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
        assert_eq!(lines.len(), group.len(), "a line for each: {}", text(&ran));
        for ((vector, _), line) in group.iter().zip(lines) {
            let (got, want) = (parse(line), expected(vector));
            let same = match want.get("trajectory") {
                // Member order is free, and a value equals one in another order.
                Some(want) => want == got.as_ref(),
                // The reference fails here; ours says what is wrong.
                None => string(&got, "status").as_deref() == Some("ERROR"),
            };
            if !same {
                wrong.push(format!("{}:\n want {want:?}\n  got {got:?}", string(vector, "name").unwrap()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}
