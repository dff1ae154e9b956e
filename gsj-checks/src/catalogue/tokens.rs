//! Tokens, masks and logprobs.

use super::{FindingKind, kind, strict};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "trained tokens have no logprobs",
        why: "Importance ratios cannot be computed, so an off-policy step has nothing to correct itself with.",
        action: "Check that the engine returns logprobs (`docs/operator.md`, what a server needs). One trained token without \
                 a logprob makes the builder leave out the whole list: the builder's findings (S14, S16) name the call.",
        ..kind("LP1:response_logprobs_absent", "", "8.5")
    },
    FindingKind {
        meaning: "there are more or fewer logprobs than tokens",
        why: "Every logprob after the gap would be read for the wrong token.",
        action: "The builder writes both lists together: the body was changed after building, or was made by another \
                 builder. Fetch it again; if it is stored so, report its maker.",
        ..kind("LP2:response_logprobs_length_ne_response_ids", ":{logprobs}!={tokens}", "8.5")
    },
    FindingKind {
        meaning: "a trained token has a floor value in place of its logprob",
        why: "Engines write a number like -9999 where they have no logprob. Taken as real it makes a ratio of e^9999.",
        action: "Update the engine, or switch off what makes it lose logprobs (speculative decoding, penalties applied after \
                 sampling). `first` is an index into `response_ids`. The threshold is the policy `sentinel_threshold`.",
        ..kind("LP3:sentinel_logprob_at_mask1", ":first={index}:count={count}", "8.5")
    },
    FindingKind {
        meaning: "a logprob is not a finite number",
        why: "One NaN makes the loss of the whole batch NaN.",
        action: "Look at the engine's answer in `session.log` for the turn that holds index `first`. NaN from an engine \
                 usually means broken weights or an overflow in low precision.",
        ..kind("LP4:nonfinite_logprob", ":first={index}:count={count}", "8.5")
    },
    FindingKind {
        meaning: "a logprob is above zero",
        why: "No probability is above one: the number is something else, a raw logit or a difference.",
        action: "Check that the engine reports logprobs of the model and not of a processed distribution, and that nothing \
                 between engine and gateway rewrites answers.",
        ..kind("LP5:positive_logprob", ":first={index}:count={count}", "8.5")
    },
    FindingKind {
        meaning: "too many trained tokens have the logprob zero",
        why: "A sampled token now and then has a probability that rounds to one; a quarter of them has not. Such zeros are \
              placeholders: for tokens that were never sampled, or from an engine that samples greedily and says so.",
        action: "Raise the sampling temperature if it is near 0 (`engine.sampling`). Otherwise look where the zeros stand: in \
                 a block after a tool result they are template tokens that the mask calls trained. The limit is the policy \
                 `zero_at_mask1_max_rate`.",
        ..kind("LP6:zero_logprob_rate_at_mask1", ":{zeros}/{trained}>{limit}", "8.5")
    },
    FindingKind {
        meaning: "there are tokens and no mask",
        why: "Without a mask a trainer trains on everything, tool results included, or on nothing.",
        action: "The body was made by a builder that leaves the mask out, or was cut. Build it again from the session's \
                 record with `gsj reconstruct`.",
        ..kind("LP7:empty_loss_mask", "", "8.5")
    },
    FindingKind {
        meaning: "the mask is longer or shorter than the tokens",
        why: "From the first missing entry on, the wrong tokens are trained.",
        action: "Build the trace again from the session's record with `gsj reconstruct`; if the mask is off there too, \
                 report it with the record.",
        ..kind("LP8:loss_mask_length_ne_response_ids", ":{mask}!={tokens}", "8.5")
    },
    FindingKind {
        meaning: "a mask entry is neither 0 nor 1",
        why: "Trainers read other values as weights, as true, or not at all: the same trace trains differently in each.",
        action: "Whatever wrote the mask must write the integers 0 and 1. `first` is an index into `loss_mask`.",
        ..kind("LP9:loss_mask_value_not_binary", ":first={index}:count={count}", "8.5")
    },
    FindingKind {
        meaning: "the last turn ended in a way that no turn may",
        why: "An aborted or filtered answer is not what the policy would have said.",
        action: "Allowed are stop, tool_calls, stop_sequence and length. Look at the last call in `session.log`: `abort` \
                 comes from an engine that was told to stop, `content_filter` from something in front of it.",
        ..kind("TR1:finish_reason_not_allowed", ":{finish_reason}", "8.6")
    },
    FindingKind {
        meaning: "reasoning was masked after sampling",
        why: "The mask no longer says what was sampled: the model thought those tokens and they shaped the rest.",
        action: "Switch off whatever sets `metadata.reasoning_loss_mask`, and mask in the trainer if you must.",
        ..kind("TR2:reasoning_loss_mask_masked_tokens", ":{masked_tokens}", "8.6")
    },
    FindingKind {
        meaning: "the split is neither train nor eval",
        why: "A trace of unknown split may come from a case that is held back for evaluation.",
        action: "Correct `split` in the task's metadata, or leave it out. Rows of a task bank carry the right one.",
        ..kind("TR3:split_not_train_or_eval", ":{split}", "8.6")
    },
    FindingKind {
        meaning: "an entry of the token ids is not an integer of 32 bits",
        why: "A trainer's typed parser throws at it and loses the whole collect, accepted neighbours included.",
        action: "See which of `prompt_ids` and `response_ids` the finding names, and index `first` in it. A null or a text \
                 comes from an engine or a proxy that does not return ids properly; look at the same place in `session.log`.",
        ..strict("TY1:token_id_not_an_integer", ":{field}:first={index}:count={count}", Some("D4"))
    },
    FindingKind {
        meaning: "an entry of the messages is not an object",
        why: "A typed parser throws at it; and what is no message is judged by no rule on messages.",
        action: "Look at index `first` of the field that the finding names. Messages come from the agent's requests: see \
                 them in `session.log`.",
        ..strict("TY2:message_not_an_object", ":{field}:first={index}:count={count}", Some("D4"))
    },
    FindingKind {
        meaning: "the reward is neither null nor a finite number",
        why: "A text or NaN in its place breaks the parser or the advantage of the whole group.",
        action: "Correct the evaluator that wrote it. gsj itself leaves `reward` null.",
        ..strict("TY3:reward_not_a_number", ":{reward}", Some("D4"))
    },
    FindingKind {
        meaning: "no token is trained on, so there is no turn",
        why: "There is nothing to learn from, and nothing that the other rules on turns could look at.",
        action: "See LP7 and LP8 if they stand beside it. Otherwise no call returned token ids: check `engine.kind` and that \
                 the engine is one that returns them.",
        ..kind("G6:missing_evidence:turns", "", "8.14")
    },
    FindingKind {
        meaning: "the first turn does not open with the approved token ids",
        why: "The model was prompted in another way than agreed, with thinking on instead of off for example: its answers \
              belong to another policy.",
        action: "Compare the end of `prompt_ids` with `g6_expected_tail_ids` of the pins. If they differ in the think block, \
                 the pins of the other mode are the right ones; else template or tokenizer have changed (`gsj pins verify`).",
        ..kind("G6:prompt_suffix_ne_tail_ids", "", "8.14")
    },
    FindingKind {
        meaning: "a later turn does not open with the approved token ids",
        why: "The template renders history otherwise than the first prompt, or the mask is shifted, or turns run into each \
              other.",
        action: "`first` is the number of the turn. `gsj show` shows what stands before it. If every later turn is an \
                 offender the template is the cause; if a single one is, look at that call in `session.log`.",
        ..kind("G6:interstitial_ne_tail_ids", ":first={turn}:count={count}", "8.14")
    },
    FindingKind {
        meaning: "the id that ends a turn stands inside a run of trained tokens",
        why: "The model stops at that id: what follows it in the same run was written by the template or a tool, and would \
              be trained as if the model had said it.",
        action: "`first` is an index into `response_ids`. The mask is wrong there; build the trace again with \
                 `gsj reconstruct`. If the model really goes on after the id, it does not end turns and does not belong into \
                 `end_of_turn_ids` of the pins.",
        ..strict("G6:end_of_turn_inside_span", ":first={index}:count={count}", Some("D9"))
    },
    FindingKind {
        meaning: "tools were offered and none was called",
        why: "Where the task needs tools, such an episode shows guessing. Only judged with the policy \
              `reject_toolless_roster`.",
        action: "If the model does not call tools at all, check that the engine parses its calls (vLLM: \
                 `--enable-auto-tool-choice` and the parser of the model). If some tasks need none, switch the policy off.",
        ..kind("H41:roster_offered_zero_tool_calls", "", "8.15")
    },
];
