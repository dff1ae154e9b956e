//! How the two versions of YAML read a bare word.

/// What a word is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Null,
    Bool(bool),
    /// A whole number; with its value where that is small, since `010` is 8 to one version and 10 to the other.
    Int(Option<i128>),
    Float,
    Date,
    Merge,
    Default,
}

impl Kind {
    pub(super) fn described(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Null => "null".into(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Int(Some(value)) => format!("the number {value}"),
            Self::Int(None) | Self::Float => "a number".into(),
            Self::Date => "a date".into(),
            Self::Merge => "a merge key".into(),
            Self::Default => "a default key".into(),
        }
    }
}

/// YAML 1.1, as its widest-used reader has it; beside that the single letters that the version itself takes for booleans.
pub(super) fn read_as_1_1(word: &str) -> Kind {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" | "y" | "Y" => Kind::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" | "n" | "N" => Kind::Bool(false),
        "<<" => Kind::Merge,
        "=" => Kind::Default,
        _ if is_date(word) => Kind::Date,
        _ => old_number(word),
    }
}

/// The core schema of YAML 1.2.
pub(super) fn read_as_1_2(word: &str) -> Kind {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        _ => {}
    }
    if let Some(digits) = word.strip_prefix("0o") {
        return if all(digits, |byte| matches!(byte, b'0'..=b'7')) {
            Kind::Int(number(word, digits, 8))
        } else {
            Kind::Text
        };
    }
    if let Some(digits) = word.strip_prefix("0x") {
        return if all(digits, |byte| byte.is_ascii_hexdigit()) {
            Kind::Int(number(word, digits, 16))
        } else {
            Kind::Text
        };
    }
    let unsigned = unsigned(word);
    if all(unsigned, |byte| byte.is_ascii_digit()) {
        return Kind::Int(number(word, unsigned, 10));
    }
    if is_special_float(unsigned, word) || is_core_float(unsigned) { Kind::Float } else { Kind::Text }
}

fn unsigned(word: &str) -> &str {
    word.strip_prefix(['-', '+']).unwrap_or(word)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

/// The value of digits with the sign of the word that they are from; nothing when it is large.
fn number(word: &str, digits: &str, radix: u32) -> Option<i128> {
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if word.starts_with('-') { -value } else { value })
}

fn is_special_float(unsigned: &str, word: &str) -> bool {
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN")
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_core_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => all(fraction, digit),
        Some((whole, fraction)) => all(whole, digit) && fraction.bytes().all(digit),
        None => all(mantissa, digit),
    };
    mantissa_fits && exponent.is_none_or(|exponent| all(self::unsigned(exponent), digit))
}

fn old_number(word: &str) -> Kind {
    let unsigned = unsigned(word);
    let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    if let Some(digits) = unsigned.strip_prefix("0b") {
        return if all(digits, |b| matches!(b, b'0' | b'1' | b'_')) {
            Kind::Int(number(word, digits, 2))
        } else {
            Kind::Text
        };
    }
    if let Some(digits) = unsigned.strip_prefix("0x") {
        let fits = all(digits, |b| b.is_ascii_hexdigit() || b == b'_');
        return if fits { Kind::Int(number(word, digits, 16)) } else { Kind::Text };
    }
    if unsigned.len() > 1 && unsigned.starts_with('0') && all(&unsigned[1..], |b| matches!(b, b'0'..=b'7' | b'_')) {
        return Kind::Int(number(word, &unsigned[1..], 8));
    }
    let first = unsigned.bytes().next();
    if unsigned == "0" || (first.is_some_and(|b| matches!(b, b'1'..=b'9')) && all(unsigned, digit_or_line)) {
        return Kind::Int(number(word, unsigned, 10));
    }
    // A point in front and a sign do not go together.
    let is_float = is_old_float(unsigned) && (unsigned == word || !unsigned.starts_with('.'));
    if is_special_float(unsigned, word) || is_float {
        return Kind::Float;
    }
    if is_base_60(unsigned) {
        return if unsigned.contains('.') { Kind::Float } else { Kind::Int(sixties(word, unsigned)) };
    }
    Kind::Text
}

