//! The approved sets of a pins document.

use std::fmt;

/// One approved set: a key below `pins`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Git blob ids of `tokenizer.json`; no gate asks.
    Tokenizer,
    /// SHA-256 of the chat template's bytes; no gate asks.
    ChatTemplate,
    /// Canonical-JSON hashes of settings documents (gate G7).
    Settings,
    /// Canonical-JSON hashes of tool rosters (gate G3).
    ToolRoster,
    /// Text hashes of system prompts (gate G2).
    SystemPrompt,
    /// Text hashes of skill cards (gate G1).
    SkillCard,
    /// Texts of the tail that opens a turn; no gate asks.
    Tail,
    /// Token ids of that tail (gate G6).
    TailIds,
}

impl Key {
    /// All keys, in the order of a document.
    pub const ALL: [Self; 8] = [
        Self::Tokenizer,
        Self::ChatTemplate,
        Self::Settings,
        Self::ToolRoster,
        Self::SystemPrompt,
        Self::SkillCard,
        Self::Tail,
        Self::TailIds,
    ];

    /// The member's name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer_hash",
            Self::ChatTemplate => "chat_template_hash",
            Self::Settings => "settings_hash",
            Self::ToolRoster => "tool_roster_hash",
            Self::SystemPrompt => "system_prompt_hash",
            Self::SkillCard => "skill_card_hash",
            Self::Tail => "g6_expected_tail",
            Self::TailIds => "g6_expected_tail_ids",
        }
    }

    /// Whether some gate asks for it.
    pub fn is_consulted(self) -> bool {
        !matches!(self, Self::Tokenizer | Self::ChatTemplate | Self::Tail)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
