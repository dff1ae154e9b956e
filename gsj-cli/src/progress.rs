//! How far long work is: a bar on a terminal, elsewhere a line at each tenth. Always on stderr.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::progress;

/// Work below this many bytes is done before anybody could read about it.
const WORTH_SHOWING: u64 = 8 << 20;

/// The progress of work whose size in bytes is known.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    done: u64,
    /// Tenths that were told.
    told: u64,
}

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        let worth = total >= WORTH_SHOWING;
        let bar = (worth && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {msg}  {eta} left");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, total: if worth { total } else { 0 }, done: 0, told: 0 }
    }

    /// Some bytes more are done; `state` says in words where things stand.
    pub(crate) fn advance(&mut self, bytes: u64, state: impl FnOnce() -> String) {
        self.done += bytes;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
            bar.set_message(state());
            return;
        }
        // A total of nothing is never a tenth done.
        let tenths = (self.done * 10).checked_div(self.total).unwrap_or(0);
        if tenths > self.told && tenths < 10 {
            self.told = tenths;
            progress(&format!("{} %: {}", tenths * 10, state()));
        }
    }

    /// Prints without tearing the bar.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
