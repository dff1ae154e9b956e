//! Tokens and their log-probabilities.

use std::collections::HashMap;

use tokenizers::Tokenizer;

use super::ScriptedError;

/// Names that the token which ends a turn has, the likeliest first.
const END_OF_TURN: [&str; 4] = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"];

/// A tokenizer, and the made-up model behind it.
pub(super) struct Codec {
    tokenizer: Tokenizer,
    /// Tokens that are not spelled in the byte alphabet: their text is their bytes.
    added: HashMap<u32, Vec<u8>>,
    /// The byte that each letter of the byte-level alphabet stands for.
    bytes: HashMap<char, u8>,
    end_of_turn: u32,
    end_of_turn_text: &'static str,
    seed: u64,
}

impl Codec {
    pub(super) fn read(bytes: &[u8], seed: u64) -> Result<Self, ScriptedError> {
        let tokenizer = Tokenizer::from_bytes(bytes).map_err(|e| ScriptedError::Tokenizer { reason: e.to_string() })?;
        let (end_of_turn, end_of_turn_text) = END_OF_TURN
            .iter()
            .find_map(|text| Some((tokenizer.token_to_id(text)?, *text)))
            .ok_or_else(|| ScriptedError::Tokenizer {
                reason: format!("it has none of the end-of-turn tokens {}", END_OF_TURN.join(", ")),
            })?;
        let added = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| (id, token.content.into_bytes()))
            .collect();
        Ok(Self { tokenizer, added, bytes: byte_alphabet(), end_of_turn, end_of_turn_text, seed })
    }

    pub(super) fn end_of_turn(&self) -> u32 {
        self.end_of_turn
    }

    pub(super) fn end_of_turn_text(&self) -> &'static str {
        self.end_of_turn_text
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|e| e.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The bytes of one token; none for an id that the tokenizer does not have.
    pub(super) fn piece(&self, id: u32) -> Vec<u8> {
        if let Some(bytes) = self.added.get(&id) {
            return bytes.clone();
        }
        let Some(token) = self.tokenizer.id_to_token(id) else { return Vec::new() };
        let mut out = Vec::with_capacity(token.len());
        for c in token.chars() {
            match self.bytes.get(&c) {
                Some(byte) => out.push(*byte),
                None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out
    }

    pub(super) fn text(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| self.piece(*id)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
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

/// The alphabet of byte-level tokenizers: printable Latin-1 stands for itself, every other byte
/// for a letter from U+0100 on.
fn byte_alphabet() -> HashMap<char, u8> {
    let mut next = 0x100;
    (0..=u8::MAX)
        .map(|byte| {
            let own = matches!(byte, 33..=126 | 161..=172 | 174..=255);
            let code = if own { u32::from(byte) } else { next };
            next += u32::from(!own);
            (char::from_u32(code).unwrap_or('\u{fffd}'), byte)
        })
        .collect()
}
