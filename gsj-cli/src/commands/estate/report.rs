//! A report as a table for people, or one JSON object a line.

use gsj_estate::Report;

use crate::output::{self, Format};
use crate::terminal::{BOLD, DIM, GREEN, RED, paint};

pub(super) fn print(phase: &str, report: &Report, format: Format) {
    if format == Format::Json {
        for finding in &report.findings {
            output::json(finding);
        }
        return;
    }
    output::line(&paint(BOLD, phase));
    output::line(&paint(DIM, &format!("{:<20} {:<6} {:<16} {:<7} detail", "case", "split", "where", "result")));
    for finding in &report.findings {
        let result = if finding.ok { paint(GREEN, "ok     ") } else { paint(RED, "FAIL   ") };
        output::line(&format!(
            "{:<20} {:<6} {:<16} {result} {}",
            finding.scope, finding.split, finding.where_, finding.detail
        ));
    }
    let failed = report.findings.iter().filter(|finding| !finding.ok).count();
    let passed = report.findings.len() - failed;
    let word = if report.passed() { paint(GREEN, "PASS") } else { paint(RED, "FAIL") };
    output::line(&format!("{word}: {passed} passed, {failed} failed"));
}
