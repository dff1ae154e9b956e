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

/// Marks the first quote, backslash or control character, and perhaps bytes behind it.
#[inline]
fn not_plain(word: u64) -> u64 {
    // Subtracting sets the high bit of a byte that was smaller, unless it was set before. The
    // borrow may mark bytes above such a one wrongly, never below (Hacker's Delight 6-1).
    let below = |word: u64, limit: u8| word.wrapping_sub(eight(limit)) & !word;
    let quote = below(word ^ eight(b'"'), 1);
    let backslash = below(word ^ eight(b'\\'), 1);
    (quote | backslash | below(word, 0x20)) & eight(0x80)
}

/// The offset of the first quote, backslash or control character from an offset on, or the end.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // Most strings are short keys: one way for all lengths up to 15 has nothing to guess.
    if let (Some(first), Some(second)) = (word(bytes, at), word(bytes, at + 8)) {
        let (first, second) = (before(not_plain(first)), before(not_plain(second)));
        if first + second < 16 {
            return at + first + if first == 8 { second } else { 0 };
        }
        at += 16;
    }
    long_plain_end(bytes, at)
}

fn long_plain_end(bytes: &[u8], at: usize) -> usize {
    let special = |b: u8| b < 0x20 || b == b'"' || b == b'\\';
    let mut rest = &bytes[at..];
    // A comparison of so many bytes at once is one of vectors.
    while let Some((chunk, behind)) = rest.split_first_chunk::<32>() {
        if chunk.iter().fold(false, |any, b| any | special(*b)) {
            break;
        }
        rest = behind;
    }
    while let Some((chunk, behind)) = rest.split_first_chunk() {
        let marks = not_plain(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return bytes.len() - rest.len() + before(marks);
        }
        rest = behind;
    }
    bytes.len() - rest.len() + rest.iter().position(|b| special(*b)).unwrap_or(rest.len())
}

/// How many commas there are before the next bracket, or letter that looks like one: a guess at the
/// elements to come, which looks at no byte again for another array.
pub(super) fn commas(bytes: &[u8]) -> usize {
    // A bracket is 0x5b or 0x5d.
    let bracket = |b: &u8| b & 0xf9 == 0x59;
    let comma = |b: &u8| usize::from(*b == b',');
    let (chunks, rest) = bytes.as_chunks::<64>();
    let mut count = 0;
    for chunk in chunks {
        if chunk.iter().fold(false, |any, b| any | bracket(b)) {
            return count + chunk.iter().take_while(|b| !bracket(b)).map(comma).sum::<usize>();
        }
        count += usize::from(chunk.iter().map(|b| u8::from(*b == b',')).sum::<u8>());
    }
    count + rest.iter().take_while(|b| !bracket(b)).map(comma).sum::<usize>()
}

/// How often the `stride` bytes before an offset stand there again, one copy behind the other.
pub(super) fn repeats(bytes: &[u8], at: usize, stride: usize) -> usize {
    // A text that goes on like it did is equal to itself, moved by the stride.
    let (before, here) = (&bytes[at - stride..], &bytes[at..]);
    let chunks = before.as_chunks::<32>().0.iter().zip(here.as_chunks::<32>().0);
    let mut same = 32 * chunks.take_while(|(before, here)| before == here).count();
    same += before[same..].iter().zip(&here[same..]).take_while(|(before, here)| before == here).count();
    same / stride
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

/// The number that eight digit values make: as pairs, as fours, as one.
#[inline]
fn joined(values: u64) -> u64 {
    let pairs = (values.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// Where the first blank or comma of a word is: the number of zeros below its mark.
#[derive(Clone, Copy)]
pub(super) struct Separator(u32);

/// Finds the first blank or comma, if there is any. Only good for digits: of the other bytes some end
/// them too.
#[inline]
pub(super) fn separator(word: u64) -> Separator {
    // The digits have this bit, blanks and commas don't.
    Separator((!word & eight(0x10)).trailing_zeros())
}

impl Separator {
    /// How many bytes precede it; 8 when there is none.
    #[inline]
    pub(super) fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    /// How many bits, eight to a byte, precede it; 60 when there is none.
    #[inline]
    pub(super) fn bits(self) -> usize {
        self.0 as usize - 4
    }
}

/// The number that the first `bits` of a word make, when they are one to seven digits that may stand
/// together.
#[inline]
pub(super) fn joined_digits(word: u64, bits: usize) -> Option<u32> {
    if !(8..60).contains(&bits) {
        return None;
    }
    let values = word ^ eight(b'0');
    let shifted = values << (64 - bits);
    // Whether any is above nine: a carry comes only from one that is.
    let others = (shifted.wrapping_add(eight(0x76)) | shifted) & eight(0x80);
    if others != 0 || (values & 0xff == 0 && !stands_alone(bits)) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are below 2^32")]
    Some(joined(shifted) as u32)
}

/// A zero in front is the only digit. Apart and cold, so that it is a branch and not a computation.
#[cold]
fn stands_alone(bits: usize) -> bool {
    bits == 8
}

/// An integer of up to seven digits without a sign, and the offset behind it. A fraction or an
/// exponent may follow.
#[inline]
pub(super) fn small_int(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let word = word(bytes, at)?;
    let (_, count) = digits(word);
    Some((joined_digits(word, 8 * count)?, at + count))
}

/// A number with a fraction, of up to 19 digits that count, and the offset behind it.
///
/// Logprobs have 16 or 17 digits, some zeros before them and an exponent or none: what differs from
/// one to the next is computed, not branched on.
#[inline]
pub(super) fn float(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let negative = *bytes.get(at)? == b'-';
    let start = at + usize::from(negative);
    let (whole, point) = match bytes.get(start..start + 2)? {
        [digit @ b'0'..=b'9', b'.'] => (u32::from(digit - b'0'), start + 1),
        _ => small_int(bytes, start)?,
    };
    if *bytes.get(point)? != b'.' {
        return None;
    }
    let mut number = u64::from(whole);
    let (mut values, mut count) = digits(word(bytes, point + 1)?);
    // Digits that count: zeros in front don't.
    let zeros = if whole == 0 { point - start + values.trailing_zeros() as usize / 8 } else { 0 };
    let mut next = point + 1;
    while count == 8 {
        number = number.wrapping_mul(100_000_000).wrapping_add(joined(values));
        next += 8;
        (values, count) = digits(word(bytes, next)?);
    }
    number = number.wrapping_mul(POWERS[count]).wrapping_add(joined(values << (63 - 8 * count) << 1));
    next += count;
    let places = next - point - 1;
    // 19 digits fit in 64 bits.
    if places == 0 || next - start - 1 > 19 + zeros {
        return None;
    }
    let (exponent, length) = exponent(word(bytes, next)?)?;
    let x = decimal::fraction(number, places + exponent)?;
    Some((if negative { -x } else { x }, next + length))
}

/// How many places a negative exponent of one or two digits adds, and its length: nothing where
/// none follows, `None` for an exponent of another form.
#[inline]
fn exponent(word: u64) -> Option<(usize, usize)> {
    let [letter, sign, tens, ones, more, ..] = word.to_le_bytes();
    let (tens, ones) = (usize::from(tens ^ b'0'), usize::from(ones ^ b'0'));
    let follows = letter | 0x20 == b'e';
    if follows && (sign != b'-' || tens > 9 || (ones <= 9 && more.is_ascii_digit())) {
        return None;
    }
    let (places, length) = if ones <= 9 { (10 * tens + ones, 4) } else { (tens, 3) };
    Some(if follows { (places, length) } else { (0, 0) })
}
