//! Variables that a trace does not record.

use super::align::common_start;
use super::template::Prepared;
use super::trace::Trace;
use super::{ChatTemplate, RenderOptions, RerenderError};
use crate::json::Object;
use crate::tokenizer::Tokenizer;

/// Switches that requests give to templates.
const SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// The given variables, and with them the switch that makes the template write the trace's first prompt. The flag says
/// whether one was added.
pub(super) fn variables(
    trace: &Trace<'_>,
    prepared: &Prepared,
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    options: &RenderOptions,
) -> Result<(Object<'static>, bool), RerenderError> {
    let given = || options.variables.clone();
    if SWITCHES.iter().any(|switch| options.variables.contains_key(switch)) {
        return Ok((given(), false));
    }
    let messages = prepared.messages.get(..trace.prompt_messages).unwrap_or_default();
    let prompt = tokenizer.decode_bytes(trace.ids.get(..trace.prompt).unwrap_or_default());
    let mut tries = vec![(given(), false)];
    for switch in SWITCHES.iter().filter(|switch| template.mentions(switch)) {
        for on in [false, true] {
            let mut variables = given();
            variables.insert(*switch, on);
            tries.push((variables, true));
        }
    }
    // Closest to the prompt; among equals the first, which adds nothing.
    let mut best: Option<(usize, (Object<'static>, bool))> = None;
    for (variables, added) in tries {
        let options = RenderOptions { variables, ..options.clone() };
        let Ok(text) = template.render_prepared(messages, prepared, true, &options) else { continue };
        let near = if text.as_bytes() == prompt { usize::MAX } else { common_start(text.as_bytes(), &prompt) };
        if best.as_ref().is_none_or(|(nearest, _)| near > *nearest) {
            best = Some((near, (options.variables, added)));
        }
        if near == usize::MAX {
            break;
        }
    }
    Ok(best.map_or_else(|| (given(), false), |(_, found)| found))
}
