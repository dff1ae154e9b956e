//! The order of arrival (section 11.6): by `sequence`, else by time.

use crate::json::ValueRef;

/// The indices of records in the order of their arrival.
///
/// A record without the number or the time that the others have stays behind the one it stands behind.
pub(super) fn of_arrival(records: &[ValueRef<'_>]) -> Vec<usize> {
    let sequences: Vec<Option<i64>> = records.iter().map(|r| r.get("sequence").and_then(ValueRef::as_i64)).collect();
    if sequences.iter().any(Option::is_some) {
        return sorted(&sequences);
    }
    let times: Vec<Option<Instant>> =
        records.iter().map(|r| r.get("timestamp").and_then(ValueRef::as_str).and_then(instant)).collect();
    sorted(&times)
}

fn sorted<K: Ord + Copy>(keys: &[Option<K>]) -> Vec<usize> {
    let mut last = None;
    let mut order: Vec<(Option<K>, usize)> = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        last = key.or(last);
        order.push((last, i));
    }
    order.sort_by_key(|(key, _)| *key);
    order.into_iter().map(|(_, i)| i).collect()
}

/// Seconds since 1970 and the fraction in units of 10^-18 s.
type Instant = (i64, u64);

/// Reads a time as RFC 3339 and Python write it: a fraction of any length, `Z`, an offset or, for UTC, nothing.
fn instant(text: &str) -> Option<Instant> {
    let mut rest = text.trim();
    let year = number(&mut rest, 4)?;
    let month = number(after(&mut rest, &['-'])?, 2)?;
    let day = number(after(&mut rest, &['-'])?, 2)?;
    let hour = number(after(&mut rest, &['T', 't', ' '])?, 2)?;
    let minute = number(after(&mut rest, &[':'])?, 2)?;
    let second = match after(&mut rest, &[':']) {
        Some(rest) => number(rest, 2)?,
        None => 0,
    };
    let fraction = match after(&mut rest, &['.', ',']) {
        Some(rest) => fraction(rest)?,
        None => 0,
    };
    let offset = offset(rest)?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    fits.then(|| (days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset, fraction))
}

/// Steps over one of these characters.
fn after<'r, 't>(rest: &'r mut &'t str, marks: &[char]) -> Option<&'r mut &'t str> {
    *rest = rest.strip_prefix(marks)?;
    Some(rest)
}

/// Reads up to that many digits; some clocks do not write leading zeros.
fn number(rest: &mut &str, digits: usize) -> Option<i64> {
    let length = rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    head.parse().ok()
}

fn fraction(rest: &mut &str) -> Option<u64> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    let kept = digits.get(..digits.len().min(18))?;
    format!("{kept:0<18}").parse().ok().filter(|_| length > 0)
}

/// Seconds east of UTC.
fn offset(mut rest: &str) -> Option<i64> {
    let sign = match rest.chars().next() {
        None => return Some(0),
        Some('Z' | 'z') => return (rest.len() == 1).then_some(0),
        Some('+') => 1,
        Some('-') => -1,
        Some(_) => return None,
    };
    rest = &rest[1..];
    let hours = number(&mut rest, 2)?;
    let colon = after(&mut rest, &[':']).is_some();
    let minutes = if colon || !rest.is_empty() { number(&mut rest, 2)? } else { 0 };
    rest.is_empty().then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days from 1970-01-01 in the Gregorian calendar; years are counted from March, so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
        - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    #[test]
    fn times_are_read_as_times() {
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some((0, 0))),
            ("1970-01-01 01:00:00+01:00", Some((0, 0))),
            ("2000-02-29T12:00:00.5-0030", Some((951_827_400, 500_000_000_000_000_000))),
            ("2026-01-01t00:00:00.000001z", Some((1_767_225_600, 1_000_000_000_000))),
            ("2026-01-01T00:00", Some((1_767_225_600, 0))),
            ("2026-1-1T0:00:9+00:00", Some((1_767_225_609, 0))),
            ("2026-01-01T00:00:00.1234567890123456789", Some((1_767_225_600, 123_456_789_012_345_678))),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01T00:00:00+01:", None),
            ("2026-01-01T00:00:00Zz", None),
            ("2026-01-01\u{e9}", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(instant(text), want, "{text}");
        }
    }

    fn order(records: &str) -> Vec<usize> {
        let records = Value::parse(records.as_bytes()).unwrap();
        let records: Vec<ValueRef<'_>> = records.as_array().unwrap().iter().collect();
        of_arrival(&records)
    }

    #[test]
    fn the_sequence_counts_before_the_time_and_what_has_neither_stays_where_it_stands() {
        assert_eq!(order(r#"[{"sequence":2,"timestamp":"2026-01-01T00:00:00Z"},{"sequence":1}]"#), [1, 0]);
        assert_eq!(order(r#"[{"sequence":2},{},{"sequence":1},{"sequence":"0"}]"#), [2, 3, 0, 1]);
        assert_eq!(
            order(
                r#"[{"timestamp":"2026-01-01T00:00:09+00:00"},{"timestamp":"2026-01-01T00:00:10"},{},{"timestamp":"2026-01-01T02:00:01+02:00"}]"#
            ),
            [3, 0, 1, 2]
        );
        assert_eq!(order(r#"[{"timestamp":"b"},{"timestamp":"a"},7]"#), [0, 1, 2]);
    }
}
