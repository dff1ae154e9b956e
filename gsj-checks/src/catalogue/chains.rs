//! Whether all completions are in one trace, and under which settings they were made.

use super::{FindingKind, kind};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "the counts of the reconstruction are missing",
        why: "Without them nobody knows how many model calls the trace leaves out.",
        action: "`trajectory.metadata.reconstruction_stats` must hold five integers; the finding names the first that is \
                 missing or is no integer. A failed session has none: then its status is the finding to read.",
        ..kind("G7:missing_evidence:reconstruction_stats", "[.{key}]", "8.3")
    },
    FindingKind {
        meaning: "the completions form more than one chain, or none",
        why: "The agent's history did not simply grow: a later prompt does not extend an earlier one. Each trace then shows \
              a part of the episode, and the reward belongs to none of them alone.",
        action: "Look at the certificate's kinds (`gsj show`): `template` means that the chat template changes earlier turns \
                 (thinking that is stripped, most often), `rewritten` that the agent edits its history or runs helpers. \
                 Change the template or the agent's settings. To train on the parts, set the policy `allow_forks`.",
        strict: Some(
            "With the policy `allow_forks` the number of chains is held against the number of traces instead (ADM8).",
        ),
        ..kind("G7:chains_total_ne_1", ":{chains}", "8.3")
    },
    FindingKind {
        meaning: "a chain could not be merged to its end",
        why: "The end of the episode is missing from the trace, and with it what the reward was given for.",
        action: "Most often the end-of-turn id is wrong for this model: check `builder.end_of_turn_token_id` and the pins' \
                 `end_of_turn_ids` against the tokenizer.",
        ..kind("G7:chains_truncated", ":{chains}", "8.3")
    },
    FindingKind {
        meaning: "not every completion is in the trace",
        why: "Tokens that the model sampled, and that shaped the episode, would not be trained on.",
        action: "See G7:chains_truncated, which usually stands beside it; else `metadata.completion_filter` and the \
                 builder's findings say which call was left out.",
        ..kind("G7:completions_merged_ne_total", ":{merged}!={total}", "8.3")
    },
    FindingKind {
        meaning: "completions were dropped before the reconstruction",
        why: "A call that the agent made is not in the trace: an auxiliary request, a truncated record or an empty answer.",
        action: "`metadata.completion_filter.excluded` names each with its reason. For `non_agent_side_completion` switch \
                 the agent's side calls (titles, summaries) off; for the others read `session.log` at that call.",
        ..kind("G7:raw_completions_ne_total", ":{raw}!={total}", "8.3")
    },
    FindingKind {
        meaning: "the agent's settings are not recorded",
        why: "Settings decide what the agent does behind the transcript: compaction and retries change what a turn saw.",
        action: "The trace's `metadata.gsj_settings` must hold the document that was rendered. gsj writes it; a body \
                 without it was made by something else or lost its metadata on the way.",
        ..kind("G7:missing_evidence:settings", "", "8.13")
    },
    FindingKind {
        meaning: "the agent's settings are not approved ones",
        why: "The episode ran under rules that nobody agreed to, so it is not comparable with the others.",
        action: "Compare `metadata.gsj_settings` with the configuration's `harness.settings`. If the change is meant, add the \
                 hash that the finding shows to `settings_hash` of the pins (`gsj pins derive --settings F` gives the same). \
                 `unhashable`: the document holds NaN, an infinity or a lone surrogate.",
        ..kind("G7:settings_hash_not_approved", ":{hash}", "8.13")
    },
];
