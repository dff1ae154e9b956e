//! Tripwires (`checks.md` section 8.6).

use gsj_trace::json::ValueRef;

use super::show;
use crate::messages::{is_text, object_or_empty};
use crate::trace::Trace;

/// A final `length` is allowed on purpose.
const FINISH_REASONS: [&str; 4] = ["stop", "tool_calls", "stop_sequence", "length"];

pub(crate) fn check(trace: &Trace<'_>, findings: &mut Vec<String>) {
    let reason = trace.get("finish_reason");
    if !FINISH_REASONS.iter().any(|allowed| is_text(reason, allowed)) {
        findings.push(format!("TR1:finish_reason_not_allowed:{}", show(reason)));
    }
    let split = trace.metadata.get("split");
    if split.is_some() && !["train", "eval"].iter().any(|known| is_text(split, known)) {
        findings.push(format!("TR3:split_not_train_or_eval:{}", show(split)));
    }
    let masked = object_or_empty(trace.metadata.get("reasoning_loss_mask")).get("masked_tokens");
    if let Some(masked) = masked.filter(|masked| !means_none(*masked)) {
        findings.push(format!("TR2:reasoning_loss_mask_masked_tokens:{}", masked.show()));
    }
}

/// Null, any spelling of zero, `"0"`, the empty string.
fn means_none(masked: ValueRef<'_>) -> bool {
    match masked {
        ValueRef::Null => true,
        ValueRef::Str(text) => text.is_empty() || text == "0",
        other => other.python_eq(ValueRef::Int(0.into())),
    }
}
