//! Floats as Python prints them.

use std::fmt::Write as _;

/// The shortest decimal text that reads back to the same double, in Python's notation:
/// positional for exponents from -4 to 15, else `d.ddde±XX` (`checks.md` section 2).
///
/// ```
/// use gsj_trace::json::float_text;
/// assert_eq!(float_text(100.0), "100.0");
/// assert_eq!(float_text(1e16), "1e+16");
/// assert_eq!(float_text(0.00001), "1e-05");
/// assert_eq!(float_text(f64::NAN), "nan");
/// ```
pub fn float_text(x: f64) -> String {
    let mut out = String::new();
    push_float(x, ["nan", "inf", "-inf"], &mut out);
    out
}

/// Appends a float; `names` are those of NaN and the two infinities.
pub(super) fn push_float(x: f64, names: [&str; 3], out: &mut String) {
    if x.is_nan() {
        return out.push_str(names[0]);
    }
    if x.is_infinite() {
        return out.push_str(if x > 0.0 { names[1] } else { names[2] });
    }
    let start = out.len();
    // Rust's exponent form has the shortest digits that read back, which is all that is needed:
    // only the place of the point is to be chosen.
    let _ = write!(out, "{x:e}");
    let Some(mark) = out[start..].find('e').map(|at| start + at) else { return };
    let exponent: i32 = out[mark + 1..].parse().unwrap_or(0);
    out.truncate(mark);
    make_even(x, exponent, start, out);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let first = start + usize::from(out[start..].starts_with('-'));
    if out[first..].len() > 1 {
        out.remove(first + 1); // the point after the first digit
    }
    if exponent < 0 {
        const ZEROS: [&str; 4] = ["0.", "0.0", "0.00", "0.000"];
        let zeros = exponent.unsigned_abs() as usize - 1;
        out.insert_str(first, ZEROS[zeros]);
    } else {
        let point = first + exponent.unsigned_abs() as usize + 1;
        if out.len() > point {
            out.insert(point, '.');
        } else {
            out.extend(std::iter::repeat_n('0', point - out.len()));
            out.push_str(".0");
        }
    }
}

/// Chooses the even one of two shortest texts that are equally close, as Python does; Rust takes the larger.
///
/// `out[start..]` is `d.ddd` of `x` with this exponent.
fn make_even(x: f64, exponent: i32, start: usize, out: &mut String) {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let (mantissa, biased) = (bits & MANTISSA, i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0));
    let mantissa = if biased == 0 { mantissa } else { mantissa | (MANTISSA + 1) };
    let places = out[start..].find('.').map_or(0, |point| out.len() - start - point - 1);
    // A double with n bits behind the binary point has n digits behind the decimal one, the last of them a 5.
    let exact_digits = 1075 - biased.max(1) - i32::try_from(mantissa.trailing_zeros()).unwrap_or(64);
    let digits = i32::try_from(places).unwrap_or(i32::MAX).saturating_sub(exponent);
    if mantissa == 0 || exact_digits != digits.saturating_add(1) || digits <= 0 {
        return;
    }
    let even = format!("{x:.places$e}");
    if even.parse() == Ok(x) {
        out.truncate(start);
        out.push_str(even.split('e').next().unwrap_or(&even));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::excessive_precision, reason = "the digits beyond the shortest text are the point")]
    fn notation_switches_where_python_switches() {
        for (x, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (123.456, "123.456"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_123, "0.000123"),
            (-0.012, "-0.012"),
            (0.000_012, "1.2e-05"),
            (1e15, "1000000000000000.0"),
            (1.5e15, "1500000000000000.0"),
            (1e16, "1e+16"),
            (1.25e16, "1.25e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (1.5e-7, "1.5e-07"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (f64::MAX, "1.7976931348623157e+308"),
            // Half-way between two texts of the same length.
            (-27_629_475_188_425.312_5, "-27629475188425.312"),
            (-27_629_475_188_425.437_5, "-27629475188425.438"),
            (970_797_207_635_747.25, "970797207635747.2"),
            (970_797_207_635_747.75, "970797207635747.8"),
            (1_042_672_749_312.031_25, "1042672749312.0312"),
            (2_122_533_438_541_925.25, "2122533438541925.2"),
            (0.5, "0.5"),
            (0.25, "0.25"),
            (5.0, "5.0"),
        ] {
            assert_eq!(float_text(x), text);
        }
    }
}
