//! Token ids and logprobs as the reference reads them: leniently, and never through a float.

use std::collections::BTreeMap;

use crate::json::{Array, Int, MAX_INTEGER_DIGITS, Value, ValueRef};
use crate::unicode::decimal_digit;

/// Ids of this size and above, and those below zero, are kept as text; their numbers are in the range that this frees.
const LARGE: u32 = 1 << 31;

/// Why an element is no number of the kind asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotANumber {
    /// Another kind of value, or a text that spells none.
    Other,
    /// An infinite float asked for as an integer, or an integer beyond the range of floats asked for as a float.
    Overflow,
}

/// Token ids of any size, each as one `u32`; equal ids have equal numbers, and small ones are their own.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    numbers: BTreeMap<String, u32>,
    texts: Vec<String>,
}

impl Ids {
    /// What Python's `int()` makes of a value: floats are cut, texts may hold digits of any script.
    pub(crate) fn coerced(&mut self, value: ValueRef<'_>) -> Result<u32, NotANumber> {
        match value {
            ValueRef::Float(x) => self.of_float(x.trunc()),
            ValueRef::Str(text) => {
                let text = text.as_str().and_then(any_script).ok_or(NotANumber::Other)?;
                let (negative, digits, written) = decimal(text.trim()).ok_or(NotANumber::Other)?;
                if written > MAX_INTEGER_DIGITS {
                    return Err(NotANumber::Other);
                }
                Ok(self.of_digits(negative, &digits))
            }
            _ => self.of_int(value),
        }
    }

    /// What the reference's session model accepts as an integer: no fraction is lost and digits are ASCII.
    pub(super) fn strict(&mut self, value: ValueRef<'_>) -> Result<u32, NotANumber> {
        match value {
            ValueRef::Float(x) => {
                // Both ends are outside: the reference's range is open.
                if x.fract() == 0.0 && x.abs() < 9_223_372_036_854_775_808.0 {
                    self.of_float(x)
                } else {
                    Err(NotANumber::Other)
                }
            }
            ValueRef::Str(text) => {
                let text = text.as_str().ok_or(NotANumber::Other)?.trim();
                let whole = match text.split_once('.') {
                    Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
                    _ => text,
                };
                let (negative, digits, _) = decimal(whole).ok_or(NotANumber::Other)?;
                if digits.len() + usize::from(negative) > MAX_INTEGER_DIGITS {
                    return Err(NotANumber::Other);
                }
                Ok(self.of_digits(negative, &digits))
            }
            _ => self.of_int(value),
        }
    }

    fn of_int(&mut self, value: ValueRef<'_>) -> Result<u32, NotANumber> {
        match value {
            ValueRef::Bool(flag) => Ok(u32::from(flag)),
            ValueRef::Int(id) => match id.as_i64() {
                Some(id) => Ok(self.fold(id)),
                None => self.of_text(&id.to_string()),
            },
            _ => Err(NotANumber::Other),
        }
    }

    /// `x` has no fraction.
    fn of_float(&mut self, x: f64) -> Result<u32, NotANumber> {
        if x.is_nan() {
            return Err(NotANumber::Other);
        }
        if x.is_infinite() {
            return Err(NotANumber::Overflow);
        }
        self.of_text(&format!("{x:.0}"))
    }

    fn of_text(&mut self, text: &str) -> Result<u32, NotANumber> {
        let (negative, digits, _) = decimal(text).ok_or(NotANumber::Other)?;
        Ok(self.of_digits(negative, &digits))
    }

    /// `digits` are ASCII ones without leading zeros.
    fn of_digits(&mut self, negative: bool, digits: &str) -> u32 {
        let sign = if negative { "-" } else { "" };
        let text = format!("{sign}{digits}");
        match text.parse::<i64>() {
            Ok(id) => self.fold(id),
            Err(_) => self.number(text),
        }
    }

    fn fold(&mut self, id: i64) -> u32 {
        match u32::try_from(id) {
            Ok(small) if small < LARGE => small,
            _ => self.number(id.to_string()),
        }
    }

