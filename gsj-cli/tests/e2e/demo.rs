//! `gsj demo`, and the gates on what it made.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{agents_state, file_with, fixture, gsj, output, processes_with, text};

struct Demo {
    home: tempfile::TempDir,
    report: Value,
}

impl Demo {
    fn run() -> Option<Self> {
        let state = agents_state()?;
        let home = tempfile::Builder::new().prefix("gsj-demo-").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let ran = output(gsj().args(["demo", "--format", "json", "--keep"]).arg(home.path()).arg("--state").arg(state));
        assert!(ran.status.success(), "the demo's trace is accepted: {}", text(&ran));
        let report = serde_json::from_slice(&ran.stdout).unwrap();
        Some(Self { home, report })
    }

    fn path(&self, key: &str) -> PathBuf {
        PathBuf::from(self.report[key].as_str().unwrap())
    }

    fn trace(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("trace")).unwrap()).unwrap()
    }

    /// The exit code and the findings of `gsj check` on a changed result.
    fn check(&self, body: &Value) -> (i32, Vec<String>) {
        let path = self.home.path().join("changed.json");
        std::fs::write(&path, serde_json::to_vec(body).unwrap()).unwrap();
        check(&self.path("pins"), &path)
    }
}

fn check(pins: &Path, file: &Path) -> (i32, Vec<String>) {
    let ran = output(gsj().args(["check", "--format", "json", "--pins"]).arg(pins).arg(file));
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran)));
    let findings = line["findings"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect();
    (ran.status.code().unwrap(), findings)
}

/// The exit code and the line of `gsj trace rerender`.
fn rerender(file: &Path) -> (i32, Value) {
    let mut command = gsj();
    command.args(["trace", "rerender", "--format", "json", "--tokenizer"]).arg(fixture("tokenizer/tokenizer.json"));
    let ran = output(command.arg("--template").arg(fixture("template/chat_template.jinja")).arg(file));
    let line = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran)));
    (ran.status.code().unwrap(), line)
}

