//! Folding text into words.

/// Takes the folded bytes of a word.
pub(super) trait Sink {
    /// Takes the lowest `count` bytes (at most eight) of `bytes`, the lowest first; the others are 0.
    fn bytes(&mut self, bytes: u64, count: usize);

    fn byte(&mut self, byte: u8) {
        self.bytes(u64::from(byte), 1);
    }
}

impl Sink for Vec<u8> {
    fn bytes(&mut self, bytes: u64, count: usize) {
        self.extend_from_slice(&bytes.to_le_bytes()[..count]);
    }
}

/// Where a word stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a byte is; every other value is the folded byte of a word.
const GAP: u8 = 0;
const ESCAPE: u8 = 1;
const WIDE: u8 = 2;

/// The folded form of each byte.
static FOLDED: [u8; 256] = {
    let mut table = [GAP; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let character = byte as u8;
        table[byte] = match character {
            b'\\' => ESCAPE,
            0x80.. => WIDE,
            _ if character.is_ascii_alphanumeric() => character.to_ascii_lowercase(),
            _ => GAP,
        };
        byte += 1;
    }
    table
};

/// What stands at a place that takes more than one byte to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A character of a word.
    Letter(char),
    /// A word of its own, in scripts that write no gaps.
    Ideograph(char),
    /// Nothing that a reader sees: it neither ends nor continues a word.
    Invisible,
    Gap,
}

/// Whether a byte ends every word, escape and character before it.
pub(super) fn is_gap(byte: u8) -> bool {
    FOLDED[usize::from(byte)] == GAP
}

/// Reads the next word at or after `at` into the sink; `None` at the end of the text.
#[inline]
pub(super) fn next_word(text: &[u8], mut at: usize, sink: &mut impl Sink) -> Option<Word> {
    let start = loop {
        let folded = FOLDED[usize::from(*text.get(at)?)];
        if folded > WIDE {
            break at;
        }
        if folded == GAP {
            at += 1;
            continue;
        }
        match part(text, at) {
            (Part::Letter(_), _) => break at,
            (Part::Ideograph(character), length) => {
                letter(character, sink);
                return Some(Word { start: at, end: at + length });
            }
            (Part::Invisible | Part::Gap, length) => at += length,
        }
    };
    loop {
        let count = letters(text, at, sink);
        at += count;
        if count == 8 {
            continue;
        }
        let Some(byte) = text.get(at) else { break };
        let folded = FOLDED[usize::from(*byte)];
        if folded > WIDE {
            sink.byte(folded);
            at += 1;
            continue;
        }
        if folded == GAP {
            break;
        }
        match part(text, at) {
            (Part::Letter(character), length) => {
                letter(character, sink);
                at += length;
            }
            (Part::Invisible, length) => at += length,
            (Part::Ideograph(_) | Part::Gap, _) => break,
        }
    }
    Some(Word { start, end: at })
}

/// Takes what of the next eight bytes are ASCII letters and digits, up to the first that is neither; tells how many.
#[inline]
fn letters(text: &[u8], at: usize, sink: &mut impl Sink) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let Some(Ok(bytes)) = text.get(at..at + 8).map(<[u8; 8]>::try_from) else { return 0 };
    let bytes = u64::from_le_bytes(bytes);
    // The high bit of each byte says whether the byte lies in a range; with seven bits, no sum runs into the next byte.
    let seven = bytes & !HIGH;
    let lower = seven | (0x20 * EACH);
    let from = |value: u64, first: u8| value + (0x80 - u64::from(first)) * EACH;
    let letter = from(lower, b'a') & !from(lower, b'z' + 1);
    let digit = from(seven, b'0') & !from(seven, b'9' + 1);
    let other = !((letter | digit) & !bytes) & HIGH;
    let count = other.trailing_zeros() as usize / 8;
    // Digits have the bit that makes letters small.
    let kept = if count == 8 { lower } else { lower & ((1 << (8 * count)) - 1) };
    sink.bytes(kept, count);
    count
}

fn letter(character: char, sink: &mut impl Sink) {
    let mut buffer = [0; 4];
    let mut write = |character: char| character.encode_utf8(&mut buffer).bytes().for_each(|byte| sink.byte(byte));
    if u32::from(character) >= 0x2E80 { write(character) } else { character.to_lowercase().for_each(write) }
}

