//! Tokens and their log-probabilities.

use gsj_trace::tokenizer::Tokenizer;
use gsj_trace::tokens::TokenText as _;

use super::ScriptedError;

/// Names that the token which ends a turn has, the likeliest first.
const END_OF_TURN: [&str; 4] = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"];

/// A tokenizer, and the made-up model behind it.
pub(super) struct Codec {
    tokenizer: Tokenizer,
    end_of_turn: u32,
    end_of_turn_text: &'static str,
    seed: u64,
}

impl Codec {
    pub(super) fn read(bytes: &[u8], seed: u64) -> Result<Self, ScriptedError> {
        let tokenizer = Tokenizer::from_bytes(bytes)?;
        let (end_of_turn, end_of_turn_text) = END_OF_TURN
            .iter()
            .find_map(|text| Some((tokenizer.token_to_id(text)?, *text)))
            .ok_or_else(|| ScriptedError::EndOfTurn { names: END_OF_TURN.join(", ") })?;
        Ok(Self { tokenizer, end_of_turn, end_of_turn_text, seed })
    }

    pub(super) fn end_of_turn(&self) -> u32 {
        self.end_of_turn
    }

    pub(super) fn end_of_turn_text(&self) -> &'static str {
        self.end_of_turn_text
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.tokenizer.encode(text).map_err(|error| error.to_string())
    }

    /// The bytes of one token; none for an id that the tokenizer does not have.
    pub(super) fn piece(&self, id: u32) -> &[u8] {
        self.tokenizer.bytes(id).unwrap_or_default()
    }

    pub(super) fn text(&self, ids: &[u32]) -> String {
        self.tokenizer.decode(ids)
    }

    /// The log-probability of `id` at `position` of the whole context: a fixed function, so a
    /// replay of the same ids gives the same values. Never above zero, rarely exactly zero.
    pub(super) fn logprob(&self, position: usize, id: u32) -> f64 {
        let mut x = self.seed ^ ((position as u64) << 32) ^ u64::from(id);
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        let kind = x % 100;
        // 32 bits are exact in a double.
        let share = f64::from(u32::try_from(x >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        let value = match kind {
            0 => 0.0,
            1..=69 => -(0.0001 + 0.0999 * share),
            70..=96 => -(0.1 + 2.9 * share),
            _ => -(3.0 + 6.0 * share),
        };
        if value == 0.0 { 0.0 } else { (value * 1e6).round() / 1e6 }
    }

    pub(super) fn logprobs(&self, start: usize, ids: &[u32]) -> Vec<f64> {
        ids.iter().enumerate().map(|(i, id)| self.logprob(start + i, *id)).collect()
    }
}