    fn number(&mut self, text: String) -> u32 {
        // Two thousand million different ids would not fit into memory.
        let next = LARGE.saturating_add(u32::try_from(self.texts.len()).unwrap_or(LARGE));
        let texts = &mut self.texts;
        *self.numbers.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            next
        })
    }

    /// The elements of an array that are their own numbers, when all are.
    pub(super) fn plain(list: ValueRef<'_>) -> Option<&[u32]> {
        // A fold over all elements is faster than a search for the first.
        let all = |ids: &&[u32]| ids.iter().fold(0, |bits, id| bits | id) < LARGE;
        list.as_array().and_then(Array::as_u32s).filter(all)
    }

    /// The number of an id that a configuration names.
    pub(super) fn configured(&mut self, id: i64) -> u32 {
        self.fold(id)
    }

    /// The ids as an array of JSON integers.
    pub(crate) fn to_value(&self, ids: &[u32]) -> Value<'static> {
        if ids.iter().all(|&id| id < LARGE) {
            return Value::from(ids);
        }
        let ids: Vec<Value<'static>> = ids.iter().map(|&id| self.one(id)).collect();
        let small: Option<Vec<u32>> = ids.iter().map(|id| id.as_ref().as_int()?.as_u32()).collect();
        small.map_or_else(|| Value::from(ids), Value::from)
    }

    fn one(&self, id: u32) -> Value<'static> {
        let text = id.checked_sub(LARGE).and_then(|at| self.texts.get(usize::try_from(at).ok()?));
        text.and_then(|text| Int::from_decimal(text)).map_or_else(|| Value::from(id), Value::from)
    }
}

/// What Python's `float()` makes of a value.
pub(super) fn float_of(value: ValueRef<'_>) -> Result<f64, NotANumber> {
    match value {
        ValueRef::Float(x) => Ok(x),
        ValueRef::Bool(flag) => Ok(f64::from(u8::from(flag))),
        ValueRef::Int(n) => Some(n.to_f64()).filter(|x| x.is_finite()).ok_or(NotANumber::Overflow),
        ValueRef::Str(text) => {
            text.as_str().and_then(any_script).and_then(|text| spelled_float(&text)).ok_or(NotANumber::Other)
        }
        _ => Err(NotANumber::Other),
    }
}

fn spelled_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let joined = bytes.iter().enumerate().all(|(i, &b)| b != b'_' || (digit(i.checked_sub(1)) && digit(Some(i + 1))));
    if joined { text.replace('_', "").parse().ok() } else { None }
}

/// Splits a decimal integer into its sign, its digits without leading zeros, and how many digits were written.
fn decimal(text: &str) -> Option<(bool, String, usize)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut digits = String::with_capacity(text.len());
    for group in text.split('_') {
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.push_str(group);
    }
    let significant = digits.trim_start_matches('0');
    let (negative, shown) = if significant.is_empty() { (false, "0") } else { (negative, significant) };
    Some((negative, shown.to_owned(), digits.len()))
}

