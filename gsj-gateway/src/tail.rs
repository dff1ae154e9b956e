//! What an engine's chat template puts before each reply, measured with the engine's own tokenizer.

use serde_json::{Value, json};

use crate::engine::{Engine, EngineError};

/// Two conversations that differ in their last message only; what their token ids end with alike is the template's.
const PROBES: [&str; 2] = ["alpha", "7 beta"];

/// The token ids with which a prompt ends, and the id that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationTail {
    /// What every prompt ends with, after the end of the turn before (spec `checks.md` 8.14).
    pub ids: Vec<u32>,
    /// The id that closes a turn.
    pub end_of_turn_id: u32,
}

impl Engine {
    /// Asks the engine how it renders the end of a prompt, before any episode runs.
    ///
    /// The template of the engine is asked with two conversations; ids that both end with come from the template
    /// alone. The first of them ends the user's turn, since a template closes a message right after its text.
    ///
    /// # Errors
    /// When the engine has no `/tokenize` for conversations, or its template ends a prompt with nothing of its own.
    pub async fn generation_tail(&self, thinking: bool) -> Result<GenerationTail, EngineError> {
        let first = self.tokenize_chat(&conversation(PROBES[0]), thinking).await?;
        let second = self.tokenize_chat(&conversation(PROBES[1]), thinking).await?;
        common_tail(&first, &second)
            .ok_or_else(|| self.unreadable("/tokenize", "two conversations end with no common template tokens"))
    }
}

fn conversation(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

fn common_tail(first: &[u32], second: &[u32]) -> Option<GenerationTail> {
    let common = first.iter().rev().zip(second.iter().rev()).take_while(|(a, b)| a == b).count();
    // All of one prompt in common would mean that the message itself is not in it.
    if common >= first.len().min(second.len()) {
        return None;
    }
    let (end_of_turn_id, ids) = first[first.len() - common..].split_first()?;
    (!ids.is_empty()).then(|| GenerationTail { ids: ids.to_vec(), end_of_turn_id: *end_of_turn_id })
}

#[cfg(test)]
mod tests {
    use super::{GenerationTail, common_tail};

    #[test]
    fn the_tail_is_what_both_prompts_end_with_after_the_turns_end() {
        let found = common_tail(&[1, 50, 9, 2, 1, 60, 2], &[1, 50, 51, 52, 9, 2, 1, 60, 2]);
        assert_eq!(found, Some(GenerationTail { ids: vec![2, 1, 60, 2], end_of_turn_id: 9 }));
    }

    #[test]
    fn prompts_without_a_common_end_have_no_tail() {
        assert_eq!(common_tail(&[1, 2], &[3, 4]), None);
        assert_eq!(common_tail(&[1, 2], &[1, 2]), None, "the message is missing");
        assert_eq!(common_tail(&[5, 9], &[6, 9]), None, "nothing after the turn's end");
    }
}
