//! `gsj check` as people and programs read it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{fixture, gsj, output, shared, text};

/// A real body that the reference accepts, and the pins that it was made by.
fn accepted() -> Option<(Value, PathBuf)> {
    let body = std::fs::read(shared("vectors/checks/real/h200-fidelity_callback_session_result.json")?).unwrap();
    Some((serde_json::from_slice(&body).unwrap(), shared("vectors/checks/pins/gsj.json")?))
}

/// What a run printed on stdout, with the folder of the test left out.
fn told(ran: &std::process::Output, home: &Path) -> String {
    let shown = String::from_utf8_lossy(&ran.stdout).replace(&format!("{}/", home.display()), "");
    // How long it took is no claim of a test.
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(at) = line.find("  profile ") {
            line.truncate(at);
        }
    }
    lines.join("\n")
}

#[test]
fn one_result_is_told_gate_by_gate() {
    let Some((mut body, pins)) = accepted() else { return };
    let home = tempfile::tempdir().unwrap();
    body["trajectory"]["traces"][0]["tools"][0]["function"]["name"] = json!("another");
    std::fs::write(home.path().join("ses_1.json"), body.to_string()).unwrap();
    let ran =
        output(gsj().args(["check", "--format", "human", "--pins"]).arg(pins).arg(home.path().join("ses_1.json")));
    assert_eq!(ran.status.code(), Some(1));
    insta::assert_snapshot!(told(&ran, home.path()), @r"
    ✗ ses_1.json  sk-polar-44620742-9323-4202-9b58-474b4ed45f26
      pass  ADM  the session completed, its builder found nothing, and there is a trace
      pass  LP   every token has its logprob and a mask of 0 or 1, and the logprobs are a model's
      pass  TR   the last turn ended as a turn does, and nothing was masked or split behind our back
      pass  G1   the prompt's source is known, and a skill's card is an approved one
      pass  G2   the system prompt is an approved one
      FAIL  G3   the tools offered to the model are an approved roster
          G3:tool_roster_hash_not_approved:c7e25cbd21969553fdeec604a6c7064365fb089fa7f5ff9ac32f2adccc3b443e
                   The offered tools are not an approved roster. `gsj pins diff` shows what moved. After
                   an update of the agent or of the retrieval tools' declarations, add the hash that the
                   finding shows to `tool_roster_hash` once you approve of it. Order counts: it follows
                   `harness.tools_allowlist`. `unhashable`: the roster holds NaN, an infinity or a lone
                   surrogate.
      pass  G5   nothing after the timestep was in the checkout or in a search result
      pass  G6   every turn opens with the approved token ids
      pass  G7   one chain holds all completions, and the agent's settings are approved ones
      off   H41  a roster of tools was offered and a tool was called (only where the policy asks)
      pass  TY   ids, messages and the reward have the types that a trainer parses
      off   G8   no text of a later page is in the trace (only where the pages are at hand)
      FAIL  F    every turn was sampled from the context that stands before it
          F1:missing_evidence:gsj_fidelity (2 times)
                   The certificate of what context each turn was sampled from is missing or not well
                   formed. Traces of the Python reference and of the continuity mode `reference` have
                   none: judge them with `--policy require_fidelity=false`, or build with
                   `builder.continuity: same_text`. In other traces of gsj, `metadata.gsj_fidelity` of
                   the trajectory and of the trace must be whole, with one entry for each run of trained
                   tokens: a reply without token ids (S6) or two replies with nothing between them (G6)
                   break that.
    ");
}

#[test]
fn a_few_results_have_their_findings_and_a_summary() {
    let Some((body, pins)) = accepted() else { return };
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let mut late = body.clone();
    late["trajectory"]["traces"][0]["metadata"]["timestep"] = json!(3);
    // As the quarantine keeps it.
    let wrapped = json!({"findings": ["G5:x"], "session_result": late});
    std::fs::write(path("a.json"), body.to_string()).unwrap();
    std::fs::write(path("b.json"), wrapped.to_string()).unwrap();
    std::fs::write(path("c.jsonl"), format!("{body}\n\n{{\n[1]\n")).unwrap();
    let check = |format: &str| {
        let mut command = gsj();
        command.args(["check", "--policy", "require_fidelity=false", "--format", format, "--pins"]).arg(&pins);
        output(command.arg(home.path()))
    };
    let ran = check("human");
    assert_eq!(ran.status.code(), Some(1));
    insta::assert_snapshot!(told(&ran, home.path()), @r"
    ✓ a.json  sk-polar-44620742-9323-4202-9b58-474b4ed45f26
    ✗ b.json  sk-polar-44620742-9323-4202-9b58-474b4ed45f26
        G5:workspace_branch_ne_timestep:timestep-12!=timestep-3
        G5:checkout_max_page_ne_timestep:12!=3
        G5:search_page_gt_timestep:5>3
        G5:search_page_gt_timestep:7>3
        G5:search_page_gt_timestep:9>3
        G5:search_page_gt_timestep:11>3
    ✓ c.jsonl:1  sk-polar-44620742-9323-4202-9b58-474b4ed45f26
    ✗ c.jsonl:3: invalid_json: the body is not JSON: expected a key in double quotes at line 1 column 2 (byte 1)
    ✗ c.jsonl:4: not_an_object: the body is not a JSON object

    5 results: 2 accepted, 3 rejected (2 of them unreadable)

     results  finding
           1  G5:checkout_max_page_ne_timestep
              the checkout's last page is not the timestep; see docs/findings/G5.md
              first in b.json
           1  G5:search_page_gt_timestep
              a search result shows a page after the timestep; see docs/findings/G5.md
              first in b.json
           1  G5:workspace_branch_ne_timestep
              the checkout is of another timestep's branch; see docs/findings/G5.md
              first in b.json
           1  invalid_json
              first in c.jsonl:3
           1  not_an_object
              first in c.jsonl:4
    ");
    let ran = check("json");
    assert_eq!(ran.status.code(), Some(1));
    let json = told(&ran, home.path());
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let session = body["session_id"].clone();
    assert_eq!(lines.len(), 5, "nothing else is on stdout: {json}");
    assert_eq!(lines[0], json!({"source": "a.json", "session_id": session, "findings": []}));
    assert_eq!(lines[1]["findings"].as_array().unwrap().len(), 6, "the quarantine's file is unwrapped: {}", lines[1]);
    assert_eq!(lines[2], json!({"source": "c.jsonl:1", "session_id": session, "findings": []}));
    assert_eq!((&lines[3]["source"], &lines[3]["error"]), (&json!("c.jsonl:3"), &json!("invalid_json")));
    assert_eq!((&lines[4]["source"], &lines[4]["error"]), (&json!("c.jsonl:4"), &json!("not_an_object")));
    assert_eq!(lines[4]["session_id"], Value::Null);
}

#[test]
fn thousands_are_counted_and_only_the_rejected_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("archive.jsonl");
    let mut lines = String::new();
    for n in 0..5000 {
        let status = if n % 100 == 7 { "TIMEOUT" } else { "COMPLETED" };
        let _ = writeln!(lines, r#"{{"session_id":"s{n}","status":"{status}","trajectory":{{"traces":[{{}}]}}}}"#);
    }
    std::fs::write(&path, lines).unwrap();
    let pins = fixture("pins/light.thinking-off.json");
    let ran =
        output(gsj().args(["check", "--profile", "reference", "--format", "human", "--pins"]).arg(&pins).arg(&path));
    let shown = told(&ran, home.path());
    let listed: Vec<&str> = shown.lines().filter(|line| line.starts_with('✗')).collect();
    assert_eq!(listed.len(), 5000, "a bare trace lacks every evidence");
    assert_eq!(listed[6], "✗ archive.jsonl:7  G7:missing_evidence:reconstruction_stats and 8 more");
    assert_eq!(listed[7], "✗ archive.jsonl:8  ADM1:status_not_completed and 9 more");
    assert!(shown.contains("5000 results: 0 accepted, 5000 rejected"), "{shown}");
    assert!(shown.contains("      50  ADM1:status_not_completed\n"), "{shown}");
    assert!(shown.contains("first in archive.jsonl:8"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "nothing is wider than the page");
}

#[test]
fn results_come_by_a_pipe_too() {
    let pins = fixture("pins/light.thinking-off.json");
    let mut command = gsj();
    command.args(["check", "--format", "json", "--profile", "reference", "--pins"]).arg(pins).arg("-");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"session_id\":\"a\"}\n{\"session_id\":\"b\"}\n").unwrap();
    let ran = child.wait_with_output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8_lossy(&ran.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (line["source"].clone(), line["session_id"].clone())).collect();
    assert_eq!(told, [(json!("-:1"), json!("a")), (json!("-:2"), json!("b"))], "{}", text(&ran));
}

#[test]
fn strict_pins_are_a_fault_before_the_first_verdict() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    std::fs::write(path("pins.json"), r#"{"pins":{"tool_roster_hash":[null]}}"#).unwrap();
    std::fs::write(path("a.json"), r#"{"status":"ERROR"}"#).unwrap();
    let check = |profile: &str| {
        let mut command = gsj();
        command.args(["check", "--format", "json", "--profile", profile, "--pins"]).arg(path("pins.json"));
        output(command.arg(path("a.json")))
    };
    let strict = check("strict");
    assert_eq!(strict.status.code(), Some(2), "{}", text(&strict));
    assert!(text(&strict).contains(r#""error":"pins_configuration""#), "{}", text(&strict));
    assert!(text(&strict).contains("settings_hash"), "{}", text(&strict));
    let lazy = check("reference");
    assert_eq!(lazy.status.code(), Some(1), "no gate asked for anything: {}", text(&lazy));
}
