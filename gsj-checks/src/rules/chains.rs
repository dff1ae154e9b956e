//! Chain statistics (`checks.md` section 8.3).

use gsj_trace::json::{IntRef, Object, ValueRef};

use crate::messages::object_or_empty;
use crate::validate::Context;

const PREFIX: &str = "G7:missing_evidence:reconstruction_stats";

pub(crate) fn check(trajectory: &Object<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let metadata = object_or_empty(trajectory.get("metadata"));
    let stats = object_or_empty(metadata.get("reconstruction_stats"));
    match read(stats) {
        Ok(counts) => compare(counts, context.policy.forks_pass(), findings),
        Err(_) if stats.is_empty() => findings.push(PREFIX.to_owned()),
        Err(key) => findings.push(format!("{PREFIX}.{key}")),
    }
}

/// The counts in the order of [`read`]'s keys, or the first key without a usable one.
fn read<'v>(stats: &'v Object<'v>) -> Result<[IntRef<'v>; 5], &'static str> {
    let count = |key: &'static str| stats.get(key).and_then(ValueRef::as_int).ok_or(key);
    Ok([
        count("chains_total")?,
        count("chains_reconstructed_truncated")?,
        count("completions_total")?,
        count("completions_merged")?,
        count("raw_completions_total")?,
    ])
}

/// Where forks pass, the number of chains is held against that of the traces instead (ADM8).
fn compare([chains, truncated, total, merged, raw]: [IntRef<'_>; 5], forks_pass: bool, findings: &mut Vec<String>) {
    if !forks_pass && chains != IntRef::from(1) {
        findings.push(format!("G7:chains_total_ne_1:{chains}"));
    }
    if !truncated.is_zero() {
        findings.push(format!("G7:chains_truncated:{truncated}"));
    }
    if merged != total {
        findings.push(format!("G7:completions_merged_ne_total:{merged}!={total}"));
    }
    if raw != total {
        findings.push(format!("G7:raw_completions_ne_total:{raw}!={total}"));
    }
}