/// Reads an escape or a character beyond ASCII; the length is in bytes and never 0.
fn part(text: &[u8], at: usize) -> (Part, usize) {
    if text[at] != b'\\' {
        let (character, length) = character(&text[at..]);
        return (character.map_or(Part::Gap, class), length);
    }
    // Each time a text is put into JSON its backslashes double, so a run of any length stands for one escape.
    let run = text[at..].iter().take_while(|byte| **byte == b'\\').count();
    let length = run + 1;
    match text.get(at + run) {
        Some(b'n' | b't' | b'r' | b'b' | b'f') => (Part::Gap, length),
        // What is more than a power of two are backslashes of the text itself, before the escape.
        Some(b'u') if !run.is_power_of_two() => (Part::Gap, run & (run - 1)),
        Some(b'u') => match unit(text, at + length) {
            Some(high @ 0xD800..=0xDBFF) => {
                let low = at + length + 4;
                let again = text[low..].iter().take_while(|byte| **byte == b'\\').count();
                let pair = (again > 0 && text.get(low + again) == Some(&b'u'))
                    .then(|| unit(text, low + again + 1))
                    .flatten()
                    .filter(|unit| (0xDC00..=0xDFFF).contains(unit));
                match pair.and_then(|unit| char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00))) {
                    Some(character) => (class(character), length + 4 + again + 5),
                    None => (Part::Gap, length + 4),
                }
            }
            Some(unit) => (char::from_u32(unit).map_or(Part::Gap, class), length + 4),
            None => (Part::Gap, run),
        },
        _ => (Part::Gap, run),
    }
}

/// The four hex digits of an escape.
fn unit(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

/// The first character of a text that is not empty; what is no UTF-8 is none and takes one byte.
fn character(text: &[u8]) -> (Option<char>, usize) {
    let length = match text[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let decoded = text.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match decoded.and_then(|text| text.chars().next()) {
        Some(character) => (Some(character), length),
        None => (None, 1),
    }
}

fn class(character: char) -> Part {
    match u32::from(character) {
        // Soft hyphen, joiners and direction marks, variation selectors, byte order mark.
        0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFE00..=0xFE0F | 0xFEFF => Part::Invisible,
        // Combining marks are letters: without them other words would come out.
        0x300..=0x36F => Part::Letter(character),
        // Kana and ideographs; Hangul is written with gaps.
        0x3041..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF => {
            Part::Ideograph(character)
        }
        _ if character.is_alphanumeric() => Part::Letter(character),
        _ => Part::Gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let (mut at, mut words) = (0, Vec::new());
        loop {
            let mut word = Vec::new();
            let Some(found) = next_word(text.as_bytes(), at, &mut word) else { return words };
            assert!(found.start < found.end && found.start >= at, "a word takes place");
            at = found.end;
            words.push(String::from_utf8(word).expect("folding keeps UTF-8"));
        }
    }

    #[test]
    fn case_white_space_marks_and_escapes_fold_away() {
        let want = ["the", "caf\u{e9}", "s", "12", "keys"];
        for text in [
            "The caf\u{e9}'s 12 keys",
            "THE\n\n**CAF\u{c9}**\u{2019}s (12)\u{a0}keys.",
            r"The\ncaf\u00e9\u2019s\t12 keys\r\n",
            r#"The\\ncaf\\u00C9\\\"s \\\\n12\/keys"#,
            "The ca\u{ad}f\u{e9} s 12 ke\u{200b}ys",
        ] {
            assert_eq!(words(text), want, "{text}");
        }
        assert_eq!(words(r"x\ud83d\ude00y \ud835\udc00 \ud800 \u12"), ["x", "y", "\u{1d400}", "u12"]);
        assert_eq!(words("\u{6771}\u{4eac} and"), ["\u{6771}", "\u{4eac}", "and"]);
        assert_eq!(words("\\"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn folding_undoes_json(text in r#"[a-zA-Z0-9 \\"/\n\tu\u{e9}\u{1F600}\u{6771}\u{1d400}]{0,40}"#, times in 1..3) {
            let mut escaped = text.clone();
            for _ in 0..times {
                escaped = serde_json::to_string(&escaped).expect("serializes");
            }
            prop_assert_eq!(words(&text), words(&escaped));
            let ascii: String = escaped.chars().flat_map(|character| {
                let mut units = [0; 2];
                let units = character.encode_utf16(&mut units);
                if character.is_ascii() { vec![character] }
                else { units.iter().flat_map(|unit| format!("\\u{unit:04x}").chars().collect::<Vec<_>>()).collect() }
            }).collect();
            prop_assert_eq!(words(&text), words(&ascii));
        }

        #[test]
        fn any_bytes_fold(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let (mut at, mut sink) = (0, Vec::new());
            while let Some(word) = next_word(&bytes, at, &mut sink) {
                prop_assert!(word.end > at);
                at = word.end;
            }
        }
    }
}
