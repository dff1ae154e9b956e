//! Colours and marks; `anstream` drops them where they can't be shown and obeys `NO_COLOR`.

use anstyle::{AnsiColor, Style};

pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Says on stderr what is going on, one line per change.
pub(crate) fn progress(text: &str) {
    anstream::eprintln!("{} {text}", paint(DIM, "…"));
}

/// Says on stderr what a person should know but need not act on.
pub(crate) fn warn(text: &str) {
    anstream::eprintln!("{} {text}", paint(YELLOW, "warning:"));
}

/// Columns to wrap at: the terminal's, or 100 elsewhere.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns >= 40)
        .unwrap_or(100)
        .min(160)
}

/// Breaks a text between words into lines of at most `width` columns; a longer word is broken, one line at least.
pub(crate) fn fold(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + length;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for c in word.chars() {
            if used == width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += 1;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn lines_break_between_words_and_long_words_break_anywhere() {
        assert_eq!(fold("one two three", 7), ["one two", "three"]);
        assert_eq!(fold("seventeen letters", 9), ["seventeen", "letters"]);
        assert_eq!(fold("G3:abcdef", 4), ["G3:a", "bcde", "f"]);
        assert_eq!(fold("", 4), [""]);
    }
}
