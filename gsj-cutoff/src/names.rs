//! Which names may stand in a tree, and which of them is a page.

use std::collections::BTreeMap;

/// Renders a path for a message: control characters and broken UTF-8 escaped, length capped.
pub(crate) fn shown(path: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(path), 200)
}

/// Renders what another program said, in the same way.
#[cfg(feature = "fetch")]
pub(crate) fn shown_text(text: &str) -> String {
    escaped(text, 2_000)
}

fn escaped(text: &str, longest: usize) -> String {
    let mut out = String::new();
    for character in text.chars().take(longest) {
        if character.is_control() { out.extend(character.escape_default()) } else { out.push(character) }
    }
    if text.chars().nth(longest).is_some() {
        out.push_str("...");
    }
    out
}

/// Says why a name is refused wherever it stands in a tree, if so: git itself never writes it.
pub(crate) fn fatal(name: &[u8]) -> Option<&'static str> {
    use gix::bstr::ByteSlice as _;
    // Hardly any name needs a closer look: what begins with a letter or digit and holds no byte that some file system
    // ignores or folds is not `.git` to anyone.
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.first().is_some_and(u8::is_ascii_alphanumeric) && name.iter().all(plain) {
        return None;
    }
    let options =
        gix::validate::path::component::Options { protect_windows: false, protect_hfs: true, protect_ntfs: true };
    match gix::validate::path::component(name.as_bstr(), None, options) {
        Ok(_) => None,
        Err(gix::validate::path::component::Error::DotGitDir) => Some("its name stands for `.git`"),
        Err(_) => Some("its name cannot be a path component"),
    }
}

/// Says why a name cannot be written to a working tree, if so.
pub(crate) fn refusal(name: &[u8]) -> Option<&'static str> {
    if name.iter().any(|byte| *byte < 0x20 || *byte == 0x7f)
        || std::str::from_utf8(name).is_ok_and(|text| text.chars().any(char::is_control))
    {
        return Some("its name holds a control character");
    }
    fatal(name)
}

/// Finds two names of one directory that are the same or differ only by case; gives the second and says which.
pub(crate) fn collision<'a>(names: impl Iterator<Item = &'a [u8]>) -> Option<(&'a [u8], &'static str)> {
    let mut seen = BTreeMap::new();
    for name in names {
        let folded = String::from_utf8_lossy(name).to_lowercase();
        match seen.insert(folded, name) {
            None => {}
            Some(other) if other == name => return Some((name, "its name stands there twice")),
            Some(_) => return Some((name, "another name differs from it only by case")),
        }
    }
    None
}

/// Says why a symbolic link at a depth (directories above it within the tree) is refused, if so.
///
/// Leading `..` climb real directories, so they are counted; a later `..` could climb out of another link's target, so
/// it is refused.
#[cfg(feature = "git")]
pub(crate) fn link_refusal(target: &[u8], depth: usize) -> Option<&'static str> {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return Some("it is a symbolic link that leaves the tree");
    }
    let (mut climbed, mut descended) = (0, false);
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if descended => return Some("it is a symbolic link that climbs after descending"),
            b".." => climbed += 1,
            name => {
                descended = true;
                if refusal(name).is_some() {
                    return Some("it is a symbolic link to a refused name");
                }
            }
        }
    }
    (climbed > depth).then_some("it is a symbolic link that leaves the tree")
}

/// The number of a page file's name: `page_` and four digits and `.md`, nothing else.
pub(crate) fn page_number(name: &[u8]) -> Option<u32> {
    let digits = name.strip_prefix(b"page_")?.strip_suffix(b".md")?;
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

/// The number of a name that reads as a page's on some file system or to some reader, though it is no proper page name.
pub(crate) fn page_like(name: &[u8]) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let rest = lower.strip_prefix(b"page_").or_else(|| lower.strip_prefix(b"page"))?;
    let digits: Vec<u8> = rest.iter().copied().take_while(u8::is_ascii_digit).take(9).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_or_a_terminal_would_misread_are_refused() {
        for name in [
            &b".git"[..],
            b".GIT",
            b"git~1",
            b"..",
            b".",
            b"",
            b"a/b",
            b"a\nb",
            b"a\x7f",
            "a\u{85}".as_bytes(),
            b".git.",
            b".git ",
            b".git::$INDEX_ALLOCATION",
            b"GIT~1",
            ".g\u{200c}it".as_bytes(),
            ".\u{feff}Git".as_bytes(),
        ] {
            assert!(refusal(name).is_some(), "{}", shown(name));
        }
        for name in
            [&b".gitignore"[..], b"page_0001.md", b"a b", "ö".as_bytes(), b".github", b"\xff", b".gitmodules", b"git"]
        {
            assert_eq!(refusal(name), None, "{}", shown(name));
        }
    }

    #[cfg(feature = "git")]
    #[test]
    fn links_stay_inside_whatever_they_pass() {
        assert_eq!(link_refusal(b"../x/y", 1), None);
        assert_eq!(link_refusal(b"page_0001.md", 0), None);
        for (target, depth) in [
            (&b"/etc/passwd"[..], 3),
            (b"../x", 0),
            (b"../../x", 1),
            (b"d/../../x", 5),
            (b".git/config", 0),
            (b"../.git", 1),
            (b"", 1),
        ] {
            assert!(link_refusal(target, depth).is_some(), "{}", shown(target));
        }
    }

    #[test]
    fn only_four_ascii_digits_make_a_page() {
        assert_eq!(page_number(b"page_0007.md"), Some(7));
        assert_eq!(page_number(b"page_9999.md"), Some(9999));
        for name in [&b"page_7.md"[..], b"page_00007.md", b"page_0007.MD", b"page_0007.md\n", "page_٠٠٠١.md".as_bytes()]
        {
            assert_eq!(page_number(name), None);
        }
        assert_eq!(page_like(b"Page_00012.MD"), Some(12));
        assert_eq!(page_like(b"notes.md"), None);
    }

    #[test]
    fn case_collisions_are_found_beyond_ascii() {
        let found = |names: [&'static str; 2]| collision(names.map(str::as_bytes).into_iter()).map(|(_, what)| what);
        assert_eq!(found(["a", "b"]), None);
        assert_eq!(found(["A", "a"]), Some("another name differs from it only by case"));
        assert_eq!(found(["Ö", "ö"]), Some("another name differs from it only by case"));
        assert_eq!(found(["a", "a"]), Some("its name stands there twice"));
    }
}
