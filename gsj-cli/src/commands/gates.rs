//! A verdict per gate, for people.

use gsj_checks::{Gate, Profile, gates};

use crate::terminal::{GREEN, RED, paint};

/// Column at which a gate's meaning starts.
const MEANING_AT: usize = 13;

/// A table with a line per gate, folded at `width`, and the findings below the gate that made them.
pub(crate) fn table(findings: &[String], width: usize) -> String {
    let mut lines = Vec::new();
    for gate in gates(Profile::Reference) {
        let own: Vec<&String> =
            findings.iter().filter(|f| Gate::of_finding(f).is_some_and(|g| g.id == gate.id)).collect();
        let mark = if own.is_empty() { paint(GREEN, "pass") } else { paint(RED, "FAIL") };
        let meaning = fold(gate.meaning, width.saturating_sub(MEANING_AT));
        let (first, rest) = meaning.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
        lines.push(format!("  {mark}  {:<4} {first}", gate.id));
        lines.extend(rest.iter().map(|line| format!("{:MEANING_AT$}{line}", "")));
        for finding in own {
            lines.push(format!("            {finding}"));
        }
    }
    for finding in findings.iter().filter(|f| Gate::of_finding(f).is_none()) {
        lines.push(format!("  {}  {finding}", paint(RED, "FAIL")));
    }
    lines.join("\n")
}

/// Breaks a text between words into lines of at most `width` columns.
fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(fold("one two three", 7), ["one two", "three"]);
        assert_eq!(fold("seventeen letters", 4), ["seventeen", "letters"]);
    }
}
