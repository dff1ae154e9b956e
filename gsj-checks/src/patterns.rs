//! What the cutoff rules look for in text (`checks.md` section 8.7).
//!
//! Space and digit are Python's classes: `White_Space` and U+001C to U+001F, and `Nd` of any script.

use gsj_trace::json::Int;
use memchr::memmem;

/// The numbers of all `"page": N` members, left to right.
pub(crate) fn page_members(text: &str) -> impl Iterator<Item = Int> {
    members(text, "\"page\"")
}

/// The numbers of all `"timestep": N` members, left to right.
pub(crate) fn timestep_members(text: &str) -> impl Iterator<Item = Int> {
    members(text, "\"timestep\"")
}

/// The numbers of all page file names, left to right.
pub(crate) fn page_files(text: &str) -> impl Iterator<Item = Int> {
    const BEGIN: &str = "md/page_";
    memmem::find_iter(text.as_bytes(), BEGIN).filter_map(|at| {
        let rest = &text[at + BEGIN.len()..];
        let mut digits = Digits(rest);
        let number: String = digits.by_ref().take(4).collect();
        if number.len() == 4 && digits.0.starts_with(".md") { Int::from_decimal(&number) } else { None }
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
        let digit = decimal(chars.next()?)?;
        self.0 = chars.as_str();
        Some(char::from(b'0' + digit))
    }
}

/// The value of a decimal digit of any script.
fn decimal(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
    }
    let point = u32::from(c);
    let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= point)].last()?;
    u8::try_from(point - zero).ok().filter(|digit| *digit < 10)
}

/// The zero of each run of ten decimal digits, Unicode 15.1, ASCII apart.
const ZEROS: [u32; 67] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0,
    0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16a60,
    0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e950, 0x1fbf0,
];

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
    }

    #[test]
    fn digits_of_every_script_have_their_value() {
        assert!(ZEROS.is_sorted());
        assert_eq!(
            (decimal('９'), decimal('𝟿'), decimal('𝟘'), decimal('½'), decimal('一')),
            (Some(9), Some(9), Some(0), None, None)
        );
    }
}
