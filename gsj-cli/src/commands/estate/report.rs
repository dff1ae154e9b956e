//! A report as a table for people, or one JSON object a line.

use gsj_estate::{Finding, RULES, Report, printable};
use gsj_trace::outline::wrap;

use crate::output::{self, Format};
use crate::terminal::{BOLD, DIM, GREEN, RED, paint, width};

/// How many changed paths are named.
const NAMED: usize = 10;
/// The widest that the columns of names become.
const WIDEST: usize = 40;

/// Prints a report: a row for each finding, what to do about those that fail, and the verdict.
pub(super) fn print(phase: &str, report: &Report, format: Format) {
    if format == Format::Json {
        report.findings.iter().for_each(output::json);
        return;
    }
    output::line(&paint(BOLD, phase));
    table(&report.findings.iter().collect::<Vec<_>>());
    ending(report);
}

/// Prints what a change did: the paths, what fails now, and the verdict.
pub(super) fn print_again(phase: &str, report: &Report, changed: &[String]) {
    let named: Vec<String> = changed.iter().take(NAMED).map(|path| printable(path)).collect();
    let more = match changed.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = match named.is_empty() {
        true => "again: the folder is back, as it was".to_owned(),
        false => format!("changed: {}{more}", named.join(", ")),
    };
    output::line(&format!("\n{} {what}", paint(BOLD, phase)));
    let failures: Vec<&Finding> = report.failures().collect();
    if !failures.is_empty() {
        table(&failures);
    }
    ending(report);
}

fn table(findings: &[&Finding]) {
    let widest = |text: fn(&Finding) -> &str, least: usize| {
        let longest = findings.iter().map(|finding| fitted(text(finding)).chars().count()).max().unwrap_or(0);
        longest.max(least)
    };
    let (case, place) = (widest(|finding| &finding.scope, 4), widest(|finding| &finding.where_, 5));
    output::line(&paint(DIM, &format!("{:<case$}  split  {:<place$}  result  detail", "case", "where")));
    for finding in findings {
        let result = if finding.ok { paint(GREEN, "ok    ") } else { paint(RED, "FAIL  ") };
        let (scope, split, place_of) = (fitted(&finding.scope), finding.split, fitted(&finding.where_));
        output::line(&format!("{scope:<case$}  {split:<5}  {place_of:<place$}  {result}  {}", told(finding)));
    }
}

/// What a finding says, with its rule and its file when it is more than a plain pass.
fn told(finding: &Finding) -> String {
    if finding.rule == "ts.pass" {
        return finding.detail.clone();
    }
    let place = finding.place().map(|place| paint(DIM, &format!("  {place}"))).unwrap_or_default();
    format!("{}: {}{place}", finding.rule, finding.detail)
}

/// What to do about each rule that is broken, and the verdict.
fn ending(report: &Report) {
    let mut rules: Vec<&str> = Vec::new();
    for finding in report.failures() {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    let known = RULES.iter().filter(|rule| rules.contains(&rule.id));
    let longest = rules.iter().map(|rule| rule.len()).max().unwrap_or(0);
    for (index, rule) in known.enumerate() {
        if index == 0 {
            output::line(&paint(BOLD, "\nwhat to do (docs/rules/ says why)"));
        }
        let indent = longest + 4;
        for (line, text) in wrap(rule.hint, width().saturating_sub(indent)).iter().enumerate() {
            let name = if line == 0 { rule.id } else { "" };
            output::line(&format!("  {name:<longest$}  {text}"));
        }
    }
    if !rules.is_empty() {
        output::line("");
    }
    let level = ["yaml.", "agents.", "skills.", "root."];
    let of_level = |finding: &Finding| {
        let unread = finding.rule == "io.unreadable" && finding.scope == "(corpus)" && finding.split == "-";
        unread || level.iter().any(|group| finding.rule.starts_with(group))
    };
    if report.failures().any(of_level) {
        output::line("no case was looked at: the corpus level comes first");
    }
    let (passed, failed) = report.counts();
    let word = if report.passed() { paint(GREEN, "PASS") } else { paint(RED, "FAIL") };
    output::line(&format!("{word}: {passed} passed, {failed} failed"));
}

/// A name for a column: a long one without its middle, as findings say it whole.
fn fitted(text: &str) -> String {
    let text = printable(text);
    let count = text.chars().count();
    if count <= WIDEST {
        return text;
    }
    let (front, back) = (WIDEST / 2, WIDEST - WIDEST / 2 - 1);
    text.chars().take(front).chain(['…']).chain(text.chars().skip(count - back)).collect()
}
