//! What a validation found.

use crate::names::printable;
use crate::rules;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The scope of a finding that concerns no case.
pub(crate) const CORPUS: &str = "(corpus)";

/// The most failing findings of one rule at one place; the last then says how many more there are.
const MOST_AT_A_PLACE: usize = 200;
/// The most failing findings of one rule in a run.
const MOST_OF_A_RULE: usize = 5_000;

/// One thing that was checked, and whether it holds (`corpus.md` section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The id of the [rule](crate::Rule), `group.rule`; `ts.pass` for a timestep without fault.
    pub rule: &'static str,
    /// A case id, or `(corpus)`.
    pub scope: String,
    /// `train`, `eval`, or `-` where no split is concerned.
    pub split: &'static str,
    /// The file, directory or part that the finding is about.
    #[serde(rename = "where")]
    pub where_: String,
    /// Whether the rule holds there.
    pub ok: bool,
    /// What was found, with the names, values and numbers that are needed to mend it.
    pub detail: String,
    /// The file or directory that is at fault, below the corpus folder; `None` where that is something not there.
    pub file: Option<String>,
    /// The line in that file, from 1, where there is one.
    pub line: Option<usize>,
    /// The column in that line, in characters from 1, where there is one.
    pub column: Option<usize>,
    /// What to do about it, in one sentence; none where nothing is to be done.
    pub hint: Option<&'static str>,
}

impl Finding {
    /// The file with line and column as compilers write them, with control characters escaped.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let mut place = printable(self.file.as_deref()?);
        for number in [self.line, self.column].into_iter().flatten() {
            place.push(':');
            place.push_str(&number.to_string());
        }
        Some(place)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule, printable(&self.where_), self.detail)?;
        match self.place() {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// All findings of one run, in a fixed order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings: the corpus first, then cases by split and name, timesteps by number.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The findings that fail.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.ok)
    }

    /// How many findings pass and how many fail.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let failed = self.failures().count();
        (self.findings.len() - failed, failed)
    }
}

/// A place in a text file, both from 1; columns are counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl At {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// The place behind a text.
    pub(crate) fn of(text: &str) -> Self {
        Self::START.after(text)
    }

    /// The place behind a text that begins here. LF, CRLF and CR alone end a line, as YAML has it; so a text is not cut
    /// between a CR and its LF.
    pub(crate) fn after(self, text: &str) -> Self {
        match text.rfind(['\n', '\r']) {
            None => Self { column: self.column + text.chars().count(), ..self },
            Some(last) => Self {
                line: self.line + text.split(['\n', '\r']).count() - 1 - text.matches("\r\n").count(),
                column: text[last + 1..].chars().count() + 1,
            },
        }
    }
}

/// What stays the same over many findings.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) scope: String,
    pub(crate) split: &'static str,
    pub(crate) where_: String,
    pub(crate) file: Option<String>,
}

impl Place {
    pub(crate) fn corpus(where_: impl Into<String>) -> Self {
        Self { scope: CORPUS.into(), split: "-", where_: where_.into(), file: None }
    }

    pub(crate) fn split(split: &'static str, where_: impl Into<String>) -> Self {
        Self { split, ..Self::corpus(where_) }
    }

    pub(crate) fn case(scope: impl Into<String>, split: &'static str, where_: impl Into<String>) -> Self {
        Self { scope: scope.into(), split, where_: where_.into(), file: None }
    }

    /// This place with the file, below the corpus folder, that is at fault.
    pub(crate) fn of_file(&self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self.clone() }
    }

    pub(crate) fn finding(&self, rule: &'static str, ok: bool, detail: impl Into<String>) -> Finding {
        debug_assert!(rules::find(rule).is_some(), "{rule} is not in the catalogue");
        Finding {
            rule,
            scope: self.scope.clone(),
            split: self.split,
            where_: self.where_.clone(),
            ok,
            detail: detail.into(),
            file: self.file.clone(),
            line: None,
            column: None,
            hint: rules::find(rule).map(|rule| rule.hint).filter(|hint| !ok && !hint.is_empty()),
        }
    }
}

/// Where findings are collected: any number of faults makes a bounded number of findings.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    findings: Vec<Finding>,
    failed: usize,
    of_rule: BTreeMap<&'static str, Tally>,
    at_place: BTreeMap<(&'static str, String, String), Tally>,
}

