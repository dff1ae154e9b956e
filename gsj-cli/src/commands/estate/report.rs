//! A report as a table for people, or one JSON object a line.

use gsj_estate::Report;

use crate::output::{self, Format};
use crate::terminal::{BOLD, DIM, GREEN, RED, paint};

/// The narrowest that the columns of names are, and the widest that they become.
const COLUMN: std::ops::RangeInclusive<usize> = 8..=40;

pub(super) fn print(phase: &str, report: &Report, format: Format) {
    if format == Format::Json {
        for finding in &report.findings {
            output::json(finding);
        }
        return;
    }
    let widest = |lengths: Vec<usize>| lengths.into_iter().max().unwrap_or(0).clamp(*COLUMN.start(), *COLUMN.end());
    let case = widest(report.findings.iter().map(|finding| finding.scope.chars().count()).collect());
    let place = widest(report.findings.iter().map(|finding| finding.where_.chars().count()).collect());
    output::line(&paint(BOLD, phase));
    output::line(&paint(DIM, &format!("{:<case$} {:<6} {:<place$} {:<7} detail", "case", "split", "where", "result")));
    for finding in &report.findings {
        let result = if finding.ok { paint(GREEN, "ok     ") } else { paint(RED, "FAIL   ") };
        output::line(&format!(
            "{:<case$} {:<6} {:<place$} {result} {}",
            finding.scope, finding.split, finding.where_, finding.detail
        ));
    }
    let failed = report.findings.iter().filter(|finding| !finding.ok).count();
    let passed = report.findings.len() - failed;
    let word = if report.passed() { paint(GREEN, "PASS") } else { paint(RED, "FAIL") };
    output::line(&format!("{word}: {passed} passed, {failed} failed"));
}
