//! A verdict per gate, for people.

use gsj_checks::{FindingKind, Gate, Policy, gates};

use crate::terminal::{DIM, GREEN, RED, paint};
use gsj_trace::outline::wrap;

/// Column at which a gate's meaning starts.
const MEANING_AT: usize = 13;

/// Column at which a finding starts.
const FINDING_AT: usize = 6;

/// A table with a line per gate, folded at `width`, and below each gate its findings with what they mean.
pub(crate) fn table(findings: &[String], policy: &Policy, width: usize) -> String {
    let mut lines = Vec::new();
    let room = width.saturating_sub(MEANING_AT);
    for gate in gates(policy.profile) {
        let own: Vec<&str> = findings
            .iter()
            .map(String::as_str)
            .filter(|finding| Gate::of_finding(finding).is_some_and(|of| of.id == gate.id))
            .collect();
        let mark = match own.is_empty() {
            false => paint(RED, "FAIL"),
            true if is_off(gate.id, policy) => paint(DIM, "off "),
            true => paint(GREEN, "pass"),
        };
        push(&mut lines, &format!("  {mark}  {:<5}", gate.id), &wrap(gate.meaning, room));
        tell(&mut lines, &own, room);
    }
    let builder: Vec<&str> = findings.iter().map(String::as_str).filter(|f| Gate::of_finding(f).is_none()).collect();
    if !builder.is_empty() {
        let head = format!("  {}       ", paint(RED, "FAIL"));
        push(&mut lines, &head, &wrap("what the trajectory's builder found, as ADM2 says", room));
        tell(&mut lines, &builder, room);
    }
    lines.join("\n")
}

/// Whether nobody asked this gate's question here.
fn is_off(gate: &str, policy: &Policy) -> bool {
    match gate {
        "H41" => !policy.reject_toolless_roster,
        // Needs the pages of the case.
        "G8" => true,
        _ => false,
    }
}

/// The findings of one kind, equal ones counted; a finding of a later version has none.
struct Told<'f> {
    kind: Option<&'static FindingKind>,
    findings: Vec<(&'f str, usize)>,
}

/// The findings, equal ones once; below the last of a kind what it means and what to do.
fn tell(lines: &mut Vec<String>, findings: &[&str], room: usize) {
    let mut kinds: Vec<Told<'_>> = Vec::new();
    for finding in findings {
        let kind = FindingKind::of(finding);
        let known = kinds.iter().position(|told| kind.is_some() && told.kind == kind);
        let at = known.unwrap_or(kinds.len());
        if at == kinds.len() {
            kinds.push(Told { kind, findings: Vec::new() });
        }
        let told = &mut kinds[at];
        match told.findings.iter_mut().find(|(known, _)| known == finding) {
            Some((_, times)) => *times += 1,
            None => told.findings.push((finding, 1)),
        }
    }
    for Told { kind, findings } in kinds {
        for (finding, times) in findings {
            let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
            // Whole on one line however long it is: people copy hashes and ids out of it.
            lines.push(format!("{:FINDING_AT$}{finding}{times}", ""));
        }
        if let Some(kind) = kind {
            let text = format!("{}. {}", sentence(kind.meaning), kind.action);
            let folded = wrap(&text, room.saturating_sub(2));
            lines.extend(folded.iter().map(|line| format!("{:MEANING_AT$}  {}", "", paint(DIM, line))));
        }
    }
}

fn push(lines: &mut Vec<String>, head: &str, folded: &[String]) {
    let (first, rest) = folded.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
    lines.push(format!("{head}{first}"));
    lines.extend(rest.iter().map(|line| format!("{:MEANING_AT$}{line}", "")));
}

/// The text with a capital at its start.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(findings: &[&str]) -> String {
        let findings: Vec<String> = findings.iter().map(|f| (*f).to_owned()).collect();
        let text = table(&findings, &Policy::default(), 110);
        let plain = anstream::adapter::strip_str(&text).to_string();
        plain
            .lines()
            .filter(|line| !line.starts_with("  pass") && !line.starts_with("  off"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_gate_tells_each_kind_of_finding_once() {
        insta::assert_snapshot!(shown(&[
            "G3:tool_roster_hash_not_approved:aa",
            "G3:tool_roster_hash_not_approved:bb",
            "G3:tool_roster_hash_not_approved:bb",
            "XY1:from_a_later_version:1",
        ]), @r"
            FAIL  G3   the tools offered to the model are an approved roster
                G3:tool_roster_hash_not_approved:aa
                G3:tool_roster_hash_not_approved:bb (2 times)
                         The offered tools are not an approved roster. `gsj pins diff` shows what moved. After an update
                         of the agent or of the retrieval tools' declarations, add the hash that the finding shows to
                         `tool_roster_hash` once you approve of it. Order counts: it follows `harness.tools_allowlist`.
                         `unhashable`: the roster holds NaN, an infinity or a lone surrogate.
            FAIL       what the trajectory's builder found, as ADM2 says
                XY1:from_a_later_version:1
            ");
        assert_eq!(shown(&[]), "", "every gate has one line");
    }
}
