//! Classes of characters as Python 3.12 knows them, which is Unicode 15.0, whatever this crate was compiled with.

/// The value of a decimal digit of any script.
///
/// ```
/// use gsj_trace::unicode::decimal_digit;
///
/// assert_eq!(decimal_digit('7'), Some(7));
/// assert_eq!(decimal_digit('٧'), Some(7));
/// assert_eq!(decimal_digit('½'), None);
/// ```
#[must_use]
pub fn decimal_digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
    }
    let point = u32::from(c);
    let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= point)].last()?;
    u8::try_from(point - zero).ok().filter(|digit| *digit < 10)
}

/// Whether `repr` shows a character as it is: letters, marks, numbers, punctuation, symbols and the blank.
///
/// Rust's `Debug` draws the same line, but for characters that came later, and for marks that extend the character
/// before them, which it escapes at the start of a text only.
#[must_use]
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let mut after_a_letter = [0; 5];
    after_a_letter[0] = b'a';
    let length = 1 + c.encode_utf8(&mut after_a_letter[1..]).len();
    std::str::from_utf8(&after_a_letter[..length]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
        && !is_later(c)
}

fn is_later(c: char) -> bool {
    let point = u32::from(c);
    LATER[..LATER.partition_point(|(first, _)| *first <= point)].last().is_some_and(|(_, last)| point <= *last)
}

/// The zero of each run of ten decimal digits, Unicode 15.0, ASCII apart.
const ZEROS: [u32; 67] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0,
    0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16a60,
    0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e950, 0x1fbf0,
];

/// What Unicode 15.1 to 17.0 added, first and last of each run.
#[rustfmt::skip]
const LATER: [(u32, u32); 90] = [
    (0x88f, 0x88f), (0x897, 0x897), (0xc5c, 0xc5c), (0xcdc, 0xcdc), (0x1acf, 0x1add), (0x1ae0, 0x1aeb), (0x1b4e,
    0x1b4f), (0x1b7f, 0x1b7f), (0x1c89, 0x1c8a), (0x20c1, 0x20c1), (0x2427, 0x2429), (0x2b96, 0x2b96), (0x2ffc,
    0x2fff), (0x31e4, 0x31e5), (0x31ef, 0x31ef), (0xa7cb, 0xa7cf), (0xa7d2, 0xa7d2), (0xa7d4, 0xa7d4), (0xa7da,
    0xa7dc), (0xa7f1, 0xa7f1), (0xfbc3, 0xfbd2), (0xfd90, 0xfd91), (0xfdc8, 0xfdce), (0x105c0, 0x105f3), (0x10940,
    0x10959), (0x10d40, 0x10d65), (0x10d69, 0x10d85), (0x10d8e, 0x10d8f), (0x10ec2, 0x10ec7), (0x10ed0, 0x10ed8),
    (0x10efa, 0x10efc), (0x11380, 0x11389), (0x1138b, 0x1138b), (0x1138e, 0x1138e), (0x11390, 0x113b5), (0x113b7,
    0x113c0), (0x113c2, 0x113c2), (0x113c5, 0x113c5), (0x113c7, 0x113ca), (0x113cc, 0x113d5), (0x113d7, 0x113d8),
    (0x113e1, 0x113e2), (0x116d0, 0x116e3), (0x11b60, 0x11b67), (0x11bc0, 0x11be1), (0x11bf0, 0x11bf9), (0x11db0,
    0x11ddb), (0x11de0, 0x11de9), (0x11f5a, 0x11f5a), (0x13460, 0x143fa), (0x16100, 0x16139), (0x16d40, 0x16d79),
    (0x16ea0, 0x16eb8), (0x16ebb, 0x16ed3), (0x16ff2, 0x16ff6), (0x187f8, 0x187ff), (0x18cff, 0x18cff), (0x18d09,
    0x18d1e), (0x18d80, 0x18df2), (0x1cc00, 0x1ccfc), (0x1cd00, 0x1ceb3), (0x1ceba, 0x1ced0), (0x1cee0, 0x1cef0),
    (0x1e5d0, 0x1e5fa), (0x1e5ff, 0x1e5ff), (0x1e6c0, 0x1e6de), (0x1e6e0, 0x1e6f5), (0x1e6fe, 0x1e6ff), (0x1f6d8,
    0x1f6d8), (0x1f777, 0x1f77a), (0x1f8b2, 0x1f8bb), (0x1f8c0, 0x1f8c1), (0x1f8d0, 0x1f8d8), (0x1fa54, 0x1fa57),
    (0x1fa89, 0x1fa8a), (0x1fa8e, 0x1fa8f), (0x1fabe, 0x1fabe), (0x1fac6, 0x1fac6), (0x1fac8, 0x1fac8), (0x1facd,
    0x1facd), (0x1fadc, 0x1fadc), (0x1fadf, 0x1fadf), (0x1fae9, 0x1faea), (0x1faef, 0x1faef), (0x1fbcb, 0x1fbef),
    (0x1fbfa, 0x1fbfa), (0x2b73a, 0x2b73f), (0x2cea2, 0x2cead), (0x2ebf0, 0x2ee5d), (0x323b0, 0x33479),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_script_have_their_value() {
        assert!(ZEROS.is_sorted());
        assert_eq!(
            ['9', '９', '𝟿', '𝟘', '½', '一', 'a', '\u{11f50}', '\u{11f5a}'].map(decimal_digit),
            [Some(9), Some(9), Some(9), Some(0), None, None, None, Some(0), None]
        );
    }

    #[test]
    fn what_is_printable_does_not_change_with_the_compiler() {
        assert!(LATER.is_sorted());
        assert_eq!(char::MIN, '\0');
        assert_eq!((char::MIN..=char::MAX).filter(|c| is_printable(*c)).count(), 148998, "Unicode 15.0 has so many");
        let odd =
            ['\u{7f}', '\u{a0}', '\u{ad}', '\u{301}', '\u{378}', '\u{2028}', '\u{1b4e}', '\u{2ebf0}', '\u{323af}'];
        assert_eq!(odd.map(is_printable), [false, false, false, true, false, false, false, false, true]);
    }
}
