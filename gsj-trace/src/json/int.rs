//! Integers without a bound.

use std::cmp::Ordering;
use std::fmt;

/// An integer of any size.
///
/// What fits in 64 signed bits is held as a number, everything else as its decimal digits: such
/// values are compared and printed, never computed with.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Int(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i64),
    /// Canonical decimal digits (no `+`, no leading zero) of a value outside the `i64` range.
    Big(Box<str>),
}

/// A borrowed [`Int`], cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntRef<'v>(RefRepr<'v>);

// `Small` holds exactly the `i64` range and `Big` everything else, so the derived equality and
// hash agree with the numeric value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum RefRepr<'v> {
    Small(i64),
    Big(&'v str),
}

impl Int {
    /// Reads an optional `-` and ASCII decimal digits (leading zeros allowed); `None` for any
    /// other text.
    pub fn from_decimal(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        if let Ok(small) = text.parse::<i64>() {
            return Some(Self(Repr::Small(small)));
        }
        let digits = digits.trim_start_matches('0');
        let canonical = if negative { format!("-{digits}") } else { digits.to_owned() };
        // Leading zeros may have hidden a small value from the parse above only when the text is
        // long; parse again without them.
        Some(match canonical.parse::<i64>() {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Big(canonical.into_boxed_str())),
        })
    }

    /// The borrowed form.
    pub fn as_ref(&self) -> IntRef<'_> {
        IntRef(match &self.0 {
            Repr::Small(n) => RefRepr::Small(*n),
            Repr::Big(text) => RefRepr::Big(text),
        })
    }
}

impl Ord for Int {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ref().cmp(&other.as_ref())
    }
}

impl PartialOrd for Int {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Int {
    fn from(n: i64) -> Self {
        Self(Repr::Small(n))
    }
}

impl From<u64> for Int {
    fn from(n: u64) -> Self {
        match i64::try_from(n) {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Big(n.to_string().into_boxed_str())),
        }
    }
}

impl From<i64> for IntRef<'_> {
    fn from(n: i64) -> Self {
        Self(RefRepr::Small(n))
    }
}

impl<'v> IntRef<'v> {
    /// The value, when it fits.
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            RefRepr::Small(n) => Some(n),
            RefRepr::Big(_) => None,
        }
    }

    /// The value, when it fits.
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            RefRepr::Small(n) => u64::try_from(n).ok(),
            RefRepr::Big(text) => text.parse().ok(),
        }
    }

    /// The value, when it fits.
    pub fn as_u32(self) -> Option<u32> {
        self.as_i64().and_then(|n| u32::try_from(n).ok())
    }

    /// The nearest double, ties to even; an infinity when the magnitude is out of range.
    #[expect(clippy::cast_precision_loss, reason = "rounding to nearest is what is asked for")]
    pub fn to_f64(self) -> f64 {
        match self.0 {
            RefRepr::Small(n) => n as f64,
            RefRepr::Big(text) => text.parse().unwrap_or(f64::NAN),
        }
    }

    /// Whether the value is below zero.
    pub fn is_negative(self) -> bool {
        match self.0 {
            RefRepr::Small(n) => n < 0,
            RefRepr::Big(text) => text.starts_with('-'),
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.0 == RefRepr::Small(0)
    }

    /// An owned copy.
    pub fn to_int(self) -> Int {
        Int(match self.0 {
            RefRepr::Small(n) => Repr::Small(n),
            RefRepr::Big(text) => Repr::Big(text.into()),
        })
    }

    /// Compares with a double by exact mathematical value; `None` for NaN.
    pub fn cmp_f64(self, x: f64) -> Option<Ordering> {
        if x.is_nan() {
            return None;
        }
        if x.is_infinite() {
            return Some(if x > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        // Up to 2^53 every integer is a double.
        if let RefRepr::Small(n @ -0x20_0000_0000_0000..=0x20_0000_0000_0000) = self.0 {
            #[expect(clippy::cast_precision_loss, reason = "exact within these bounds")]
            return (n as f64).partial_cmp(&x);
        }
        // Rust prints the exact decimal expansion of a double, so the integral part can be
        // compared digit by digit.
        let whole = x.trunc();
        let whole_int = Int::from_decimal(&format!("{whole:.0}"))?;
        Some(self.cmp(&whole_int.as_ref()).then_with(|| 0.0_f64.total_cmp(&(x - whole + 0.0))))
    }
}

impl Ord for IntRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (RefRepr::Small(a), RefRepr::Small(b)) => a.cmp(&b),
            (RefRepr::Big(a), RefRepr::Big(b)) => match (a.strip_prefix('-'), b.strip_prefix('-')) {
                (Some(a), Some(b)) => magnitude(b, a),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => magnitude(a, b),
            },
            (RefRepr::Big(a), RefRepr::Small(_)) => {
                if a.starts_with('-') {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (RefRepr::Small(_), RefRepr::Big(b)) => {
                if b.starts_with('-') {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        }
    }
}

impl PartialOrd for IntRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn magnitude(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl fmt::Display for IntRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RefRepr::Small(n) => write!(f, "{n}"),
            RefRepr::Big(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for IntRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(text: &str) -> Int {
        Int::from_decimal(text).expect("decimal")
    }

    #[test]
    fn equal_values_have_one_representation() {
        assert_eq!(int("0"), int("-0"));
        assert_eq!(int("007"), Int::from(7_i64));
        assert_eq!(int(&format!("{}12", "0".repeat(40))), Int::from(12_i64));
        assert_eq!(int("9223372036854775808"), Int::from(9_223_372_036_854_775_808_u64));
        assert_eq!(Int::from_decimal("1_0"), None);
        assert_eq!(Int::from_decimal("-"), None);
    }

    #[test]
    fn order_is_numeric_across_representations() {
        let sorted = ["-100000000000000000000", "-99999999999999999999", "-5", "0", "7", "99999999999999999999"];
        for pair in sorted.windows(2) {
            assert!(int(pair[0]).as_ref() < int(pair[1]).as_ref(), "{pair:?}");
        }
    }

    #[test]
    fn comparing_with_doubles_is_exact() {
        // 2^53 + 1 rounds to 2^53 as a double, yet is not equal to it.
        assert_eq!(int("9007199254740993").as_ref().cmp_f64(9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(int("0").as_ref().cmp_f64(-0.0), Some(Ordering::Equal));
        assert_eq!(int("0").as_ref().cmp_f64(-0.5), Some(Ordering::Greater));
        assert_eq!(int("-1").as_ref().cmp_f64(-1.5), Some(Ordering::Greater));
        assert_eq!(int("1").as_ref().cmp_f64(1.5), Some(Ordering::Less));
        assert_eq!(int("1").as_ref().cmp_f64(1.0), Some(Ordering::Equal));
        assert_eq!(int("10000000000000000000000").as_ref().cmp_f64(1e22), Some(Ordering::Equal));
        assert_eq!(int("10000000000000000000001").as_ref().cmp_f64(1e22), Some(Ordering::Greater));
        assert_eq!(int("5").as_ref().cmp_f64(f64::NAN), None);
        assert_eq!(int("5").as_ref().cmp_f64(f64::NEG_INFINITY), Some(Ordering::Greater));
    }

    #[test]
    fn conversion_to_double_overflows_to_infinity() {
        let huge = format!("1{}", "0".repeat(400));
        assert!(int(&huge).as_ref().to_f64().is_infinite());
        assert!((int("-12").as_ref().to_f64() + 12.0).abs() < f64::EPSILON);
    }
}
