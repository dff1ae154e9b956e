//! A verdict per gate, for people.

use gsj_checks::{Gate, gates};

use crate::terminal::{GREEN, RED, paint};

/// A table with a line per gate and the findings below the gate that made them.
pub(crate) fn table(findings: &[String]) -> String {
    let mut lines = Vec::new();
    for gate in gates() {
        let own: Vec<&String> =
            findings.iter().filter(|f| Gate::of_finding(f).is_some_and(|g| g.id == gate.id)).collect();
        let mark = if own.is_empty() { paint(GREEN, "pass") } else { paint(RED, "FAIL") };
        lines.push(format!("  {mark}  {:<4} {}", gate.id, gate.meaning));
        for finding in own {
            lines.push(format!("            {finding}"));
        }
    }
    for finding in findings.iter().filter(|f| Gate::of_finding(f).is_none()) {
        lines.push(format!("  {}  {finding}", paint(RED, "FAIL")));
    }
    lines.join("\n")
}
