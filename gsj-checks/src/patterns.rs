//! What the cutoff rules look for in text (`checks.md` section 8.7).
//!
//! Space and digit are Python's classes: `White_Space` and U+001C to U+001F, and `Nd` of any script.

use gsj_trace::json::Int;
use gsj_trace::unicode::decimal_digit;
use memchr::memmem;

/// The numbers of all `"page": N` members, left to right.
pub(crate) fn page_members(text: &str) -> impl Iterator<Item = Int> {
    members(text, "\"page\"")
}

/// The numbers of all `"timestep": N` members, left to right.
pub(crate) fn timestep_members(text: &str) -> impl Iterator<Item = Int> {
    members(text, "\"timestep\"")
}

/// The numbers of all page file names, left to right. A name that begins within another is none of its own.
pub(crate) fn page_files(text: &str) -> impl Iterator<Item = Int> {
    const BEGIN: &str = "md/page_";
    const END: &str = ".md";
    let mut free_from = 0;
    memmem::find_iter(text.as_bytes(), BEGIN).filter_map(move |at| {
        let mut digits = Digits(text.get(at + BEGIN.len()..).filter(|_| at >= free_from)?);
        let number: String = digits.by_ref().take(4).collect();
        let rest = digits.0.strip_prefix(END).filter(|_| number.len() == 4)?;
        free_from = text.len() - rest.len();
        Int::from_decimal(&number)
    })
}

fn members(text: &str, key: &'static str) -> impl Iterator<Item = Int> {
    // A match holds no quote after the key, so matches cannot overlap and every place where the
    // key stands may be tried.
    memmem::find_iter(text.as_bytes(), key).filter_map(move |at| {
        let rest = text[at + key.len()..].trim_start_matches(is_space).strip_prefix(':')?;
        let number: String = Digits(rest.trim_start_matches(is_space)).collect();
        Int::from_decimal(&number)
    })
}

/// Whether Python takes a character for space.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The decimal digits at the start of a text, as ASCII.
struct Digits<'t>(&'t str);

impl Iterator for Digits<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let mut chars = self.0.chars();
        let digit = decimal_digit(chars.next()?)?;
        self.0 = chars.as_str();
        Some(char::from(b'0' + digit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(found: impl Iterator<Item = Int>) -> Vec<String> {
        found.map(|n| n.to_string()).collect()
    }

    #[test]
    fn members_are_found_in_raw_text() {
        let text = "{\"page\": 7, \"page\"\u{2003}:\n012}\"page\":x\"page\":٣٤ \\\"page\\\": 9 \"Page\": 1 \"page\":-1";
        assert_eq!(all(page_members(text)), ["7", "12", "34"]);
        assert_eq!(all(timestep_members("\"timestep\" : 3.5")), ["3"]);
        let huge = "9".repeat(5000);
        assert_eq!(all(page_members(&format!("\"page\":{huge}"))), [huge]);
    }

    #[test]
    fn page_files_have_exactly_four_digits() {
        assert_eq!(
            all(page_files("md/page_0012.md md/page_12345.md md/page_012.md xmd/page_٠٠٠٩.md md/page_0001.txt")),
            ["12", "9"]
        );
        let chained = "md/page_0001.md/page_0099.md md/page_0002.md/page_0003.md/page_0004.md";
        assert_eq!(all(page_files(chained)), ["1", "2", "4"], "matches do not overlap");
        assert_eq!(all(page_files("md/page_00md/page_0007.md")), ["7"], "what is no match takes nothing away");
    }
}
