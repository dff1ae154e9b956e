//! A verdict per gate, for people.

use gsj_checks::{Gate, gates};

use crate::terminal::{GREEN, RED, paint};

/// A table with a line per gate and the findings below the gate that made them.
pub(crate) fn table(findings: &[String]) -> String {
    let mut text = String::new();
    for gate in gates() {
        let own: Vec<&String> =
            findings.iter().filter(|f| Gate::of_finding(f).is_some_and(|g| g.id == gate.id)).collect();
        let mark = if own.is_empty() { paint(GREEN, "pass") } else { paint(RED, "FAIL") };
        text += &format!("  {mark}  {:<4} {}\n", gate.id, gate.meaning);
        for finding in own {
            text += &format!("            {finding}\n");
        }
    }
    for finding in findings.iter().filter(|f| Gate::of_finding(f).is_none()) {
        text += &format!("  {}  {finding}\n", paint(RED, "FAIL"));
    }
    text.trim_end().to_owned()
}
