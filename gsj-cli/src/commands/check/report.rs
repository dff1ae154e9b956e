//! What is printed of verdicts: a line each, and for many a summary by finding.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use gsj_checks::{FindingKind, Policy, Verdict};

use crate::commands::gates;
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::terminal::{self, BOLD, DIM, GREEN, RED, paint, progress};
use gsj_trace::outline::wrap;

/// Up to so many results, each has its own lines; of more, only the rejected ones have one.
const EACH: usize = 20;
/// Column at which a row of the summary says its finding.
const FINDING_AT: usize = 10;

/// One document that was judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) source: String,
    pub(super) size: u64,
    /// Whether `\uXXXX` in its findings stands for a lone surrogate.
    pub(super) escapes: bool,
}

/// Prints verdicts as they come, and counts them.
#[derive(Debug)]
pub(super) struct Report<'p> {
    format: Format,
    policy: &'p Policy,
    progress: Progress,
    started: Instant,
    /// The first results, while it is open whether there are many.
    held: Vec<(Judged, Verdict)>,
    tally: Tally,
}

/// Counts over all results.
#[derive(Debug, Default)]
struct Tally {
    seen: usize,
    rejected: usize,
    unreadable: usize,
    /// `id:slug`, or the code of an unreadable body.
    rows: BTreeMap<String, Row>,
}

#[derive(Debug, Default)]
struct Row {
    /// How many results have it.
    results: usize,
    /// The first of them.
    first: String,
}

impl<'p> Report<'p> {
    pub(super) fn new(format: Format, policy: &'p Policy, progress: Progress) -> Self {
        Self { format, policy, progress, started: Instant::now(), held: Vec::new(), tally: Tally::default() }
    }

    /// How many results were not accepted.
    pub(super) fn rejected(&self) -> usize {
        self.tally.rejected
    }

    pub(super) fn add(&mut self, judged: Judged, verdict: Verdict) {
        self.tally.add(&judged.source, &verdict);
        let size = judged.size;
        match self.format {
            Format::Json => self.progress.aside(|| output::exact(&json(&judged, &verdict))),
            Format::Human if self.tally.seen <= EACH => self.held.push((judged, verdict)),
            Format::Human => {
                for (judged, verdict) in self.held.drain(..).chain([(judged, verdict)]) {
                    if !verdict.accepted() {
                        self.progress.aside(|| output::line(&brief(&judged.source, &verdict)));
                    }
                }
            }
        }
        let tally = &self.tally;
        self.progress.advance(size, || tally.counts());
    }

    /// The run ends before its end.
    pub(super) fn interrupt(&mut self) {
        self.progress.finish();
        for (judged, verdict) in self.held.drain(..) {
            output::line(&full(&judged.source, &verdict));
        }
    }

    pub(super) fn finish(&mut self) {
        self.progress.finish();
        if self.format == Format::Json {
            if self.tally.seen > 1 {
                progress(&self.tally.counts());
            }
            return;
        }
        let width = terminal::width();
        if let [(judged, verdict)] = &self.held[..] {
            output::line(&head(&judged.source, verdict));
            if verdict.unreadable.is_none() {
                output::line(&gates::table(&verdict.findings, self.policy, width));
            }
            return;
        }
        for (judged, verdict) in self.held.drain(..) {
            output::line(&full(&judged.source, &verdict));
        }
        output::line(&format!("\n{}", self.tally.summary(self.policy, self.started.elapsed(), width)));
    }
}

impl Tally {
    fn add(&mut self, source: &str, verdict: &Verdict) {
        self.seen += 1;
        self.rejected += usize::from(!verdict.accepted());
        self.unreadable += usize::from(verdict.unreadable.is_some());
        let mut rules: Vec<String> = verdict.findings.iter().map(|finding| rule(finding).to_owned()).collect();
        rules.extend(verdict.unreadable.as_ref().map(|unreadable| unreadable.code().to_owned()));
        rules.sort();
        rules.dedup();
        for rule in rules {
            let row = self.rows.entry(rule).or_default();
            row.results += 1;
            if row.results == 1 {
                source.clone_into(&mut row.first);
            }
        }
    }

    fn counts(&self) -> String {
        format!("{} results, {} rejected", self.seen, self.rejected)
    }

    fn summary(&self, policy: &Policy, took: Duration, width: usize) -> String {
        let accepted = self.seen - self.rejected;
        let mut out = format!("{} results: {accepted} accepted, {} rejected", self.seen, self.rejected);
        if self.unreadable > 0 {
            let _ = write!(out, " ({} of them unreadable)", self.unreadable);
        }
        let mut out = paint(BOLD, &out);
        let _ = write!(out, "  {}", paint(DIM, &format!("profile {}, {:.1} s", policy.profile, took.as_secs_f64())));
        let mut rows: Vec<(&String, &Row)> = self.rows.iter().collect();
        rows.sort_by(|(a, one), (b, other)| other.results.cmp(&one.results).then(a.cmp(b)));
        if !rows.is_empty() {
            let _ = write!(out, "\n\n results  finding");
        }
        for (name, row) in rows {
            let _ = write!(out, "\n{:>8}  {}", row.results, paint(RED, name));
            let kind = FindingKind::of(name);
            let says = kind.map(|kind| format!("{}; see docs/findings/{}", kind.meaning, kind.page()));
            let first = format!("first in {}", row.first);
            for text in says.iter().chain([&first]) {
                for line in wrap(text, width.saturating_sub(FINDING_AT)) {
                    let _ = write!(out, "\n{:FINDING_AT$}{}", "", paint(DIM, &line));
                }
            }
        }
        out
    }
}

