//! The tool roster, G3 (`checks.md` section 8.10).

use gsj_pins::{Key, PinsError};
use gsj_trace::canonical::canonical_sha256;
use gsj_trace::json::ValueRef;

use super::digest_text;
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    let Some(tools) = trace.roster() else {
        findings.push("G3:missing_evidence:tools".to_owned());
        return Ok(());
    };
    let digest = canonical_sha256(ValueRef::Array(tools));
    if !context.pins.approved(Key::ToolRoster)?.contains_digest(digest.as_deref()) {
        findings.push(format!("G3:tool_roster_hash_not_approved:{}", digest_text(digest.as_deref())));
    }
    Ok(())
}
