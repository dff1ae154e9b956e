//! The gates: groups of findings that people ask about.

use crate::Profile;

/// A group of rules with one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gate {
    /// What its findings start with, digits apart for `ADM`, `LP` and `TR`.
    pub id: &'static str,
    /// What a clean verdict says, in one line.
    pub meaning: &'static str,
    /// Whether the rules of the group are numbered (`LP1`, `LP2`, ...).
    numbered: bool,
    /// Whether only the strict profile has it.
    strict: bool,
}

const fn family(id: &'static str, meaning: &'static str) -> Gate {
    Gate { id, meaning, numbered: true, strict: false }
}

const fn single(id: &'static str, meaning: &'static str) -> Gate {
    Gate { id, meaning, numbered: false, strict: false }
}

const fn strict(gate: Gate) -> Gate {
    Gate { strict: true, ..gate }
}

static GATES: [Gate; 13] = [
    family("ADM", "the session completed, its builder found nothing, and there is a trace"),
    family("LP", "every token has its logprob and a mask of 0 or 1, and the logprobs are a model's"),
    family("TR", "the last turn ended as a turn does, and nothing was masked or split behind our back"),
    single("G1", "the prompt's source is known, and a skill's card is an approved one"),
    single("G2", "the system prompt is an approved one"),
    single("G3", "the tools offered to the model are an approved roster"),
    single("G5", "nothing after the timestep was in the checkout or in a search result"),
    single("G6", "every turn opens with the approved token ids"),
    single("G7", "one chain holds all completions, and the agent's settings are approved ones"),
    single("H41", "a roster of tools was offered and a tool was called (only where the policy asks)"),
    strict(family("TY", "ids, messages and the reward have the types that a trainer parses")),
    strict(single("G8", "no text of a later page is in the trace (only where the pages are at hand)")),
    strict(family("F", "every turn was sampled from the context that stands before it")),
];

/// The gates of a profile, in the order in which verdicts list them.
pub fn gates(profile: Profile) -> impl Iterator<Item = &'static Gate> {
    GATES.iter().filter(move |gate| profile == Profile::Strict || !gate.strict)
}

impl Gate {
    /// The gate that a finding belongs to; `None` for a finding of the trajectory's builder.
    ///
    /// ```
    /// use gsj_checks::Gate;
    /// let gate = Gate::of_finding("LP4:nonfinite_logprob:first=3:count=1");
    /// assert_eq!(gate.map(|gate| gate.id), Some("LP"));
    /// ```
    pub fn of_finding(finding: &str) -> Option<&'static Self> {
        let id = finding.split(':').next()?;
        GATES.iter().find(|gate| match id.strip_prefix(gate.id) {
            Some("") => !gate.numbered,
            Some(number) => gate.numbered && number.bytes().all(|b| b.is_ascii_digit()),
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_its_gates() {
        assert_eq!(gates(Profile::Reference).count(), 10);
        assert_eq!(gates(Profile::Strict).count(), GATES.len());
    }

    #[test]
    fn each_finding_has_at_most_one_gate() {
        let of = |finding| Gate::of_finding(finding).map(|gate| gate.id);
        assert_eq!(of("ADM4:no_traces"), Some("ADM"));
        assert_eq!(of("G5:missing_evidence:workspace.pages"), Some("G5"));
        assert_eq!(of("H41:roster_offered_zero_tool_calls"), Some("H41"));
        assert_eq!(of("F2:context_hash_mismatch:turn=2"), Some("F"));
        assert_eq!(of("TR1:finish_reason_not_allowed:None"), Some("TR"));
        for other in ["S6:x", "G51:x", "ADM:x", "ADMx:y", "LPG1:x", "F:x", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