/// Digits with a point, the exponent only with a sign; or a point and digits.
fn is_old_float(unsigned: &str) -> bool {
    let Some((whole, rest)) = unsigned.split_once('.') else { return false };
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let begins = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let mantissa_fits = if whole.is_empty() {
        begins(fraction) && all(fraction, digit_or_line)
    } else {
        begins(whole) && all(whole, digit_or_line) && fraction.bytes().all(digit_or_line)
    };
    mantissa_fits
        && exponent.is_none_or(|exponent| {
            exponent.strip_prefix(['-', '+']).is_some_and(|digits| all(digits, |byte| byte.is_ascii_digit()))
        })
}

/// Numbers to the base of sixty: `12:30:45`, the last part with a fraction or not.
fn is_base_60(unsigned: &str) -> bool {
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let mut parts = whole.split(':');
    let Some(head) = parts.next() else { return false };
    let digit_or_line = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let head_fits = all(head, digit_or_line)
        && head
            .bytes()
            .next()
            .is_some_and(|b| if fraction.is_some() { b.is_ascii_digit() } else { matches!(b, b'1'..=b'9') });
    let mut count = 0;
    let parts_fit = parts.all(|part| {
        count += 1;
        let bytes = part.as_bytes();
        match bytes.len() {
            1 => bytes[0].is_ascii_digit(),
            2 => matches!(bytes[0], b'0'..=b'5') && bytes[1].is_ascii_digit(),
            _ => false,
        }
    });
    head_fits && parts_fit && count > 0 && fraction.is_none_or(|fraction| fraction.bytes().all(digit_or_line))
}

fn sixties(word: &str, unsigned: &str) -> Option<i128> {
    let mut value: i128 = 0;
    for part in unsigned.split(':') {
        value = value.checked_mul(60)?.checked_add(number("", part, 10)?)?;
    }
    Some(if word.starts_with('-') { -value } else { value })
}

/// `2026-01-01`, or a date and a time whose offset, if any, has a colon or no minutes.
fn is_date(word: &str) -> bool {
    let Some((date, rest)) = cut_date(word) else { return false };
    if rest.is_empty() {
        return date;
    }
    let time = match rest.strip_prefix(['T', 't']) {
        Some(time) => time,
        None if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        None => return false,
    };
    is_time(time)
}

/// Splits year, month and day off; tells whether month and day have two digits.
fn cut_date(word: &str) -> Option<(bool, &str)> {
    let (year, rest) = cut_digits(word, 4, 4)?;
    let (month, rest) = cut_digits(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = cut_digits(rest.strip_prefix('-')?, 1, 2)?;
    Some((year == 4 && month == 2 && day == 2, rest))
}

fn cut_digits(text: &str, least: usize, most: usize) -> Option<(usize, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (count >= least).then(|| (count, &text[count..]))
}

fn is_time(time: &str) -> bool {
    let rest = (|| {
        let (_, rest) = cut_digits(time, 1, 2)?;
        let (_, rest) = cut_digits(rest.strip_prefix(':')?, 2, 2)?;
        let (_, rest) = cut_digits(rest.strip_prefix(':')?, 2, 2)?;
        Some(rest)
    })();
    let Some(rest) = rest else { return false };
    let rest =
        rest.strip_prefix('.').map_or(rest, |fraction| fraction.trim_start_matches(|c: char| c.is_ascii_digit()));
    let rest = rest.trim_start_matches([' ', '\t']);
    if rest.is_empty() || rest == "Z" {
        return true;
    }
    let Some((_, rest)) = rest.strip_prefix(['-', '+']).and_then(|offset| cut_digits(offset, 1, 2)) else {
        return false;
    };
    rest.is_empty() || rest.strip_prefix(':').is_some_and(|minutes| cut_digits(minutes, 2, 2) == Some((2, "")))
}
