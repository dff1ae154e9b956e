//! What was put in front of the model: skill, system prompt, tools.

use super::{FindingKind, kind, strict};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "the trace does not say where its prompt came from",
        why: "A prompt of unknown origin may contain anything, the answer included.",
        action: "Set `prompt_source` in the task's metadata: `free`, or `skill:NAME` with the hash of the skill's card.",
        ..kind("G1:missing_evidence:prompt_source", "", "8.12")
    },
    FindingKind {
        meaning: "a skill's prompt comes without the hash of its card",
        why: "Which version of the skill the agent was given cannot be told.",
        action: "Put the card's hash into the task's metadata as `skill_card_hash` (`gsj pins hash text skills/NAME/SKILL.md`). \
                 Rows of a task bank carry it.",
        ..kind("G1:missing_evidence:skill_card_hash", "", "8.12")
    },
    FindingKind {
        meaning: "the skill card is not an approved one",
        why: "The agent worked by instructions that nobody approved.",
        action: "If the card was changed on purpose, approve it: `gsj pins derive --skills DIR`. If the pins approve no cards \
                 at all, their estate has no skills and no such task should run.",
        ..kind("G1:skill_card_hash_not_approved", ":{hash}", "8.12")
    },
    FindingKind {
        meaning: "the card is approved, if at all, for another skill",
        why: "The prompt asked for one skill and the agent was given the card of another. The reference takes any approved \
              card for any skill.",
        action: "Compare the hash in the trace's metadata with `skill_cards` of the pins under that name. Either the task \
                 bank is older than the card, or the pins lack the skill.",
        ..strict("G1:skill_card_hash_not_for_skill", ":{skill}", Some("D19"))
    },
    FindingKind {
        meaning: "the prompt has no system message",
        why: "The agent ran without its instructions, or they were sent in a way that no rule looks at.",
        action: "Look at the first request in `session.log`. An agent that sends its instructions as role `developer` must be \
                 set to `system` (pi: `supportsDeveloperRole: false`).",
        ..kind("G2:missing_evidence:system_prompt", "", "8.11")
    },
    FindingKind {
        meaning: "an instruction is not an approved one",
        why: "The agent was told something that nobody approved: another version of it, or a file of the workspace that made \
              its way into the prompt.",
        action: "Compare the message with the text that the hash was made of. After an update of the agent, read what it says \
                 now, and add the hash that the finding shows to `system_prompt_hash` once you approve of it. `unhashable`: \
                 the text holds a lone surrogate.",
        strict: Some(
            "Messages of role `developer` count too, and `system` and `developer` messages among the responses.",
        ),
        defect: Some("D7"),
        ..kind("G2:system_prompt_hash_not_approved", ":{hash}", "8.11")
    },
    FindingKind {
        meaning: "the trace does not say which tools were offered",
        why: "What the model could have called decides what its choice means.",
        action: "Look at the first request in `session.log`: an agent that offers no tools is set up wrongly (pi: `--tools`).",
        ..kind("G3:missing_evidence:tools", "", "8.10")
    },
    FindingKind {
        meaning: "the offered tools are not an approved roster",
        why: "One word of a description changes how a model uses a tool: the trace is of another policy.",
        action: "`gsj pins diff` shows what moved. After an update of the agent or of the retrieval tools' declarations, add \
                 the hash that the finding shows to `tool_roster_hash` once you approve of it. Order counts: it follows \
                 `harness.tools_allowlist`. `unhashable`: the roster holds NaN, an infinity or a lone surrogate.",
        ..kind("G3:tool_roster_hash_not_approved", ":{hash}", "8.10")
    },
];
