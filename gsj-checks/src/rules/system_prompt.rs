//! The system prompt, G2 (`checks.md` section 8.11).

use gsj_pins::{Key, PinsError};
use gsj_trace::canonical::str_sha256;
use gsj_trace::json::ValueRef;

use super::digest_text;
use crate::messages::{is_text, text};
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    // Asked for before any message is looked at: a faulty set is noticed even without one.
    let approved = context.pins.approved(Key::SystemPrompt)?;
    let messages = trace.array("prompt_messages").iter().filter_map(ValueRef::as_object);
    let mut any = false;
    for message in messages.filter(|message| is_text(message.get("role"), "system")) {
        any = true;
        let digest = str_sha256(text(message).as_ref());
        if !approved.contains_digest(digest.as_deref()) {
            findings.push(format!("G2:system_prompt_hash_not_approved:{}", digest_text(digest.as_deref())));
        }
    }
    if !any {
        findings.push("G2:missing_evidence:system_prompt".to_owned());
    }
    Ok(())
}