/// The text with decimal digits of every script as ASCII ones; `None` when it is no candidate for a number.
fn any_script(text: &str) -> Option<String> {
    text.chars()
        .map(|c| {
            if c.is_ascii() {
                return Some(c);
            }
            if c.is_whitespace() {
                return Some(' ');
            }
            decimal_digit(c).and_then(|digit| char::from_digit(digit.into(), 10))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value<'_> {
        Value::parse(text.as_bytes()).unwrap()
    }

    fn coerced(text: &str) -> Result<String, NotANumber> {
        let mut ids = Ids::default();
        let id = ids.coerced(parse(text).as_ref())?;
        Ok(ids.to_value(&[id]).to_json())
    }

    fn strict(text: &str) -> Result<String, NotANumber> {
        let mut ids = Ids::default();
        let id = ids.strict(parse(text).as_ref())?;
        Ok(ids.to_value(&[id]).to_json())
    }

    #[test]
    fn response_ids_are_cut_and_read_from_any_script() {
        for (given, want) in [
            ("3.7", "[3]"),
            ("-3.7", "[-3]"),
            ("true", "[1]"),
            ("\" 1_000 \"", "[1000]"),
            ("\"+07\"", "[7]"),
            ("\"-0\"", "[0]"),
            ("\"\u{663}\u{664}\"", "[34]"),
            ("\"\u{2003}5\u{85}\"", "[5]"),
            ("1e20", "[100000000000000000000]"),
            ("-9223372036854775808", "[-9223372036854775808]"),
            ("4611686018427387904", "[4611686018427387904]"),
        ] {
            assert_eq!(coerced(given), Ok(want.to_owned()), "{given}");
        }
        let long = |zeros: usize| format!("\"{}1\"", "0".repeat(zeros));
        assert_eq!(coerced(&long(4299)), Ok("[1]".to_owned()), "Python reads 4300 digits");
        for bad in [
            "null",
            "[]",
            "{}",
            "NaN",
            "\"\"",
            "\"1__0\"",
            "\"_1\"",
            "\"1.0\"",
            "\"x\"",
            "\"\u{b2}\"",
            "\"- 1\"",
            "\"\\u001f5\"",
            "\"\u{2003}\u{665}\\u001c\"",
            &long(4300),
        ] {
            assert_eq!(coerced(bad), Err(NotANumber::Other), "{bad}");
        }
        assert_eq!(coerced("1e999"), Err(NotANumber::Overflow));
    }

    #[test]
    fn prompt_ids_lose_no_fraction() {
        for (given, want) in [
            ("3.0", "[3]"),
            ("\"1.00\"", "[1]"),
            ("\"\u{85}-1_0.0\u{3000}\"", "[-10]"),
            ("false", "[0]"),
            ("1000000000000000000000000000000", "[1000000000000000000000000000000]"),
        ] {
            assert_eq!(strict(given), Ok(want.to_owned()), "{given}");
        }
        let nines = |sign: &str, count: usize| format!("\"{sign}{}\"", "9".repeat(count));
        assert!(strict(&nines("+", 4300)).is_ok());
        for bad in [
            "2.5",
            "1e30",
            "1e999",
            "-9223372036854775808.0",
            "\"1.5\"",
            "\"\u{663}\"",
            "null",
            "\"\"",
            "\"1.\"",
            "\".0\"",
            "\"1 .0\"",
            "\"1_.0\"",
            "\"\\u001c1\"",
            &nines("", 4301),
            &nines("-", 4300),
        ] {
            assert_eq!(strict(bad), Err(NotANumber::Other), "{bad}");
        }
    }

    #[test]
    fn equal_ids_have_equal_numbers_whatever_their_size() {
        let mut ids = Ids::default();
        let mut id = |text: &str| ids.coerced(parse(text).as_ref()).unwrap();
        assert_eq!(id("1000000000000000000000"), id("\"1_000000000000000000000\""));
        assert_ne!(id("1000000000000000000000"), id("1000000000000000000001"));
        assert_ne!(id("-9223372036854775808"), id("1000000000000000000000"));
        assert_eq!(id("9223372036854775807"), id("\"9223372036854775807\""));
    }

    #[test]
    fn logprobs_are_read_as_floats() {
        let of = |text: &str| float_of(parse(text).as_ref());
        assert_eq!((of("-1"), of("true"), of("\" -1_0.5e-1 \"")), (Ok(-1.0), Ok(1.0), Ok(-1.05)));
        assert!(of("\"nan\"").is_ok_and(f64::is_nan));
        assert_eq!(of("\"-Infinity\""), Ok(f64::NEG_INFINITY));
        for bad in ["\"1_e5\"", "null", "\"\"", "\"\\u001c1.5\"", "\"1e\"", "\".\""] {
            assert_eq!(of(bad), Err(NotANumber::Other), "{bad}");
        }
        assert_eq!(of(&format!("1{}", "0".repeat(400))), Err(NotANumber::Overflow));
    }
}
