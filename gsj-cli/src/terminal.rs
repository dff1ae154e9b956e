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
