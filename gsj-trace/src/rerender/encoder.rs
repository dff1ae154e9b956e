//! Encoding one conversation again and again as it grows.

use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::tokens::TokenText as _;

use super::align::common_start;

/// Remembers the text encoded last and tokenizes only what is new.
///
/// An added token cuts a text: what stands before it is tokenized without looking behind it. So the ids before the
/// last control token that two texts have in common are the same.
pub(super) struct Encoder<'t> {
    tokenizer: &'t Tokenizer,
    text: String,
    ids: Vec<u32>,
}

impl<'t> Encoder<'t> {
    pub(super) fn new(tokenizer: &'t Tokenizer) -> Self {
        Self { tokenizer, text: String::new(), ids: Vec::new() }
    }

    /// The ids of a text, as [`Tokenizer::encode`] gives them.
    pub(super) fn encode(&mut self, text: String) -> Result<&[u32], TokenizerError> {
        let common = common_start(self.text.as_bytes(), text.as_bytes());
        let (kept, from) = self.kept(common, &text);
        // A control token begins with a whole character, so the cut never splits one.
        let new = self.tokenizer.encode(text.get(from..).unwrap_or_default())?;
        self.ids.truncate(kept);
        self.ids.extend(new);
        self.text = text;
        Ok(&self.ids)
    }

    /// How many ids stay, and how many bytes they stand for.
    fn kept(&self, common: usize, text: &str) -> (usize, usize) {
        let (mut kept, mut from) = (0, 0);
        let mut at = 0;
        for (index, id) in self.ids.iter().enumerate() {
            let bytes = self.tokenizer.bytes(*id).unwrap_or_default();
            // A normaliser, or a token that takes blanks along, puts ids and text out of step: then nothing is kept.
            if !text.as_bytes().get(at..common).is_some_and(|rest| rest.len() > bytes.len() && rest.starts_with(bytes))
            {
                break;
            }
            if self.tokenizer.is_control(*id) {
                (kept, from) = (index, at);
            }
            at += bytes.len();
        }
        (kept, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixture() -> Tokenizer {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tokenizer/tokenizer.json");
        Tokenizer::from_bytes(&std::fs::read(path).expect("the fixture")).expect("a tokenizer")
    }

    #[test]
    fn a_conversation_is_encoded_as_if_from_the_start() {
        let tokenizer = fixture();
        let piece = prop_oneof![
            "[a-z \n]{0,8}",
            prop::sample::select(vec!["<|im_start|>", "<|im_end|>", "<think>", "<|im", "_end|>", "\u{1f600}"])
                .prop_map(str::to_owned),
        ];
        // Each text is a start of the one before and something new.
        let texts = prop::collection::vec((0_usize..60, prop::collection::vec(piece, 0..6)), 1..8);
        let mut runner = proptest::test_runner::TestRunner::default();
        let law = |steps: Vec<(usize, Vec<String>)>| {
            let mut encoder = Encoder::new(&tokenizer);
            let mut text = String::new();
            for (kept, new) in steps {
                text = text.chars().take(kept).chain(new.concat().chars()).collect();
                let whole = tokenizer.encode(&text).expect("encodes");
                prop_assert_eq!(encoder.encode(text.clone()).expect("encodes"), &whole[..], "{}", text);
            }
            Ok(())
        };
        runner.run(&texts, law).expect("the law holds");
    }
}