/// `id:slug` of a finding.
fn rule(finding: &str) -> &str {
    FindingKind::of(finding)
        .map_or_else(|| finding.match_indices(':').nth(1).map_or(finding, |(at, _)| &finding[..at]), |kind| kind.prefix)
}

fn head(source: &str, verdict: &Verdict) -> String {
    let mark = if verdict.accepted() { paint(GREEN, "✓") } else { paint(RED, "✗") };
    let session = verdict.session_id.as_deref().map(|id| format!("  {}", paint(DIM, id))).unwrap_or_default();
    match &verdict.unreadable {
        Some(unreadable) => format!("{mark} {source}: {}: {unreadable}", unreadable.code()),
        None => format!("{mark} {source}{session}"),
    }
}

fn full(source: &str, verdict: &Verdict) -> String {
    let mut out = head(source, verdict);
    for finding in &verdict.findings {
        let _ = write!(out, "\n    {finding}");
    }
    out
}

fn brief(source: &str, verdict: &Verdict) -> String {
    match verdict.findings.split_first() {
        None => head(source, verdict),
        Some((first, rest)) => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!("{} {source}  {}{more}", paint(RED, "✗"), rule(first))
        }
    }
}

fn json(judged: &Judged, verdict: &Verdict) -> String {
    let source = &judged.source;
    if let Some(unreadable) = &verdict.unreadable {
        let message = unreadable.to_string();
        return serde_json::json!({"source": source, "session_id": null, "error": unreadable.code(), "message": message})
            .to_string();
    }
    let text = serde_json::json!({"source": source, "session_id": verdict.session_id, "findings": verdict.findings});
    let text = text.to_string();
    if judged.escapes { with_surrogates(&text) } else { text }
}

/// Whether `\uXXXX` in the findings stands for a lone surrogate: a finding is text, which can hold none, so it is written
/// as the escape. Where the body itself spells such characters out, nobody can tell, and they stay what they say.
pub(super) fn may_hold_escapes(verdict: &Verdict, body: &[u8]) -> bool {
    let spelled = |text: &[u8]| text.windows(4).any(|w| w.starts_with(br"\\u") && matches!(w[3], b'd' | b'D'));
    let escaped = |text: &String| text.contains("\\ud");
    verdict.findings.iter().chain(&verdict.session_id).any(escaped) && !spelled(body)
}

/// JSON text in which each spelled out `\\udXXX` is the escape itself: reading it gives the surrogate that the body had.
fn with_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(r"\\") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        out.push_str(before);
        let is_surrogate = after.get(..5).is_some_and(|code| {
            let mut digits = code.chars();
            digits.next() == Some('u')
                && digits.next() == Some('d')
                && digits.next().is_some_and(|c| matches!(c, '8'..='9' | 'a'..='f'))
                && digits.all(|c| c.is_ascii_hexdigit())
        });
        out.push_str(if is_surrogate { r"\" } else { r"\\" });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(findings: &[&str]) -> Verdict {
        Verdict { findings: findings.iter().map(|f| (*f).to_owned()).collect(), ..Verdict::default() }
    }

    #[test]
    fn a_lone_surrogate_is_written_as_the_escape() {
        let judged = |escapes| Judged { source: "f".to_owned(), size: 0, escapes };
        let found = verdict(&[r"ADM1:status_not_completed:\ud800\x"]);
        assert!(may_hold_escapes(&found, br#"{"status":"\ud800\\x"}"#));
        let line = json(&judged(true), &found);
        assert!(line.ends_with(r#""findings":["ADM1:status_not_completed:\ud800\\x"]}"#), "{line}");
        assert!(!may_hold_escapes(&found, br#"{"status":"\\ud800"}"#), "the six characters themselves");
        assert!(json(&judged(false), &found).contains(r"\\ud800"));
        assert!(!may_hold_escapes(&verdict(&["ADM4:no_traces"]), b"{}"));
        assert_eq!(with_surrogates(r#""\\\\ud83d \\ud83g \\u0041 \\"#), r#""\\\ud83d \\ud83g \\u0041 \\"#);
    }

    #[test]
    fn each_result_counts_once_for_a_rule() {
        let mut tally = Tally::default();
        tally.add("a", &verdict(&[]));
        tally.add(
            "b",
            &verdict(&["LP1:response_logprobs_absent", "LP1:response_logprobs_absent", "S6:empty_response_ids:c1"]),
        );
        tally.add("c", &verdict(&["LP1:response_logprobs_absent"]));
        let rows: Vec<_> =
            tally.rows.iter().map(|(name, row)| (name.as_str(), row.results, row.first.as_str())).collect();
        assert_eq!(rows, [("LP1:response_logprobs_absent", 2, "b"), ("S6:empty_response_ids", 1, "b")]);
        assert_eq!(tally.counts(), "3 results, 2 rejected");
    }
}
