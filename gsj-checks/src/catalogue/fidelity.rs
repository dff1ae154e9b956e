//! What context each turn was sampled from.

use super::{FindingKind, strict};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        section: "11.6",
        meaning: "the certificate of what context each turn was sampled from is missing or not well formed",
        why: "Without it a trace may join a reply with a context that the engine never saw, and its logprobs belong to other \
              words than those before them.",
        action: "Traces of the Python reference and of the continuity mode `reference` have none: judge them with \
                 `--policy require_fidelity=false`, or build with `builder.continuity: same_text`. In other traces of gsj, `metadata.gsj_fidelity` of the trajectory and of the trace must be whole, with one entry for each run \
                 of trained tokens: a reply without token ids (S6) or two replies with nothing between them (G6) break that.",
        ..strict("F1:missing_evidence:gsj_fidelity", "", None)
    },
    FindingKind {
        section: "11.6",
        meaning: "the context before a turn is not the one that the engine was given",
        why: "The certificate calls the turn exact, and the ids before it have another hash: ids or mask were changed after \
              building.",
        action: "Turns count from 1. Contexts grow, so look at the first turn that is named: what stands before it was changed. Fetch the body \
                 again from where it was stored, or build it anew from the session's record with `gsj reconstruct`.",
        ..strict("F2:context_hash_mismatch", ":turn={turn}", None)
    },
    FindingKind {
        section: "11.6",
        meaning: "turns were joined to a context that the engine did not see",
        why: "Their logprobs were computed after other words, so the importance ratio is wrong from there on.",
        action: "Build the session's record again with `builder.continuity: same_text`, which begins another trace at such a \
                 turn. Where `count_retokenized` is set, turns count that differ in ids and not in text: `exact` begins \
                 another trace at those too. To accept a few, raise the policy `max_inexact_contexts`.",
        ..strict("F3:inexact_context", ":{turns}>{limit}", None)
    },
];
