//! The time that a template may print.

use super::TemplateError;

/// A local date and time: what `strftime_now` prints. Never read from the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl LocalTime {
    /// Reads `2026-11-29` or `2026-11-29T18:05:00`.
    ///
    /// # Errors
    /// [`TemplateError::Time`] when the text is neither, or no such day exists.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::read(text).ok_or_else(|| TemplateError::Time { text: text.to_owned() })
    }

    fn read(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = time.map_or(Some([0; 3]), |time| numbers(time, ':', [2, 2, 2]))?;
        let year = i32::try_from(year).ok()?;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let real = (1..=12).contains(&month) && (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
        real.then_some(Self { year, month, day, hour, minute, second })
    }

    /// Python's `strftime` in the C locale, for the directives that templates use; `None` for others.
    pub(super) fn format(self, pattern: &str) -> Option<String> {
        let mut out = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let (padded, directive) = match chars.next()? {
                '-' => (false, chars.next()?),
                directive => (true, directive),
            };
            let two = |n: u32| if padded { format!("{n:02}") } else { n.to_string() };
            let hour12 = match self.hour % 12 {
                0 => 12,
                hour => hour,
            };
            let text = match directive {
                'Y' => self.year.to_string(),
                'y' => two(self.year.rem_euclid(100).unsigned_abs()),
                'm' => two(self.month),
                'd' => two(self.day),
                'e' => format!("{:>width$}", self.day, width = if padded { 2 } else { 0 }),
                'H' => two(self.hour),
                'I' => two(hour12),
                'M' => two(self.minute),
                'S' => two(self.second),
                'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
                'B' => self.month_name().to_owned(),
                'b' => self.month_name().chars().take(3).collect(),
                'A' => self.day_name().to_owned(),
                'a' => self.day_name().chars().take(3).collect(),
                'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
                'T' => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
                '%' => "%".to_owned(),
                _ => return None,
            };
            out.push_str(&text);
        }
        Some(out)
    }

    fn month_name(self) -> &'static str {
        MONTHS.get(self.month as usize - 1).copied().unwrap_or_default()
    }

    /// By Sakamoto's rule.
    fn day_name(self) -> &'static str {
        const SHIFTS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = if self.month < 3 { self.year - 1 } else { self.year };
        let shift = SHIFTS.get(self.month as usize - 1).copied().unwrap_or_default();
        let day = year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + shift;
        let day = day + i32::try_from(self.day).unwrap_or_default();
        usize::try_from(day.rem_euclid(7)).ok().and_then(|day| DAYS.get(day)).copied().unwrap_or_default()
    }
}

fn numbers(text: &str, by: char, widths: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(by);
    let mut out = [0; 3];
    for (number, width) in out.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_print_as_python_prints_them() {
        let shown = |time: &str, pattern: &str| LocalTime::parse(time).expect("a time").format(pattern);
        assert_eq!(shown("2026-11-29", "%d %b %Y").as_deref(), Some("29 Nov 2026"));
        assert_eq!(
            shown("2024-02-29T00:05:09", "%A %-d/%-m/%y %I:%M:%S %p %%").as_deref(),
            Some("Thursday 29/2/24 12:05:09 AM %")
        );
        assert_eq!(shown("2000-01-01", "%a %e %B %F %T").as_deref(), Some("Sat  1 January 2000-01-01 00:00:00"));
        assert_eq!(shown("2000-01-01", "%Q"), None);
        for bad in ["2026-02-29", "2026-1-1", "2026-01-01T24:00:00", "today", "2026-01-01-01"] {
            assert!(LocalTime::parse(bad).is_err(), "{bad}");
        }
    }
}
