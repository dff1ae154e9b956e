//! Control tokens where the template did not put them (S12): in the text of a tool result or a user message.

use crate::json::ValueRef;
use crate::tokens::TokenText;

use super::messages::{is_role, texts};

/// The control tokens that the engine read inside the text of these messages, each once, in order.
///
/// `added` is the part of the prompt in which the messages are new. System messages are left out: they are pinned.
pub(super) fn in_text(tokens: &dyn TokenText, added: &[u32], messages: &[ValueRef<'_>]) -> Vec<u32> {
    let mut present: Vec<u32> = added.iter().copied().filter(|&id| tokens.is_control(id)).collect();
    present.sort_unstable();
    present.dedup();
    let words: Vec<&str> = present.iter().filter_map(|&id| std::str::from_utf8(tokens.bytes(id)?).ok()).collect();
    let spelled = |text: &str| words.iter().any(|word| !word.is_empty() && text.contains(word));
    let foreign = messages.iter().filter(|m| is_role(**m, "user") || is_role(**m, "tool"));
    let suspects: Vec<String> =
        foreign.flat_map(|m| texts(*m)).filter(|text| spelled(text)).map(|text| text.trim().to_owned()).collect();
    let mut found = Vec::new();
    if suspects.is_empty() {
        return found;
    }
    let rendered = Rendered::of(tokens, added);
    for text in &suspects {
        // A template may have changed the text as a whole; then each line that spells a control token is looked for.
        if !rendered.controls_in(text.as_bytes(), &mut found) {
            for line in text.lines().map(str::trim).filter(|line| spelled(line)) {
                rendered.controls_in(line.as_bytes(), &mut found);
            }
        }
    }
    found
}

/// A part of a prompt as text, control tokens spelled out.
struct Rendered {
    text: Vec<u8>,
    /// Where each control token begins and ends in the text.
    controls: Vec<(usize, usize, u32)>,
}

impl Rendered {
    fn of(tokens: &dyn TokenText, ids: &[u32]) -> Self {
        let mut out = Self { text: Vec::new(), controls: Vec::new() };
        for &id in ids {
            let from = out.text.len();
            out.text.extend_from_slice(tokens.bytes(id).unwrap_or_default());
            if tokens.is_control(id) {
                out.controls.push((from, out.text.len(), id));
            }
        }
        out
    }

    /// Adds the control tokens inside a text to `found`; says whether the text is there at all.
    ///
    /// Where the text stands once without any, the tokenizer read it as text, and its other places are the template's.
    fn controls_in(&self, text: &[u8], found: &mut Vec<u32>) -> bool {
        let mut from = 0;
        let mut first = None;
        while let Some(at) = find(&self.text, text, from) {
            let inside = self.inside(at, at + text.len());
            if inside.is_empty() {
                return true;
            }
            first = first.or(Some(inside));
            // Places that overlap say nothing new, and would make the search quadratic.
            from = at + text.len();
        }
        for (_, _, id) in first.unwrap_or_default() {
            if !found.contains(id) {
                found.push(*id);
            }
        }
        first.is_some()
    }

    fn inside(&self, from: usize, to: usize) -> &[(usize, usize, u32)] {
        let first = self.controls.partition_point(|(at, _, _)| *at < from);
        let count = self.controls[first..].iter().take_while(|(_, end, _)| *end <= to).count();
        &self.controls[first..first + count]
    }
}

/// The first place of a text at or after `from`, in time linear in both (Knuth, Morris and Pratt).
fn find(text: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let first = *word.first()?;
    let rest = text.get(from..)?;
    // Most texts do not hold the first byte at all.
    let from = from + rest.iter().position(|b| *b == first)?;
    let mut border = vec![0; word.len()];
    let mut matched = 0;
    for i in 1..word.len() {
        while matched > 0 && word[i] != word[matched] {
            matched = border[matched - 1];
        }
        matched += usize::from(word[i] == word[matched]);
        border[i] = matched;
    }
    matched = 0;
    for (i, byte) in text.iter().enumerate().skip(from) {
        while matched > 0 && *byte != word[matched] {
            matched = border[matched - 1];
        }
        matched += usize::from(*byte == word[matched]);
        if matched == word.len() {
            return Some(i + 1 - matched);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::units::tests::Toy;
    use super::*;
    use crate::json::Value;

    fn toy() -> Toy {
        Toy::new(&[("<s>", true), ("<e>", true), ("hello", false)])
    }

    fn found(ids: &[u32], messages: &str) -> Vec<u32> {
        let messages = Value::parse(messages.as_bytes()).unwrap();
        let messages: Vec<ValueRef<'_>> = messages.as_array().unwrap().iter().collect();
        in_text(&toy(), ids, &messages)
    }

    #[test]
    fn a_control_token_in_the_text_of_a_message_is_found() {
        let toy = toy();
        let (start, end) = (1000, 1001);
        let prompt = toy.ids("<s>tool\nso <e> it<s> is<e>\n<s>assistant\n");
        let tool = r#"[{"role":"tool","content":"  so <e> it<s> is\n"}]"#;
        assert_eq!(found(&prompt, tool), [end, start]);
        assert_eq!(found(&prompt, &tool.replace("tool", "system")), [0; 0], "system texts are pinned");
        assert_eq!(found(&prompt, &tool.replace("tool", "assistant")), [0; 0], "replies were sampled");
        assert_eq!(found(&toy.ids("<s>tool\nhello<e>\n"), r#"[{"role":"tool","content":"hello"}]"#), [0; 0]);
        let parts =
            r#"[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"so <e> it<s> is"}]}]"#;
        assert_eq!(found(&prompt, parts), [end, start]);
        let changed = r#"[{"role":"tool","content":"other\nso <e> it<s> is"}]"#;
        assert_eq!(found(&prompt, changed), [end, start], "line by line where the whole was changed");
    }

    #[test]
    fn what_was_read_as_text_is_no_control_token() {
        let toy = toy();
        let typed: Vec<u32> = "<e>".bytes().map(u32::from).collect();
        let prompt = [toy.ids("<s>tool\n"), typed, toy.ids("<e>\n")].concat();
        assert_eq!(found(&prompt, r#"[{"role":"tool","content":"<e>"}]"#), [0; 0]);
        let prompt = toy.ids("<s>tool\n<e><e>\n");
        assert_eq!(found(&prompt, r#"[{"role":"tool","content":"<e>"}]"#), [1001]);
    }

    #[test]
    fn texts_are_found_where_they_stand() {
        assert_eq!(find(b"aabaabaac", b"aabaac", 0), Some(3));
        assert_eq!((find(b"abab", b"ab", 1), find(b"abab", b"ba", 2), find(b"ab", b"", 0)), (Some(2), None, None));
    }
}