/// How many findings there were, and which one tells how many more, once there is one.
#[derive(Debug, Default)]
struct Tally {
    count: usize,
    more: Option<usize>,
}

impl Collector {
    /// How many findings failed, those counted only included.
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }

    pub(crate) fn fail(&mut self, place: &Place, rule: &'static str, detail: impl Into<String>) {
        let finding = place.finding(rule, false, detail);
        self.push(finding);
    }

    pub(crate) fn fail_at(&mut self, place: &Place, at: At, rule: &'static str, detail: impl Into<String>) {
        let finding = place.finding(rule, false, detail);
        self.push(Finding { line: Some(at.line), column: Some(at.column), ..finding });
    }

    pub(crate) fn pass(&mut self, place: &Place, at: Option<At>, rule: &'static str, detail: impl Into<String>) {
        let finding = place.finding(rule, true, detail);
        self.push(Finding { line: at.map(|at| at.line), column: at.map(|at| at.column), ..finding });
    }

    /// A file or directory, below the corpus folder, that cannot be read.
    pub(crate) fn unreadable(&mut self, place: &Place, file: &str, error: &std::io::Error) {
        self.fail(&place.of_file(file), "io.unreadable", format!("{} cannot be read: {error}", printable(file)));
    }

    fn push(&mut self, finding: Finding) {
        debug_assert!(rules::find(finding.rule).is_some(), "{} is in the catalogue", finding.rule);
        if finding.ok {
            self.findings.push(finding);
            return;
        }
        let at_place = (finding.rule, finding.scope.clone(), finding.where_.clone());
        if count(self.at_place.entry(at_place).or_default(), MOST_AT_A_PLACE, &finding, &mut self.findings) {
            self.take(finding);
        } else {
            self.failed += 1;
        }
    }

    /// Takes a finding of a collector for one place, which has counted it there.
    pub(crate) fn take(&mut self, finding: Finding) {
        if !finding.ok {
            self.failed += 1;
            if !count(self.of_rule.entry(finding.rule).or_default(), MOST_OF_A_RULE, &finding, &mut self.findings) {
                return;
            }
        }
        self.findings.push(finding);
    }

    pub(crate) fn report(self) -> Report {
        Report { findings: self.findings }
    }
}

/// Counts a finding; past the limit it is told by number, and no longer wanted itself.
fn count(tally: &mut Tally, limit: usize, finding: &Finding, findings: &mut Vec<Finding>) -> bool {
    tally.count += 1;
    if tally.count <= limit {
        return true;
    }
    let detail = format!("and {} more of {}", tally.count - limit, finding.rule);
    match tally.more.and_then(|at| findings.get_mut(at)) {
        Some(more) => more.detail = detail,
        None => {
            tally.more = Some(findings.len());
            findings.push(Finding { detail, file: None, line: None, column: None, ..finding.clone() });
        }
    }
    false
}

/// A path as findings name it: below the root, parts joined by slashes.
pub(crate) fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_make_few_findings_that_count_them() {
        let mut found = Collector::default();
        for number in 0..100_000 {
            found.fail(&Place::corpus("(root)"), "root.stray", format!("{number}"));
        }
        for number in 0..6_000 {
            found.fail(&Place::case(format!("C{number}"), "train", "(case)"), "case.id", "bad");
        }
        assert_eq!(found.failed(), 106_000);
        let report = found.report();
        assert_eq!(report.findings.len(), 201 + 5_001);
        assert_eq!(report.findings[200].detail, "and 99800 more of root.stray");
        assert_eq!(report.findings.last().map(|last| last.detail.as_str()), Some("and 1000 more of case.id"));
    }

    #[test]
    fn places_are_counted_in_characters_from_one() {
        assert_eq!(At::of(""), At { line: 1, column: 1 });
        assert_eq!(At::of("é"), At { line: 1, column: 2 });
        assert_eq!(At::of("a\nbé\nc"), At { line: 3, column: 2 });
        assert_eq!(At::of("a\rb\r\nc\n\r\nd"), At { line: 5, column: 2 });
        assert_eq!(At::of("a\n").after("bc"), At { line: 2, column: 3 });
    }
}
