//! Every set of a pins document, with what it approves and which finding guards it.

use std::fmt;

use crate::Key;

/// A member of `pins`: one of the reference's keys, or one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// One of the keys that the reference knows.
    Key(Key),
    /// The cards of each skill (strict profile).
    SkillCards,
    /// The ids that end a turn (strict profile).
    EndOfTurnIds,
}

impl Set {
    /// All sets, in the order of a document.
    pub const ALL: [Self; 10] = [
        Self::Key(Key::Tokenizer),
        Self::Key(Key::ChatTemplate),
        Self::Key(Key::Settings),
        Self::Key(Key::ToolRoster),
        Self::Key(Key::SystemPrompt),
        Self::Key(Key::SkillCard),
        Self::Key(Key::Tail),
        Self::Key(Key::TailIds),
        Self::SkillCards,
        Self::EndOfTurnIds,
    ];

    /// The member's name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key(key) => key.name(),
            Self::SkillCards => "skill_cards",
            Self::EndOfTurnIds => "end_of_turn_ids",
        }
    }

    /// What one entry stands for.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Key(Key::Tokenizer) => "tokenizer",
            Self::Key(Key::ChatTemplate) => "chat template",
            Self::Key(Key::Settings) => "settings document",
            Self::Key(Key::ToolRoster) => "tool roster",
            Self::Key(Key::SystemPrompt) => "system prompt",
            Self::Key(Key::SkillCard) => "skill card",
            Self::Key(Key::Tail) => "text of the tail",
            Self::Key(Key::TailIds) => "tail",
            Self::SkillCards => "skill's card",
            Self::EndOfTurnIds => "end-of-turn id",
        }
    }

    /// The gate that asks for the set; `None` for a record that no gate asks for.
    pub fn gate(self) -> Option<&'static str> {
        let finding = self.findings().first()?;
        finding.split(':').next()
    }

    /// What a trace gets whose value is not in the set: `ID:slug` of each finding.
    pub fn findings(self) -> &'static [&'static str] {
        match self {
            Self::Key(Key::Tokenizer | Key::ChatTemplate | Key::Tail) => &[],
            Self::Key(Key::Settings) => &["G7:settings_hash_not_approved"],
            Self::Key(Key::ToolRoster) => &["G3:tool_roster_hash_not_approved"],
            Self::Key(Key::SystemPrompt) => &["G2:system_prompt_hash_not_approved"],
            Self::Key(Key::SkillCard) => &["G1:skill_card_hash_not_approved"],
            Self::Key(Key::TailIds) => &["G6:prompt_suffix_ne_tail_ids", "G6:interstitial_ne_tail_ids"],
            Self::SkillCards => &["G1:skill_card_hash_not_for_skill"],
            Self::EndOfTurnIds => &["G6:end_of_turn_inside_span"],
        }
    }
}

impl From<Key> for Set {
    fn from(key: Key) -> Self {
        Self::Key(key)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_consulted_keys_are_those_with_a_gate() {
        for key in Key::ALL {
            assert_eq!(Set::from(key).gate().is_some(), key.is_consulted(), "{key}");
            assert!(Set::ALL.contains(&key.into()), "{key} is in the list");
        }
        assert_eq!(Set::SkillCards.gate(), Some("G1"));
        assert_eq!(Set::EndOfTurnIds.gate(), Some("G6"));
    }
}
