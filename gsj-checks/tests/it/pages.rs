use std::collections::BTreeSet;
use std::path::PathBuf;

use gsj_checks::{FINDINGS, finding_pages};

const CURE: &str = "run `cargo xtask docs`";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/findings")
}

#[test]
fn the_pages_are_those_of_the_catalogue() {
    let pages = finding_pages();
    for page in &pages {
        let stored = std::fs::read_to_string(folder().join(&page.name)).unwrap_or_default();
        assert!(stored == page.text, "docs/findings/{} is stale: {CURE}", page.name);
    }
    let stored: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("docs/findings")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    let wanted: BTreeSet<String> = pages.into_iter().map(|page| page.name).collect();
    assert_eq!(stored, wanted, "docs/findings holds these pages and no others: {CURE}");
}

/// Every section that the index points at is there.
#[test]
fn the_index_leads_to_every_finding() {
    let pages = finding_pages();
    let index = &pages[0].text;
    for kind in FINDINGS {
        let page = pages.iter().find(|page| page.name == kind.page()).expect("a page for each id");
        assert!(page.text.contains(&format!("\n## {}\n", kind.slug())), "{} has a section", kind.prefix);
        assert_eq!(index.matches(&format!("[`{}`]({}#", kind.prefix, page.name)).count(), 1, "{}", kind.prefix);
    }
}

/// What downstream tools search for: a name that changes here breaks them.
#[test]
fn the_names_of_findings_stay() {
    let lines: Vec<String> = FINDINGS.iter().map(|kind| format!("{:?} {}", kind.origin, kind.form())).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    Both ADM1:status_not_completed:{status}
    Both ADM2:builder_findings_present:{count}
    Both ADM3:trajectory_missing
    Both ADM4:no_traces
    Both ADM5:malformed_trace
    Strict ADM6:trajectory_status_not_completed:{status}
    Strict ADM7:missing_evidence:gsj_validation
    Strict ADM8:trace_count_ne_chains_total:{traces}!={chains}
    Both G7:missing_evidence:reconstruction_stats[.{key}]
    Both G7:chains_total_ne_1:{chains}
    Both G7:chains_truncated:{chains}
    Both G7:completions_merged_ne_total:{merged}!={total}
    Both G7:raw_completions_ne_total:{raw}!={total}
    Both G7:missing_evidence:settings
    Both G7:settings_hash_not_approved:{hash}
    Both LP1:response_logprobs_absent
    Both LP2:response_logprobs_length_ne_response_ids:{logprobs}!={tokens}
    Both LP3:sentinel_logprob_at_mask1:first={index}:count={count}
    Both LP4:nonfinite_logprob:first={index}:count={count}
    Both LP5:positive_logprob:first={index}:count={count}
    Both LP6:zero_logprob_rate_at_mask1:{zeros}/{trained}>{limit}
    Both LP7:empty_loss_mask
    Both LP8:loss_mask_length_ne_response_ids:{mask}!={tokens}
    Both LP9:loss_mask_value_not_binary:first={index}:count={count}
    Both TR1:finish_reason_not_allowed:{finish_reason}
    Both TR2:reasoning_loss_mask_masked_tokens:{masked_tokens}
    Both TR3:split_not_train_or_eval:{split}
    Strict TY1:token_id_not_an_integer:{field}:first={index}:count={count}
    Strict TY2:message_not_an_object:{field}:first={index}:count={count}
    Strict TY3:reward_not_a_number:{reward}
    Both G6:missing_evidence:turns
    Both G6:prompt_suffix_ne_tail_ids
    Both G6:interstitial_ne_tail_ids:first={turn}:count={count}
    Strict G6:end_of_turn_inside_span:first={index}:count={count}
    Both H41:roster_offered_zero_tool_calls
    Both G5:missing_evidence:timestep
    Both G5:search_page_gt_timestep:{page}>{timestep}
    Strict G5:search_result_unreadable:{tool_call_id}
    Strict G5:search_result_unresolved:first={message}:count={count}
    Both G5:missing_evidence:workspace[.pages]
    Both G5:checkout_history_posture:shallow={shallow},remotes={remotes}
    Both G5:checkout_pages_not_contiguous:{min}-{max}/{count}
    Both G5:workspace_branch_ne_timestep:{branch}!=timestep-{timestep}
    Both G5:checkout_max_page_ne_timestep:{max}!={timestep}
    Strict G8:later_page_text:{page}:{message}
    Both G1:missing_evidence:prompt_source
    Both G1:missing_evidence:skill_card_hash
    Both G1:skill_card_hash_not_approved:{hash}
    Strict G1:skill_card_hash_not_for_skill:{skill}
    Both G2:missing_evidence:system_prompt
    Both G2:system_prompt_hash_not_approved:{hash}
    Both G3:missing_evidence:tools
    Both G3:tool_roster_hash_not_approved:{hash}
    Strict F1:missing_evidence:gsj_fidelity
    Strict F2:context_hash_mismatch:turn={turn}
    Strict F3:inexact_context:{turns}>{limit}
    Builder A12:non_agent_shape:{completion_id}
    Builder A12:completion_filter_excluded_nonempty:{completion_ids}
    Builder A15:end_of_turn_token_id_not_configured
    Builder R11:roster_changed_across_completions
    Builder S1:empty_prompt_ids:{completion_id}
    Builder S3:duplicate_consecutive_prompt:{completion_id}
    Builder S6:empty_response_ids:{completion_id}
    Builder S7:mid_chain_finish_length:{completion_id}
    Builder S8:choices_len_ne_1:{completion_id}:{choices}
    Builder S9:policy_version_mixed:{versions}
    Builder S10:context_rewritten:{completion_id}
    Builder S11:context_template:{completion_id}
    Builder S12:control_token_in_text:{completion_id}:{token_id}
    Builder S13:usage_mismatch:{completion_id}:{ids}!={usage}
    Builder S14:logprobs_incomplete:{completion_id}:{logprobs}!={ids}
    Builder S15:token_id_not_an_integer:{completion_id}:{prompt|response}:first={index}
    Builder S16:logprob_not_finite:{completion_id}:first={index}
    Builder S17:session_field_invalid:{path}
    Builder S18:message_nested_too_deep:{completion_id}
    Builder S19:policy_version_not_a_scalar:{completion_id}
    ");
}
