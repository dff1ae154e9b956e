//! Counters in Prometheus' text form, for operators.

use super::board::Standing;
use super::record::{CallOutcome, CallRecord};
use crate::TOOL_NAMES;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 12] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
const OUTCOMES: usize = CallOutcome::ALL.len();
/// The tools, and one more for names that are none.
const TOOLS: usize = TOOL_NAMES.len() + 1;

#[derive(Default)]
pub(super) struct Metrics {
    calls: [[AtomicU64; OUTCOMES]; TOOLS],
    /// Per bound, and one more for what is slower; not cumulative.
    latency: [AtomicU64; BOUNDS.len() + 1],
    latency_micros: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    runs: [AtomicU64; 2],
}

impl Metrics {
    pub(super) fn call(&self, record: &CallRecord) {
        let tool = TOOL_NAMES.iter().position(|name| *name == record.tool).unwrap_or(TOOL_NAMES.len());
        let outcome = CallOutcome::ALL.iter().position(|outcome| *outcome == record.outcome).unwrap_or(0);
        if let Some(count) = self.calls.get(tool).and_then(|outcomes| outcomes.get(outcome)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let seconds = record.latency_ms / 1e3;
        let place = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.latency.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // A cast from float saturates; a latency is no negative number.
        self.latency_micros.fetch_add((seconds * 1e6) as u64, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, reason: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    pub(super) fn index_run(&self, succeeded: bool) {
        if let Some(count) = self.runs.get(usize::from(!succeeded)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of it as text.
    pub(super) fn text(&self, standing: &Standing, uptime_s: i64) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, standing, uptime_s);
        out
    }

    fn write(&self, out: &mut String, standing: &Standing, uptime_s: i64) -> std::fmt::Result {
        head(out, "gsj_retrieval_calls_total", "counter", "Tool calls by tool and outcome.")?;
        for (tool, outcomes) in TOOL_NAMES.into_iter().chain(["unknown"]).zip(&self.calls) {
            for (outcome, count) in CallOutcome::ALL.into_iter().zip(outcomes) {
                let (outcome, count) = (outcome.as_str(), count.load(Ordering::Relaxed));
                writeln!(out, "gsj_retrieval_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")?;
            }
        }
        let name = "gsj_retrieval_call_seconds";
        head(out, name, "histogram", "From a tool call to its answer.")?;
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.latency) {
            below += count.load(Ordering::Relaxed);
            writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}")?;
        }
        below += self.latency.last().map_or(0, |count| count.load(Ordering::Relaxed));
        let seconds = self.latency_micros.load(Ordering::Relaxed) as f64 / 1e6;
        writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {below}\n{name}_sum {seconds}\n{name}_count {below}")?;

        head(out, "gsj_retrieval_refused_total", "counter", "Requests that were refused, by reason.")?;
        for (reason, count) in &*self.refused.lock().unwrap_or_else(PoisonError::into_inner) {
            writeln!(out, "gsj_retrieval_refused_total{{reason=\"{reason}\"}} {count}")?;
        }
        head(out, "gsj_retrieval_index_runs_total", "counter", "Index runs that ended, by result.")?;
        for (result, count) in ["ok", "failed"].into_iter().zip(&self.runs) {
            let count = count.load(Ordering::Relaxed);
            writeln!(out, "gsj_retrieval_index_runs_total{{result=\"{result}\"}} {count}")?;
        }
        let library = standing.library.as_deref();
        let gauges: [(&str, &str, i64); 6] = [
            ("ready", "Whether calls are served.", i64::from(library.is_some())),
            ("indexing", "Whether an index run goes on.", i64::from(standing.running.is_some())),
            ("index_failed", "Whether the last index run failed.", i64::from(standing.failed.is_some())),
            ("cases", "Cases that are served.", count(library.map_or(0, |library| library.case_count()))),
            ("pages", "Pages of all cases.", count(library.map_or(0, |library| library.page_count()))),
            ("uptime_seconds", "Since the service was started.", uptime_s),
        ];
        for (name, about, value) in gauges {
            let name = format!("gsj_retrieval_{name}");
            head(out, &name, "gauge", about)?;
            writeln!(out, "{name} {value}")?;
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}")
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
