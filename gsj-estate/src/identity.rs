//! Who commits, and when (`corpus.md` section 7): cleaned up as git 2.47 does it, dates only with an offset.

/// The author and committer of every commit of an estate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name, cleaned up; not empty.
    pub name: String,
    /// The address, cleaned up.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: u64,
    /// Minutes east of Greenwich.
    pub offset: i32,
}

impl Identity {
    /// The line as it stands in a commit, without `author` or `committer` in front.
    pub(crate) fn line(&self) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs();
        format!("{} <{}> {} {sign}{:02}{:02}", self.name, self.email, self.seconds, minutes / 60, minutes % 60)
    }
}

/// Cuts what git cuts from both ends of a name or address, and drops what it drops inside.
pub(crate) fn cleaned(text: &str) -> String {
    let cut = |character: char| character <= ' ' || ",:;<>\"\\'".contains(character);
    text.trim_matches(cut).replace(['<', '>', '\n'], "")
}

/// The last second that git reads from a date in words, and from a number without `@`: the end of 2099 in Greenwich.
const LAST: i64 = 4_102_444_799;
/// The least number that git takes for seconds where no `@` with `+0000` says so; below, it looks for a date in it.
const LEAST_PLAIN: i64 = 100_000_000;

/// Reads a date in one of the forms that carry their offset, as git 2.47 reads it; `None` for any other, and for what git
/// refuses.
///
/// ISO (`2026-01-01T00:00:00 +0000`, a blank for the `T`, seconds or none, `Z`, offsets with a colon), seconds since
/// 1970 with an offset (`@` in front or not), and the form of mail headers.
pub(crate) fn date(text: &str) -> Option<(u64, i32)> {
    let text = text.trim();
    let (seconds, offset) = match epoch(text) {
        Some(read) => read,
        None => iso(text).or_else(|| mail(text)).filter(|(seconds, _)| *seconds <= LAST)?,
    };
    Some((u64::try_from(seconds).ok()?, offset))
}

fn epoch(text: &str) -> Option<(i64, i32)> {
    let (seconds, zone) = text.strip_prefix('@').unwrap_or(text).split_once(' ')?;
    if !seconds.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = seconds.parse().ok()?;
    // As it stands in a commit, any number will do; else it must lie where no date without dashes does.
    let as_in_a_commit = text.starts_with('@') && zone.starts_with(['+', '-']) && zone.len() == 5;
    (as_in_a_commit || (LEAST_PLAIN..=LAST).contains(&seconds)).then_some((seconds, offset(zone)?))
}

fn iso(text: &str) -> Option<(i64, i32)> {
    let (year, rest) = number(text, 4, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2, 2)?;
    let (of_day, rest) = clock(rest.strip_prefix(['T', ' '])?)?;
    // A fraction of a second is read and dropped.
    let rest =
        rest.strip_prefix('.').map_or(rest, |fraction| fraction.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = offset(rest.strip_prefix(' ').unwrap_or(rest))?;
    Some((days(year, month, day)? * 86_400 + of_day - i64::from(zone) * 60, zone))
}

fn mail(text: &str) -> Option<(i64, i32)> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const WEEK: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let text = match text.split_once(',') {
        // Of other words before a comma git makes what it can.
        Some((weekday, rest)) if WEEK.contains(&weekday.to_ascii_lowercase().as_str()) => rest.trim_start(),
        Some(_) => return None,
        None => text,
    };
    let (day, rest) = number(text, 1, 2)?;
    let (month, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let month = MONTHS.iter().position(|name| month.to_ascii_lowercase() == *name)?;
    let (year, rest) = number(rest, 4, 4)?;
    let (of_day, rest) = clock(rest.strip_prefix(' ')?)?;
    let zone = offset(rest.strip_prefix(' ')?)?;
    let month = i64::try_from(month).ok()? + 1;
    Some((days(year, month, day)? * 86_400 + of_day - i64::from(zone) * 60, zone))
}

/// Hours, minutes and perhaps seconds, as seconds of the day.
fn clock(text: &str) -> Option<(i64, &str)> {
    let (hours, rest) = number(text, 2, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2, 2)?;
    let (seconds, rest) = match rest.strip_prefix(':') {
        Some(rest) => number(rest, 2, 2)?,
        None => (0, rest),
    };
    (hours < 24 && minutes < 60 && seconds < 60).then_some((hours * 3600 + minutes * 60 + seconds, rest))
}

/// `Z`, `+0130` or `+01:30`, as minutes; nothing may follow.
fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':').unwrap_or(rest), 2, 2)?;
    (rest.is_empty() && hours < 15 && minutes < 60)
        .then(|| i32::try_from(hours * 60 + minutes).ok().map(|m| sign * m))?
}

