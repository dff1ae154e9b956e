//! Whether there is anything to judge.

use super::{FindingKind, kind, strict};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "the session's status is not COMPLETED",
        why: "The agent, the engine or a limit ended the session early; what there is of a trace shows half an episode.",
        action: "Read the result's `error`: it names the part and the fact. `docs/operator.md` lists how these sentences \
                 begin and what to do about each. Submit the task again once the cause is gone.",
        ..kind("ADM1:status_not_completed", ":{status}", "8.2")
    },
    FindingKind {
        meaning: "the builder found faults; they follow, each as a finding of its own",
        why: "The builder has seen every model call and the validators only what it made of them: it knows of faults that \
              no trace shows.",
        action: "Look at the findings right after this one; each has a page of its own (A, R and S).",
        strict: Some(
            "With the policy `allow_forks`, S10 and S11 are not counted: the certificate counts forks instead.",
        ),
        ..kind("ADM2:builder_findings_present", ":{count}", "8.2")
    },
    FindingKind {
        meaning: "there is no trajectory object",
        why: "There is nothing to train on.",
        action: "If `status` is not COMPLETED, its reason is the reason. Else the body is cut short or is not a session \
                 result: compare it with `artifacts/<session>/` of the server that made it.",
        ..kind("ADM3:trajectory_missing", "", "8.2")
    },
    FindingKind {
        meaning: "the trajectory holds no trace",
        why: "There is nothing to train on.",
        action: "See `trajectory.error` and `metadata.completion_filter`: either no model call was recorded, or all of \
                 them were set aside, and the reasons stand there.",
        ..kind("ADM4:no_traces", "", "8.2")
    },
    FindingKind {
        meaning: "a trace is not an object",
        why: "Nothing can be said of it, and a trainer's parser will stop at it.",
        action: "The body was damaged or made by something else than a builder. Fetch it again from where it was stored; \
                 if it is the same there, report the program that wrote it.",
        ..kind("ADM5:malformed_trace", "", "8.1")
    },
    FindingKind {
        meaning: "the trajectory's own status is not COMPLETED",
        why: "The builder calls the trajectory failed, aborted for instance, while the session as a whole claims success. \
              The reference looks at the session's status alone.",
        action: "Read `trajectory.error`. After `aborted generation` the weights were updated in mid-episode: drop the \
                 result and let the task run again. After `gsj validation failed` see the builder's findings.",
        ..strict("ADM6:trajectory_status_not_completed", ":{status}", Some("D2"))
    },
    FindingKind {
        meaning: "the builder does not say whether it found anything",
        why: "Without its list of findings, no findings cannot be told from no checks: the reference takes silence for \
              success.",
        action: "`trajectory.metadata.gsj_validation.findings` must be a list, empty if there is nothing to say. Build with \
                 the validating builder: gsj does, the reference's plain prefix merging does not.",
        ..strict("ADM7:missing_evidence:gsj_validation", "", Some("D2"))
    },
    FindingKind {
        meaning: "the number of traces is not the number of chains that the builder counted",
        why: "Traces were added or taken away after building; which of them are the episode cannot be told.",
        action: "Compare the body with the one in the server's state folder. If the builder itself wrote it so, report it \
                 with the session's record.",
        ..strict("ADM8:trace_count_ne_chains_total", ":{traces}!={chains}", Some("D2"))
    },
];