#[test]
fn the_demo_ends_in_an_accepted_trace_whose_gates_fire_when_it_is_changed() {
    let Some(demo) = Demo::run() else { return };
    let original = demo.trace();
    let trace = &original["trajectory"]["traces"][0];

    assert_eq!(demo.report["findings"], json!([]));
    let mask: Vec<u64> = trace["loss_mask"].as_array().unwrap().iter().map(|m| m.as_u64().unwrap()).collect();
    let turns = mask.windows(2).filter(|w| w == &[0, 1]).count() + usize::from(mask[0] == 1);
    assert!(turns > 1, "more than one turn, {turns}");
    let calls = trace["response_messages"].to_string();
    assert!(calls.contains("mcp_gsj_search_case"), "the agent searched its case");
    for key in ["gsj_settings", "gsj_workspace", "gsj_agent", "gsj_sandbox", "gsj_engine"] {
        assert!(trace["metadata"][key].is_object(), "{key} is measured: {}", trace["metadata"]);
    }
    assert_eq!(trace["metadata"]["gsj_sandbox"]["backend"], "bwrap");
    assert_eq!(trace["metadata"]["gsj_sandbox"]["network"], "none");
    let artifacts = demo.path("artifacts");
    assert!(artifacts.join("pi_transcript.jsonl").is_file() && artifacts.join("session.log").is_file());
    assert!(!demo.report["deliverables"].as_array().unwrap().is_empty(), "the agent delivered something");
    assert_eq!(check(&demo.path("pins"), &demo.path("trace")), (0, vec![]), "the same check by hand");
    let (code, report) = rerender(&demo.path("trace"));
    assert_eq!((code, &report["verdict"], &report["differing"]), (0, &json!("equal"), &json!(0)), "{report}");
    assert_eq!(report["turns"].as_array().unwrap().len(), turns);

    let mut changed = original.clone();
    let described = &mut changed["trajectory"]["traces"][0]["tools"][0]["function"]["description"];
    *described = json!(described.as_str().unwrap().replacen("file", "folder", 1));
    let (code, findings) = demo.check(&changed);
    assert_eq!(code, 1);
    assert!(findings.len() == 1 && findings[0].starts_with("G3:tool_roster_hash_not_approved:"), "{findings:?}");

    let mut changed = original.clone();
    let mask = changed["trajectory"]["traces"][0]["loss_mask"].as_array_mut().unwrap();
    let first_interstitial = mask.iter().position(|m| m == 0).unwrap();
    let next_turn = first_interstitial + mask[first_interstitial..].iter().position(|m| m == 1).unwrap();
    mask[next_turn] = json!(0);
    let (code, findings) = demo.check(&changed);
    assert_eq!(code, 1);
    assert!(findings.iter().any(|f| f.starts_with("G6:interstitial_ne_tail_ids:")), "{findings:?}");

    // A tool's result is edited after the fact, and the file is one of the quarantine.
    let mut changed = original.clone();
    let messages = changed["trajectory"]["traces"][0]["response_messages"].as_array_mut().unwrap();
    let result = messages.iter().position(|m| m["role"] == "tool").unwrap();
    messages[result]["content"] = json!("nothing of this was read");
    let path = demo.home.path().join("edited.json");
    let wrapped = json!({"findings": ["X1:x"], "session_result": changed});
    std::fs::write(&path, serde_json::to_vec(&wrapped).unwrap()).unwrap();
    let (code, report) = rerender(&path);
    assert_eq!((code, &report["verdict"]), (1, &json!("different")));
    assert_eq!(report["first"]["message"], json!({"field": "response_messages", "index": result, "role": "tool"}));

    // One page out of a checkout: what the audit then measures is what the gate sees.
    let workspace = demo.home.path().join("workspace");
    let (case, timestep) = (&trace["metadata"]["case_id"], trace["metadata"]["timestep"].as_u64().unwrap());
    let url = trace["metadata"]["gsj_workspace"]["clone_url"].as_str().unwrap();
    let made = output(
        gsj()
            .args(["cutoff", "checkout", "--repo", url, "--branch", &format!("timestep-{timestep}"), "--dest"])
            .arg(&workspace),
    );
    assert!(made.status.success(), "{}", text(&made));
    std::fs::remove_file(workspace.join("md/page_0002.md")).unwrap();
    let audited = output(gsj().args(["cutoff", "audit", "--format", "json"]).arg(&workspace));
    let mut evidence: Value = serde_json::from_slice(&audited.stdout).unwrap();
    let mut changed = original.clone();
    evidence["evidence"]["case_id"] = case.clone();
    evidence["evidence"]["clone_url"] = json!(url);
    changed["trajectory"]["traces"][0]["metadata"]["gsj_workspace"] = evidence["evidence"].take();
    let (code, findings) = demo.check(&changed);
    assert_eq!(code, 1);
    assert_eq!(findings, [format!("G5:checkout_pages_not_contiguous:1-{timestep}/{}", timestep - 1)]);

    let home = demo.home.path().to_str().unwrap();
    assert_eq!(processes_with(home), Vec::<String>::new(), "nothing of the demo is left running");
    assert!(!std::fs::read_to_string("/proc/mounts").unwrap().contains(home), "no mount is left");
    assert_eq!(file_with(demo.home.path(), b"GSJ_MCP_TOKEN_SECRET="), None);
}

#[test]
fn the_demo_for_people_shows_turns_gates_and_places() {
    let Some(state) = agents_state() else { return };
    let home = tempfile::Builder::new().prefix("gsj-demo-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = output(gsj().args(["demo", "--format", "human", "--keep"]).arg(home.path()).arg("--state").arg(state));
    let shown = String::from_utf8(ran.stdout.clone()).unwrap();
    for part in ["mcp_gsj_search_case", "gates", "G3", "pass", "trace", "transcript", "deliverable", "accepted"] {
        assert!(shown.contains(part), "{part} is shown: {}", text(&ran));
    }
}
