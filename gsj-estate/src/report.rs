//! What a validation found.

use serde::Serialize;
use std::fmt;

/// The scope of a finding that concerns no case.
pub(crate) const CORPUS: &str = "(corpus)";

/// One thing that was checked, and whether it holds (`corpus.md` section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's id, `group.rule`; `ts.pass` for a timestep without fault.
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
    /// The file below the corpus folder, where the finding is about a file's content.
    pub file: Option<String>,
    /// The line in that file, from 1, where there is one.
    pub line: Option<usize>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule, self.where_, self.detail)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            _ => Ok(()),
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
}

/// Where findings are collected, with the parts that stay the same over many of them.
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

    pub(crate) fn of_file(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    pub(crate) fn finding(&self, rule: &'static str, ok: bool, detail: impl Into<String>) -> Finding {
        Finding {
            rule,
            scope: self.scope.clone(),
            split: self.split,
            where_: self.where_.clone(),
            ok,
            detail: detail.into(),
            file: self.file.clone(),
            line: None,
        }
    }
}

impl Report {
    pub(crate) fn fail(&mut self, place: &Place, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(place.finding(rule, false, detail));
    }

    pub(crate) fn fail_at(&mut self, place: &Place, line: usize, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(Finding { line: Some(line), ..place.finding(rule, false, detail) });
    }

    pub(crate) fn pass(&mut self, place: &Place, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(place.finding(rule, true, detail));
    }
}
