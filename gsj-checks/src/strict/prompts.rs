//! Instructions that stand elsewhere than in the prompt's system messages (defect D7). Those of the prompt are judged
//! by the common rule.

use gsj_pins::{Key, PinsError};
use gsj_trace::canonical::str_sha256;
use gsj_trace::json::{Object, ValueRef};

use crate::messages::{is_text, text};
use crate::rules::digest_text;
use crate::trace::Trace;
use crate::validate::Context;

pub(crate) fn check(trace: &Trace<'_>, context: &Context<'_>, findings: &mut Vec<String>) -> Result<(), PinsError> {
    let approved = context.pins.approved(Key::SystemPrompt)?;
    let of = |list| trace.array(list).iter().filter_map(ValueRef::as_object);
    let has_role = |message: &&Object<'_>, role| is_text(message.get("role"), role);
    let developers = of("prompt_messages").filter(|message| has_role(message, "developer"));
    let late = of("response_messages").filter(|message| has_role(message, "system") || has_role(message, "developer"));
    for message in developers.chain(late) {
        let digest = str_sha256(text(message).as_ref());
        if !approved.contains_digest(digest.as_deref()) {
            findings.push(format!("G2:system_prompt_hash_not_approved:{}", digest_text(digest.as_deref())));
        }
    }
    Ok(())
}
