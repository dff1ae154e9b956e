//! `gsj show` as a person reads it.

use serde_json::json;

use crate::support::{fixture, gsj, output, text};

/// A small result of two turns, as a server writes one.
pub(crate) fn result() -> serde_json::Value {
    let call = json!({"id": "k1", "type": "function",
        "function": {"name": "mcp_gsj_search_case", "arguments": r#"{"query": "signed"}"#}});
    json!({
        "session_id": "ses_1", "task_id": "task-1", "status": "COMPLETED", "error": null, "node_id": "n",
        "timing": {"init_ms": 101.0, "run_ms": 2300.5, "postrun_ms": 7.2}, "metadata": {"case_id": "harbor-lease"},
        "trajectory": {"status": "COMPLETED", "error": null,
            "metadata": {"model_used": "m", "gsj_validation": {"findings": []},
                "reconstruction_stats": {"chains_total": 1, "chains_reconstructed_full": 1,
                    "chains_reconstructed_truncated": 0, "raw_completions_total": 2, "completions_total": 2,
                    "completions_merged": 2},
                "gsj_fidelity": {"continuity": "same_text", "completions": 2, "exact": 1, "retokenized": 1, "template": 0,
                    "rewritten": 0, "inexact": 0, "superseded": 0,
                    "tokenizer": "ae566a96943a3b48167a22355b431704e3e04460"}},
            "traces": [{
                "prompt_ids": [5, 1, 2083, 207], "response_ids": [10, 11, 2, 207, 1, 2083, 207, 12, 2],
                "loss_mask": [1, 1, 1, 0, 0, 0, 0, 1, 1],
                "response_logprobs": [-0.5, -1.5, -0.01, 0.0, 0.0, 0.0, 0.0, -2.0, -0.02],
                "finish_reason": "stop", "reward": null, "tools": [{"type": "function"}],
                "prompt_messages": [{"role": "system", "content": "You are a clerk."},
                    {"role": "user", "content": "Who signed the lease, and when?"}],
                "response_messages": [{"role": "assistant", "content": null, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "k1", "content": ""},
                    {"role": "assistant", "content": "Nobody did, so far."}],
                "metadata": {"case_id": "harbor-lease", "timestep": 3, "prompt_source": "free",
                    "gsj_settings": {"compaction": {"enabled": false}},
                    "gsj_workspace": {"commit": "3aa70d6391c227b8e05e3b53c1e242060b95154a", "shallow": true, "remotes": 0,
                        "branch": "timestep-3", "pages": {"count": 3, "min": 1, "max": 3}},
                    "gsj_fidelity": {"turns": [
                        {"completion_id": "c1", "kind": "exact", "differing_tokens": 0,
                            "context_sha256": "4d24a14e88d2027e6d985ae78fb067a5bd6ddf7f3c0134c96f661bfcd62e135f"},
                        {"completion_id": "c2", "kind": "retokenized", "differing_tokens": 2,
                            "context_sha256": "4d24a14e88d2027e6d985ae78fb067a5bd6ddf7f3c0134c96f661bfcd62e135f"}]}}
            }]}
    })
}

#[test]
fn a_result_is_shown_whole_with_every_gate() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("ses_1.json");
    std::fs::write(&file, result().to_string()).unwrap();
    let project = fixture("..");
    let ran = output(
        gsj().arg("show").arg(&file).args(["--pins", "fixtures/pins/light.thinking-on.json"]).current_dir(&project),
    );
    assert!(ran.status.success(), "{}", text(&ran));
    insta::assert_snapshot!(String::from_utf8_lossy(&ran.stdout), @r#"
    session   ses_1
    task      task-1
    status    COMPLETED
    case      harbor-lease, timestep 3, prompt free
    checkout  commit 3aa70d6391c2, 3 pages 1..3
    model     m
    time      init 101 ms, run 2.3 s, postrun 7 ms

    trace 1 of 1: 4 prompt ids, 9 response ids, 2 trained spans, 1 tool, finish stop
      1  system    You are a clerk.
      2  user      Who signed the lease, and when?
      3  assistant
                   -> mcp_gsj_search_case {"query": "signed"}
                   mask 1 0..3, 3 tokens, logprob min -1.500 mean -0.670
      4  tool      mcp_gsj_search_case:
      5  assistant Nobody did, so far.
                   mask 1 7..9, 2 tokens, logprob min -2.000 mean -1.010
                   context retokenized, 2 ids differ from what the trace says before it

    total     2 assistant turns, 1 tool call, 4 prompt ids, 9 response ids, 5 trained on
    contexts  2 completions: 1 exact, 1 retokenized; continuity same_text; tokenizer ae566a96943a
    builder   no findings

    gates by fixtures/pins/light.thinking-on.json (profile strict)
      pass  ADM  the session completed, its builder found nothing, and there is a trace
      pass  LP   every token has its logprob and a mask of 0 or 1, and the logprobs are a model's
      pass  TR   the last turn ended as a turn does, and nothing was masked or split behind our back
      pass  G1   the prompt's source is known, and a skill's card is an approved one
      FAIL  G2   the system prompt is an approved one
          G2:system_prompt_hash_not_approved:219b7a769f6c17a08c58d4097ddf64c493d52a5c78f966b32c8a0bbbef01882c
                   An instruction is not an approved one. Compare the message with the text that the
                   hash was made of. After an update of the agent, read what it says now, and add the
                   hash that the finding shows to `system_prompt_hash` once you approve of it.
                   `unhashable`: the text holds a lone surrogate.
      FAIL  G3   the tools offered to the model are an approved roster
          G3:tool_roster_hash_not_approved:e786005e014cf950ba676f2c0a8dc316bbaa6f77781be29f83951952834dbf85
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
      pass  F    every turn was sampled from the context that stands before it

    rejected: 2 findings
    "#);
}

#[test]
fn without_pins_no_gate_is_judged() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("q.json");
    let quarantined = json!({"findings": ["LP4:nonfinite_logprob:first=3:count=1"], "session_result": result()});
    std::fs::write(&file, quarantined.to_string()).unwrap();
    let ran = output(gsj().arg("show").arg(&file).current_dir(home.path()));
    let shown = text(&ran);
    assert!(ran.status.success(), "{shown}");
    assert!(shown.contains("rejected  LP4:nonfinite_logprob:first=3:count=1"), "{shown}");
    assert!(shown.contains("gates were not judged"), "{shown}");
    std::fs::write(&file, "[1]").unwrap();
    let ran = output(gsj().arg("show").arg(&file));
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("no session result"), "{}", text(&ran));
}
