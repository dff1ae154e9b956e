//! Logprob discipline (`checks.md` section 8.5).

use std::cmp::Ordering;

use gsj_trace::json::{Array, ValueRef, float_text};

use super::Tally;
use crate::trace::{Mask, Trace};
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) {
    let tokens = trace.array("response_ids").len();
    let mask = Mask::of(trace);
    check_mask(tokens, mask, findings);
    let trained = mask.trained();
    let Some(logprobs) = trace.get("response_logprobs").and_then(ValueRef::as_array) else {
        if trained > 0 || (tokens > 0 && mask.array.is_empty()) {
            findings.push("LP1:response_logprobs_absent".to_owned());
        }
        return;
    };
    if logprobs.len() != tokens {
        findings.push(format!("LP2:response_logprobs_length_ne_response_ids:{}!={tokens}", logprobs.len()));
    }
    let census = Census::of(logprobs, mask, context.policy.sentinel_threshold);
    census.sentinel.report("LP3:sentinel_logprob_at_mask1", findings);
    census.nonfinite.report("LP4:nonfinite_logprob", findings);
    census.positive.report("LP5:positive_logprob", findings);
    check_zero_rate(census.zeros, trained, context.policy.zero_at_mask1_max_rate, findings);
}

fn check_mask(tokens: usize, mask: Mask<'_>, findings: &mut Vec<String>) {
    let entries = mask.array.len();
    if tokens > 0 && entries == 0 {
        findings.push("LP7:empty_loss_mask".to_owned());
    }
    if entries > 0 && entries != tokens {
        findings.push(format!("LP8:loss_mask_length_ne_response_ids:{entries}!={tokens}"));
    }
    // Without an early end, so that it is one operation for several.
    if mask.bare().is_some_and(|bare| bare.iter().fold(0, |all, entry| all | entry) <= 1) {
        return;
    }
    let mut off_domain = Tally::default();
    for (at, entry) in mask.array.iter().enumerate() {
        if !matches!(entry.as_i64(), Some(0 | 1)) {
            off_domain.note(at);
        }
    }
    off_domain.report("LP9:loss_mask_value_not_binary", findings);
}

/// What one walk over the logprobs finds.
#[derive(Default)]
struct Census {
    nonfinite: Tally,
    positive: Tally,
    /// At mask 1 only.
    sentinel: Tally,
    /// Exact zeros at mask 1.
    zeros: usize,
}

impl Census {
    fn of(logprobs: &Array<'_>, mask: Mask<'_>, threshold: f64) -> Self {
        let mut census = Self::default();
        if let (Some(logprobs), Some(mask)) = (logprobs.as_f64s(), mask.bare())
            && logprobs.chunks(32).all(|some| are_unremarkable(some, threshold))
        {
            // Most stretches are not trained on.
            for (logprobs, mask) in logprobs.chunks(32).zip(mask.chunks(32)) {
                if mask.iter().fold(false, |any, entry| any | (*entry == 1)) {
                    let zero_at_mask1 = |(x, entry): &(&f64, &u32)| **x == 0.0 && **entry == 1;
                    census.zeros += logprobs.iter().zip(mask).filter(zero_at_mask1).count();
                }
            }
            return census;
        }
        for (at, value) in logprobs.iter().enumerate() {
            let Some([to_zero, to_threshold]) = orders(value, threshold) else {
                census.nonfinite.note(at);
                continue;
            };
            if to_zero == Some(Ordering::Greater) {
                census.positive.note(at);
            }
            if mask.is_trained(at) {
                if matches!(to_threshold, Some(Ordering::Less | Ordering::Equal)) {
                    census.sentinel.note(at);
                }
                census.zeros += usize::from(to_zero == Some(Ordering::Equal));
            }
        }
        census
    }
}

/// Whether none is positive or a sentinel: then all are finite too. Without a branch inside, so that it
/// is one comparison for several.
fn are_unremarkable(logprobs: &[f64], threshold: f64) -> bool {
    logprobs.iter().fold(true, |all, x| all & (*x <= 0.0) & (*x > threshold))
}

/// How a value compares with zero and with the threshold, exactly; `None` for what is no finite
/// number, an integer beyond the doubles included.
fn orders(value: ValueRef<'_>, threshold: f64) -> Option<[Option<Ordering>; 2]> {
    match value {
        ValueRef::Float(x) if x.is_finite() => Some([x.partial_cmp(&0.0), x.partial_cmp(&threshold)]),
        ValueRef::Int(n) if n.to_f64().is_finite() => Some([n.cmp_f64(0.0), n.cmp_f64(threshold)]),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn check_zero_rate(zeros: usize, trained: usize, limit: f64, findings: &mut Vec<String>) {
    if trained > 0 && zeros as f64 / trained as f64 > limit {
        findings.push(format!("LP6:zero_logprob_rate_at_mask1:{zeros}/{trained}>{}", float_text(limit)));
    }
}
