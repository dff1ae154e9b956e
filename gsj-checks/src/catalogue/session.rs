//! What the builder of a trajectory finds in the record of a session.

use super::{FindingKind, Origin, kind};

const fn builder(prefix: &'static str, detail: &'static str, section: &'static str) -> FindingKind {
    FindingKind { origin: Origin::Builder, ..kind(prefix, detail, section) }
}

/// A finding that only our continuity modes make.
const fn ours(prefix: &'static str, detail: &'static str, defect: Option<&'static str>) -> FindingKind {
    FindingKind { defect, ..builder(prefix, detail, "11.6") }
}

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "a call does not look like one of an agent",
        why: "It lacks a system message, tools or a stream flag: a side call (a title, a summary) would be trained as part of \
              the episode.",
        action: "Look at the call in `session.log`, and switch the agent's side calls off.",
        ..builder("A12:non_agent_shape", ":{completion_id}", "10.3")
    },
    FindingKind {
        meaning: "calls were set aside before building",
        why: "What the agent asked there shaped the episode and is not in the trace.",
        action: "`metadata.completion_filter.excluded` gives the reason of each; see G7:raw_completions_ne_total.",
        ..builder("A12:completion_filter_excluded_nonempty", ":{completion_ids}", "10.3")
    },
    FindingKind {
        meaning: "no end-of-turn id is configured",
        why: "Without it a turn's end is guessed from the first reply that stopped, which can be wrong.",
        action: "Set `builder.end_of_turn_token_id`, or state exactly one id in `end_of_turn_ids` of the pins.",
        ..builder("A15:end_of_turn_token_id_not_configured", "", "10.3")
    },
    FindingKind {
        meaning: "the tools changed in mid-session",
        why: "The trace states one roster; some of its turns were sampled under another.",
        action: "See which call in `session.log` differs: an agent that loads tools late must load them before its first call.",
        ..builder("R11:roster_changed_across_completions", "", "10.3")
    },
    FindingKind {
        meaning: "a call came without prompt ids",
        why: "What the model was given is unknown, so its reply cannot be joined to anything.",
        action: "The engine does not return prompt ids: check its version and `engine.kind` (vLLM 0.10.2 or later, or SGLang).",
        ..builder("S1:empty_prompt_ids", ":{completion_id}", "10.3")
    },
    FindingKind {
        meaning: "two calls in a row had the same prompt",
        why: "The agent tried again: one of the replies was thrown away, and both look like turns.",
        action: "Look for an error between the two in `session.log`: a dropped connection or a malformed answer. Switch the \
                 agent's retries off where the pins allow that settings document.",
        ..builder("S3:duplicate_consecutive_prompt", ":{completion_id}", "10.3")
    },
    FindingKind {
        meaning: "a call came without response ids",
        why: "Nothing of the reply can be trained on, and the certificate cannot name its turn.",
        action: "See the engine's answer in `session.log`: an empty reply, ids in another place than the dialect's, or an \
                 entry among them that is no integer (S15).",
        ..builder("S6:empty_response_ids", ":{completion_id}", "10.3")
    },
    FindingKind {
        meaning: "a reply before the last was cut off by its length",
        why: "The agent went on with half a sentence or half a call; the template may close it with tokens that the model \
              never sampled.",
        action: "Raise `engine.sampling.max_tokens` or `harness.max_tokens`, or the context window.",
        ..builder("S7:mid_chain_finish_length", ":{completion_id}", "10.3")
    },
    FindingKind {
        meaning: "an answer does not have exactly one choice",
        why: "With several it is not known which the agent used; with none there is no reply.",
        action: "Nothing may ask for `n` above 1. For 0 see the engine's answer in `session.log`.",
        defect: Some("D18"),
        ..builder("S8:choices_len_ne_1", ":{completion_id}:{choices}", "10.3")
    },
    FindingKind {
        meaning: "the weights changed in mid-session",
        why: "Turns of different policies stand in one trace, so no single one can be the behaviour policy of it.",
        action: "Drop the result, or let sessions end before the weights are updated. `None` is a call that states no version.",
        ..builder("S9:policy_version_mixed", ":{versions}", "10.3")
    },
    FindingKind {
        meaning: "the text before a turn is not what was said before",
        why: "An earlier reply, a tool result or a user message was edited or dropped: the turn was sampled from another \
              history than the trace would show. It begins a trace of its own.",
        action: "Find out what rewrites the history: compaction, an agent that normalises its own calls, a proxy. Compare the \
                 call's prompt with the one before it in `session.log`.",
        ..ours("S10:context_rewritten", ":{completion_id}", Some("D13"))
    },
    FindingKind {
        meaning: "the template renders an earlier reply otherwise than it was sampled",
        why: "Most often thinking is stripped from history: the turn was sampled without it, and the trace would show it \
              before the turn. It begins a trace of its own.",
        action: "Use a template that keeps earlier turns as they are, or switch thinking off. `gsj trace rerender` shows the \
                 difference.",
        ..ours("S11:context_template", ":{completion_id}", Some("D13"))
    },
    FindingKind {
        meaning: "a special token stands in the text of a tool result or user message",
        why: "The text spells a control token, and the tokenizer took it for one: the model saw a turn begin or end where \
              nobody spoke. This is how an injected document takes the role of the system.",
        action: "Find the id's text with the tokenizer and the document that it came from. Serve the model with a tokenizer \
                 that does not parse special tokens in content, or take the document out.",
        ..ours("S12:control_token_in_text", ":{completion_id}:{token_id}", None)
    },
    FindingKind {
        meaning: "the engine counts other completion tokens than it returned",
        why: "Ids are missing or too many: what was sampled is not what would be trained.",
        action: "Compare `usage.completion_tokens` with the ids in `session.log`. A stop sequence that is cut off, or hidden \
                 reasoning, are the usual causes: both are settings of the engine.",
        ..ours("S13:usage_mismatch", ":{completion_id}:{ids}!={usage}", Some("D10"))
    },
    FindingKind {
        meaning: "a reply has fewer logprobs than ids",
        why: "One gap takes the logprobs of the whole trace away, or shifts them.",
        action: "Look at the engine's answer in `session.log`; SGLang: see whether `meta_info.output_token_logprobs` is whole.",
        ..ours("S14:logprobs_incomplete", ":{completion_id}:{logprobs}!={ids}", Some("D10"))
    },
    FindingKind {
        meaning: "a token id of the engine is not an integer",
        why: "The reference parses texts, truncates 3.7 to 3 or drops the whole list; ids are evidence and are taken as they \
              are or not at all.",
        action: "Look at index `first` in the prompt's or the response's ids of that call in `session.log`. The engine, or a \
                 proxy before it, must return JSON integers.",
        ..ours("S15:token_id_not_an_integer", ":{completion_id}:{prompt|response}:first={index}", Some("D6"))
    },
    FindingKind {
        meaning: "a logprob of the engine is not a finite number",
        why: "It would make the loss of a batch NaN; and a result that holds one cannot be sent as JSON by many clients.",
        action: "See LP4. The call and the index are named.",
        ..ours("S16:logprob_not_finite", ":{completion_id}:first={index}", Some("D17"))
    },
    FindingKind {
        meaning: "a member of the session's record has the wrong type",
        why: "It was replaced by its default so that the rest could be read; what it said is lost. The reference fails as a \
              whole.",
        action: "The path names the member. Records of gsj do not have such members: see what wrote or changed the file.",
        ..builder("S17:session_field_invalid", ":{path}", "10.1")
    },
    FindingKind {
        meaning: "a message is nested too deep",
        why: "Most JSON writers and readers refuse it, so the result could not be passed on.",
        action: "Look at the call in `session.log`: usually a tool's arguments that the model nested without end.",
        defect: Some("D5"),
        ..builder("S18:message_nested_too_deep", ":{completion_id}", "13")
    },
    FindingKind {
        meaning: "a policy version is an array or an object",
        why: "Versions must be comparable to tell whether they changed.",
        action: "State `policy_version` as a number or a text in the task's metadata.",
        defect: Some("D5"),
        ..builder("S19:policy_version_not_a_scalar", ":{completion_id}", "13")
    },
];
