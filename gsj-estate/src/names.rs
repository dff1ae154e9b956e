//! The forms that names have (`corpus.md` section 2): ASCII, the whole name.

/// What a token is, for messages.
pub(crate) const TOKEN: &str = "letters, digits, dot, underscore and dash, the first a letter or digit";

/// A token: skill, slug, corpus and owner names.
pub(crate) fn is_token(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// An owner: a token that is one part of a path and of a variable's name.
pub(crate) fn is_owner(text: &str) -> bool {
    is_token(text) && text.len() <= LONGEST_NAME
}

/// The most bytes that a file's name has on any file system that we know.
const LONGEST_NAME: usize = 255;
/// The longest case id: of the names made of it the longest is that of a repository about to be removed.
pub(crate) const LONGEST_CASE_ID: usize = LONGEST_NAME - "..full.git.removed".len();

/// A case id.
pub(crate) fn is_case_id(text: &str) -> bool {
    if text.len() > LONGEST_CASE_ID {
        return false;
    }
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(small) && bytes.all(|byte| small(byte) || b"_-".contains(&byte))
}

/// The number of a timestep directory; what is beyond 64 bits stands for a number that no census meets.
pub(crate) fn timestep(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("timestep-")?;
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0') && !digits.is_empty();
    canonical.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The number of a page file.
pub(crate) fn page(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("page_")?.strip_suffix(".md")?;
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The file name of a page.
pub(crate) fn page_file(number: u32) -> String {
    format!("page_{number:04}.md")
}

/// Whether a character cannot be seen, or changes where others are seen: controls, joiners, marks of direction, fillers.
pub(crate) fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(character, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text for a terminal: what cannot be seen in it, or changes where the rest is seen, is escaped.
///
/// ```
/// assert_eq!(gsj_estate::printable("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) { out.extend(character.escape_default()) } else { out.push(character) }
    }
    out
}

/// A name or value as a message shows it: control characters escaped, what a URL says of a user left out, 255
/// characters at most.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 255;
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(at, _)| at);
    // A line feed at the end of a name is the point of some findings, so it is shown, and so that it can be seen.
    let mut out = printable(&text[..end]);
    if end < text.len() {
        out.push_str("...");
    }
    match (out.find("://"), out.rfind('@')) {
        (Some(scheme), Some(user)) if scheme < user => out.replace_range(scheme + 3..user, "***"),
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_match_the_whole_name_and_ascii_only() {
        assert!(is_token("A.b_c-9") && !is_token(".a") && !is_token("a b") && !is_token("a\n") && !is_token(""));
        assert!(
            is_case_id("case-") && is_case_id("0") && !is_case_id("_x") && !is_case_id("Case") && !is_case_id("a.1")
        );
        assert_eq!(timestep("timestep-18"), Some(18));
        for name in ["timestep-0", "timestep-03", "timestep-", "timestep-2\n", "timestep-٣", "timestep-+3"] {
            assert_eq!(timestep(name), None, "{name}");
        }
        assert_eq!(page("page_0012.md"), Some(12));
        for name in ["page_12.md", "page_00012.md", "page_٠٠٠١.md", "page_0001.md\n", "page_0001.MD", "page_+001.md"]
        {
            assert_eq!(page(name), None, "{name}");
        }
    }

    #[test]
    fn messages_hold_no_control_characters_and_end() {
        assert_eq!(shown("a\nb"), "a\\nb");
        assert_eq!(shown("a\u{202e}b\u{200b}\u{feff}é"), "a\\u{202e}b\\u{200b}\\u{feff}é");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), 258);
        assert_eq!(shown("http://u:secret@host/x"), "http://***@host/x");
    }
}
