//! What context each turn was sampled from: F1, F2, F3 (`checks.md` section 11.6).

use gsj_trace::canonical::ContextHash;
use gsj_trace::json::{Array, Object, ValueRef};
use gsj_trace::reconstruct::ContextKind;

use super::certificate::{Turn, is_of_session, turns};
use crate::messages::object_or_empty;
use crate::trace::{Mask, Trace};
use crate::validate::Context;

const MEMBER: &str = "gsj_fidelity";
const MISSING: &str = "F1:missing_evidence:gsj_fidelity";

pub(crate) fn check_session(trajectory: &Object<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let passes = match object_or_empty(trajectory.get("metadata")).get(MEMBER) {
        Some(certificate) => is_of_session(certificate),
        None => !context.policy.require_fidelity,
    };
    if !passes {
        findings.push(MISSING.to_owned());
    }
}

pub(crate) fn check_trace(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let Some(certificate) = trace.metadata.get(MEMBER) else {
        if context.policy.require_fidelity {
            findings.push(MISSING.to_owned());
        }
        return;
    };
    let runs = Mask::of(trace).turns();
    // Each merged completion is one run of trained tokens; where that does not hold, nothing says which is which.
    let Some(turns) = turns(certificate).filter(|turns| turns.len() == runs.len()) else {
        findings.push(MISSING.to_owned());
        return;
    };
    let starts = runs.iter().map(|run| run.start);
    let (prompt, response) = (trace.array("prompt_ids"), trace.array("response_ids"));
    findings.extend(
        mismatches(&turns, starts, prompt, response).map(|turn| format!("F2:context_hash_mismatch:turn={turn}")),
    );
    let limit = context.policy.max_inexact_contexts;
    let inexact = turns.iter().filter(|turn| is_counted(turn.kind, context)).count();
    if u64::try_from(inexact).is_ok_and(|inexact| inexact > limit) {
        findings.push(format!("F3:inexact_context:{inexact}>{limit}"));
    }
}

fn is_counted(kind: ContextKind, context: &Context<'_>) -> bool {
    match kind {
        ContextKind::Exact => false,
        ContextKind::Retokenized => context.policy.count_retokenized,
        ContextKind::Template | ContextKind::Rewritten | ContextKind::Inexact => true,
    }
}

/// The turns, counted from 1, that are called exact and whose context has another hash. One walk for all of them.
fn mismatches<'v>(
    turns: &'v [Turn<'v>],
    starts: impl Iterator<Item = usize> + 'v,
    prompt: &'v Array<'v>,
    response: &'v Array<'v>,
) -> impl Iterator<Item = usize> + 'v {
    let mut hash = Some(ContextHash::new());
    add(&mut hash, prompt, 0, prompt.len());
    let mut hashed = 0;
    turns.iter().zip(starts).enumerate().filter_map(move |(at, (turn, start))| {
        add(&mut hash, response, hashed, start);
        hashed = start;
        let differs = hash.as_ref().is_none_or(|hash| hash.digest() != turn.context_sha256);
        (turn.kind == ContextKind::Exact && differs).then_some(at + 1)
    })
}

/// Adds a part of an array, clipped at its end. What is no token id leaves no hash to compare.
fn add(hash: &mut Option<ContextHash>, ids: &Array<'_>, from: usize, to: usize) {
    let (from, to) = (from.min(ids.len()), to.min(ids.len()));
    let Some(state) = hash else { return };
    if let Some(bare) = ids.as_u32s() {
        state.add(&bare[from..to]);
        return;
    }
    for at in from..to {
        match ids.get(at).and_then(ValueRef::as_int).and_then(|id| id.as_u32()) {
            Some(id) => state.add(&[id]),
            None => return *hash = None,
        }
    }
}
