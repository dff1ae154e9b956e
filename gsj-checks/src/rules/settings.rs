//! The agent's settings, G7 (`checks.md` section 8.13).

use gsj_pins::{Key, PinsError};
use gsj_trace::canonical::canonical_sha256;
use gsj_trace::json::ValueRef;

use super::digest_text;
use crate::messages::object_or_empty;
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    let settings = object_or_empty(trace.metadata.get("gsj_settings"));
    if settings.is_empty() {
        findings.push("G7:missing_evidence:settings".to_owned());
        return Ok(());
    }
    let digest = canonical_sha256(ValueRef::Object(settings));
    if !context.pins.approved(Key::Settings)?.contains_digest(digest.as_deref()) {
        findings.push(format!("G7:settings_hash_not_approved:{}", digest_text(digest.as_deref())));
    }
    Ok(())
}
