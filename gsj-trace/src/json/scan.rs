//! Eight bytes at a time: which of them matter, and the numbers that nearly all numbers are.
//!
//! Nothing here judges. What is not plain is left to the reader, which takes everything and says
//! what is wrong with the rest.

use super::decimal;

/// The same byte eight times.
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The eight bytes at an offset, the first one lowest.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// How many bytes precede the first one whose high bit is set; 8 when there is none.
#[inline]
fn before(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// How many bytes precede the first quote, backslash or control character; 8 when there is none.
#[inline]
pub(super) fn plain_bytes(word: u64) -> usize {
    // Subtracting sets the high bit of a byte that was smaller, unless it was set before. The
    // borrow may mark bytes above such a one wrongly, never below: the lowest mark is right
    // (Hacker's Delight 6-1).
    let below = |word: u64, limit: u8| word.wrapping_sub(eight(limit)) & !word;
    let quote = below(word ^ eight(b'"'), 1);
    let backslash = below(word ^ eight(b'\\'), 1);
    before((quote | backslash | below(word, 0x20)) & eight(0x80))
}

/// How many of the eight bytes are blanks up to the first one that is none.
#[inline]
pub(super) fn blanks(word: u64) -> usize {
    (word ^ eight(b' ')).trailing_zeros() as usize / 8
}

/// The values of up to eight ASCII digits, and how many there are before the first other byte.
#[inline]
fn digits(word: u64) -> (u64, usize) {
    let values = word ^ eight(b'0');
    (values, count_digits(values))
}

/// How many of eight values precede the first one above nine.
#[inline]
fn count_digits(values: u64) -> usize {
    before((((values & eight(0x7f)) + eight(0x76)) | values) & eight(0x80))
}

/// The number that the first `count` of eight digit values make; `count` is 1 to 8.
#[inline]
fn joined(values: u64, count: usize) -> u64 {
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    // With zeros in front, as eight digits; then pairs, then fours, then all.
    let values = values << (64 - 8 * count);
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let fours = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let others = (pairs >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    fours.wrapping_add(others) >> 32
}

/// The digit that a word starts with.
#[inline]
pub(super) fn one_digit(word: u64) -> Option<u32> {
    let digit = word.to_le_bytes()[0] ^ b'0';
    (digit <= 9).then_some(u32::from(digit))
}

/// How many bytes precede the first blank or comma, if any does. Only good for digits: other
/// bytes end them too, or do not.
#[inline]
pub(super) fn before_separator(word: u64) -> usize {
    // The digits have this bit, blanks and commas don't.
    before(!word & eight(0x10))
}

/// The number that the first `count` bytes of a word make, when they are one to seven digits that
/// may stand together.
#[inline]
pub(super) fn joined_digits(word: u64, count: usize) -> Option<u32> {
    if !(1..8).contains(&count) {
        return None;
    }
    let values = word ^ eight(b'0');
    let shifted = values << (64 - 8 * count);
    // Whether any is above nine: a carry comes only from one that is.
    let others = (shifted.wrapping_add(eight(0x76)) | shifted) & eight(0x80);
    // Zero stands alone.
    if others != 0 || (count > 1 && values & 0xff == 0) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are below 2^32")]
    Some(joined(values, count) as u32)
}

/// An integer of up to seven digits without a sign, and the offset behind it. A fraction or an
/// exponent may follow.
#[inline]
pub(super) fn small_int(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let word = word(bytes, at)?;
    let (_, count) = digits(word);
    Some((joined_digits(word, count)?, at + count))
}

/// A number with a fraction, of up to 19 digits that count, and the offset behind it.
#[inline]
pub(super) fn float(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (whole, point) = small_int(bytes, start)?;
    if bytes.get(point) != Some(&b'.') {
        return None;
    }
    let mut number = u64::from(whole);
    let mut next = point + 1;
    loop {
        let (values, count) = digits(word(bytes, next)?);
        next += count;
        if count == 8 {
            number = number.wrapping_mul(100_000_000).wrapping_add(joined(values, 8));
            continue;
        }
        if count > 0 {
            number = number.wrapping_mul(POWERS[count]).wrapping_add(joined(values, count));
        }
        break;
    }
    let mut places = next - point - 1;
    // 19 digits fit in 64 bits, and zeros in front don't count.
    if places == 0 || (next - start > 20 && significant(&bytes[start..next]) > 19) {
        return None;
    }
    if let Some(b'e' | b'E') = bytes.get(next) {
        let (exponent, end) = exponent(bytes, next + 1)?;
        places = places.checked_add_signed(exponent.checked_neg()?)?;
        next = end;
    }
    let x = decimal::fraction(number, places)?;
    Some((if negative { -x } else { x }, next))
}

/// How many digits there are from the first one that is not zero.
#[cold]
fn significant(number: &[u8]) -> usize {
    let first = number.iter().position(|b| matches!(b, b'1'..=b'9')).unwrap_or(number.len());
    number[first..].iter().filter(|b| **b != b'.').count()
}

/// An exponent of up to three digits; `at` is behind the letter.
#[inline]
fn exponent(bytes: &[u8], at: usize) -> Option<(isize, usize)> {
    let sign = bytes.get(at).copied()?;
    let start = at + usize::from(matches!(sign, b'+' | b'-'));
    let mut next = start;
    let mut exponent = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(next) {
        exponent = exponent * 10 + isize::from(digit - b'0');
        next += 1;
        if next - start > 3 {
            return None;
        }
    }
    if next == start {
        return None;
    }
    Some((if sign == b'-' { -exponent } else { exponent }, next))
}