fn number(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count < least {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}

/// Days since 1970 of a day that the calendar has.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    if !(1..=length).contains(&day) || !(1970..=2099).contains(&year) {
        return None;
    }
    let before: i64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let months: i64 = lengths.iter().take(usize::try_from(month - 1).ok()?).sum();
    Some(before + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_with_an_offset_is_read() {
        let new_year = Some((1_767_225_600, 0));
        for text in [
            "2026-01-01T00:00:00 +0000",
            "2026-01-01T00:00:00Z",
            "2026-01-01 00:00 +0000",
            "@1767225600 +0000",
            "1767225600 +0000",
            "Thu, 1 Jan 2026 00:00:00 +0000",
            "1 Jan 2026 00:00:00 +0000",
        ] {
            assert_eq!(date(text), new_year, "{text}");
        }
        assert_eq!(date("2026-01-01T05:30:00+05:30"), Some((1_767_225_600, 330)));
        assert_eq!(date("2025-12-31T19:00:00 -0500"), Some((1_767_225_600, -300)));
        assert_eq!(date("2024-02-29T12:00:00Z"), Some((1_709_208_000, 0)));
    }

    #[test]
    fn dates_that_a_machine_would_complete_are_refused() {
        for text in [
            "2026-01-01",
            "2026-01-01T00:00:00",
            "first of May",
            "1969-12-31T23:59:59 +0000",
            "2026-02-30T00:00:00Z",
            "yesterday",
            "",
            "1970-01-01T00:00:00 +0100",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00 +0000 x",
            "20260101 +0000",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    /// Git is asked for each; where there is none, what it said once is compared with.
    #[test]
    fn what_is_read_is_what_git_reads() {
        let table = [
            ("20260101000000 +0000", None),
            ("202601011200 +0000", None),
            ("2100-01-01T00:00:00Z", None),
            ("2100-01-01T00:00:00+05:00", None),
            ("9999-12-31T23:59:59Z", None),
            ("2099-12-31T23:59:59Z", Some((4_102_444_799, 0))),
            ("2099-12-31T19:00:00 -0500", None),
            ("1 Jan 2100 00:00:00 +0000", None),
            ("@12345 Z", None),
            ("@12345 +00:00", None),
            ("@12345 +0000", Some((12_345, 0))),
            ("@0 +0000", Some((0, 0))),
            ("@4102444800 +0000", Some((4_102_444_800, 0))),
            ("@4102444800 Z", None),
            ("@4102444799 Z", Some((4_102_444_799, 0))),
            ("@1767225600 -05:30", Some((1_767_225_600, -330))),
            ("@99999999999999999999 +0000", None),
            ("@ +0000", None),
            ("1999999999999 +0000", None),
            ("12345678901 Z", None),
            ("4102444800 +0000", None),
            ("4102444799 -0500", Some((4_102_444_799, -300))),
            ("99999999 +0000", None),
            ("100000000 +1400", Some((100_000_000, 840))),
            ("000000001 +0000", None),
            ("1767225600 Z", Some((1_767_225_600, 0))),
            ("2026-01-01T00:00:00.123456789 +0000", Some((1_767_225_600, 0))),
            ("1970-01-01T00:00:00 +0001", None),
            ("1970-01-01T14:00:00 +1400", Some((0, 840))),
            ("THU, 1 Jan 2026 00:00:00 +0000", Some((1_767_225_600, 0))),
        ];
        for (text, wanted) in table {
            assert_eq!(date(text), wanted, "{text}");
            let Ok(git) = std::process::Command::new("git")
                .args(["var", "GIT_AUTHOR_IDENT"])
                .envs([("GIT_AUTHOR_NAME", "n"), ("GIT_AUTHOR_EMAIL", "e"), ("GIT_AUTHOR_DATE", text)])
                .output()
            else {
                continue;
            };
            let line = wanted.map(|(seconds, offset)| {
                Identity { name: "n".into(), email: "e".into(), seconds, offset }.line() + "\n"
            });
            let said = git.status.success().then(|| String::from_utf8_lossy(&git.stdout).into_owned());
            // Up to 2.39 git took some moments after 2099, later it takes none: what versions read differently is refused.
            let late = |said: &String| {
                let seconds = said.split(' ').nth(2).and_then(|word| word.parse().ok());
                seconds.is_some_and(|seconds: u64| seconds >= 4_102_444_800)
            };
            if wanted.is_none() && said.as_ref().is_some_and(late) {
                continue;
            }
            assert_eq!(said, line, "{text}: {}", String::from_utf8_lossy(&git.stderr));
        }
        assert_eq!(date("5 Mar, 1 Jan 2026 00:00:00 +0000"), None, "git makes another day of it");
    }

    #[test]
    fn names_are_cleaned_as_git_does() {
        assert_eq!(cleaned(",;:\"a.b\",;:"), "a.b");
        assert_eq!(cleaned("a<b>c"), "abc");
        assert_eq!(cleaned("<fixtures@gsj.invalid>"), "fixtures@gsj.invalid");
        assert_eq!(cleaned("J. Doe."), "J. Doe.");
        assert_eq!(cleaned("<>"), "");
        assert_eq!(cleaned(" Jörg Öztürk\n"), "Jörg Öztürk");
    }

    #[test]
    fn negative_offsets_keep_their_minutes() {
        let identity = Identity { name: "n".into(), email: "e".into(), seconds: 5, offset: -330 };
        assert_eq!(identity.line(), "n <e> 5 -0530");
    }
}
