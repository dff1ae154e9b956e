//! Every finding that the reference profile can make (`checks.md` section 9).

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingKind {
    /// `ID:slug`, what downstream tools search for.
    pub prefix: &'static str,
    /// What it says, in one line.
    pub meaning: &'static str,
}

const fn kind(prefix: &'static str, meaning: &'static str) -> FindingKind {
    FindingKind { prefix, meaning }
}

/// All kinds, by gate. Findings of the trajectory's builder come on top, through ADM2.
pub const FINDINGS: &[FindingKind] = &[
    kind("ADM1:status_not_completed", "the session's status is not COMPLETED"),
    kind("ADM2:builder_findings_present", "the builder found faults; they follow, each as a finding of its own"),
    kind("ADM3:trajectory_missing", "there is no trajectory object"),
    kind("ADM4:no_traces", "the trajectory holds no trace"),
    kind("ADM5:malformed_trace", "a trace is not an object"),
    kind("G1:missing_evidence:prompt_source", "the trace does not say where its prompt came from"),
    kind("G1:missing_evidence:skill_card_hash", "a skill's prompt comes without the hash of its card"),
    kind("G1:skill_card_hash_not_approved", "the skill card is not an approved one"),
    kind("G2:missing_evidence:system_prompt", "the prompt has no system message"),
    kind("G2:system_prompt_hash_not_approved", "a system message is not an approved one"),
    kind("G3:missing_evidence:tools", "the trace does not say which tools were offered"),
    kind("G3:tool_roster_hash_not_approved", "the offered tools are not an approved roster"),
    kind("G5:checkout_history_posture", "the checkout is not shallow or has remotes"),
    kind("G5:checkout_max_page_ne_timestep", "the checkout's last page is not the timestep"),
    kind("G5:checkout_pages_not_contiguous", "the checkout's pages are not 1 to the last"),
    kind("G5:missing_evidence:timestep", "the timestep is nowhere stated"),
    kind("G5:missing_evidence:workspace", "what the checkout held, or its page census, is not recorded"),
    kind("G5:search_page_gt_timestep", "a search result names a page after the timestep"),
    kind("G5:workspace_branch_ne_timestep", "the checkout is of another timestep's branch"),
    kind("G6:interstitial_ne_tail_ids", "a later turn does not open with the approved token ids"),
    kind("G6:missing_evidence:turns", "no token is trained on, so there is no turn"),
    kind("G6:prompt_suffix_ne_tail_ids", "the first turn does not open with the approved token ids"),
    kind("G7:chains_total_ne_1", "the completions form more than one chain, or none"),
    kind("G7:chains_truncated", "a chain could not be merged to its end"),
    kind("G7:completions_merged_ne_total", "not every completion is in the trace"),
    kind("G7:missing_evidence:reconstruction_stats", "the counts of the reconstruction are missing"),
    kind("G7:missing_evidence:settings", "the agent's settings are not recorded"),
    kind("G7:raw_completions_ne_total", "completions were dropped before the reconstruction"),
    kind("G7:settings_hash_not_approved", "the agent's settings are not approved ones"),
    kind("H41:roster_offered_zero_tool_calls", "tools were offered and none was called"),
    kind("LP1:response_logprobs_absent", "trained tokens have no logprobs"),
    kind("LP2:response_logprobs_length_ne_response_ids", "there are more or fewer logprobs than tokens"),
    kind("LP3:sentinel_logprob_at_mask1", "a trained token has a floor value in place of its logprob"),
    kind("LP4:nonfinite_logprob", "a logprob is not a finite number"),
    kind("LP5:positive_logprob", "a logprob is above zero"),
    kind("LP6:zero_logprob_rate_at_mask1", "too many trained tokens have the logprob zero"),
    kind("LP7:empty_loss_mask", "there are tokens and no mask"),
    kind("LP8:loss_mask_length_ne_response_ids", "the mask is longer or shorter than the tokens"),
    kind("LP9:loss_mask_value_not_binary", "a mask entry is neither 0 nor 1"),
    kind("TR1:finish_reason_not_allowed", "the last turn ended in a way that no turn may"),
    kind("TR2:reasoning_loss_mask_masked_tokens", "reasoning was masked after sampling"),
    kind("TR3:split_not_train_or_eval", "the split is neither train nor eval"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gate;

    #[test]
    fn the_catalogue_is_complete_and_sorted_into_gates() {
        assert_eq!(FINDINGS.len(), 42);
        assert!(FINDINGS.is_sorted_by_key(|kind| kind.prefix));
        for kind in FINDINGS {
            assert!(Gate::of_finding(kind.prefix).is_some(), "{} has a gate", kind.prefix);
        }
    }
}
