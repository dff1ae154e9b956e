use std::collections::BTreeMap;

use gsj_trace::json::{Value, ValueRef};

use super::manifest::{AgentManifest, OutputFormat};

/// How an agent's run ended, as its output says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The agent came to its end.
    Success {
        /// Why the model stopped last, in the agent's words: `stop`, `length`.
        stop_reason: String,
    },
    /// It did not.
    Failed {
        /// What the output says, or lacks.
        reason: String,
    },
}

impl AgentManifest {
    /// Reads success or failure from a whole transcript.
    ///
    /// The exit code says nothing: pi exits with 0 when its model failed. Reads from the end, so that
    /// its time doesn't grow with the transcript. Never fails: output that can't be read is a failure
    /// of the agent.
    #[must_use]
    pub fn judge(&self, transcript: &[u8]) -> Outcome {
        let rule = &self.outcome;
        let OutputFormat::JsonLines = rule.format;
        let failed = |reason: String| Outcome::Failed { reason };
        let mut lines = transcript
            .rsplit(|byte| *byte == b'\n')
            .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
            .map(|line| Value::parse(line).ok())
            .peekable();
        let Some(last) = lines.peek() else {
            return failed("the agent wrote nothing to its output".to_owned());
        };
        let settled = last.as_ref().is_some_and(|line| holds(&rule.last_line, line.as_ref()));
        let Some(message) = lines.flatten().find(|line| holds(&rule.message, line.as_ref())) else {
            return failed("the agent's output holds no message of the model".to_owned());
        };
        let text = |pointer: &str| message.as_ref().pointer(pointer).and_then(ValueRef::as_str);
        let stop_reason = text(&rule.stop_reason).unwrap_or("(none stated)");
        if !rule.success.iter().any(|good| good == stop_reason) {
            let detail = rule.error.as_deref().and_then(text).map(|text| format!(": {}", clip(text)));
            return failed(format!(
                "the model's last message ended with `{}`{}",
                clip(stop_reason),
                detail.unwrap_or_default()
            ));
        }
        if !settled {
            return failed("the agent's output breaks off after the model's last message".to_owned());
        }
        Outcome::Success { stop_reason: stop_reason.to_owned() }
    }
}

fn holds(wanted: &BTreeMap<String, String>, line: ValueRef<'_>) -> bool {
    wanted.iter().all(|(pointer, text)| line.pointer(pointer).and_then(ValueRef::as_str) == Some(text.as_str()))
}

/// An agent's words are as long as it likes; an error message is not.
fn clip(text: &str) -> &str {
    match text.char_indices().nth(300) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Agents;
    use super::*;

    fn judge(transcript: &str) -> Outcome {
        let agents = Agents::builtin().expect("the builtin manifests are valid");
        agents.find("pi").expect("pi is built in").manifest().judge(transcript.as_bytes())
    }

    const ASSISTANT: &str =
        r#"{"type":"message_end","message":{"role":"assistant","stopReason":"REASON","errorMessage":"out of memory"}}"#;
    const TOOL: &str = r#"{"type":"message_end","message":{"role":"toolResult","stopReason":"stop"}}"#;
    const SETTLED: &str = r#"{"type":"agent_settled"}"#;

    #[test]
    fn the_last_message_of_the_model_decides() {
        let tool_use = ASSISTANT.replace("REASON", "toolUse");
        let stop = ASSISTANT.replace("REASON", "stop");
        let length = ASSISTANT.replace("REASON", "length");
        assert_eq!(
            judge(&format!("{tool_use}\n{TOOL}\n{stop}\n{SETTLED}\n")),
            Outcome::Success { stop_reason: "stop".to_owned() }
        );
        assert_eq!(judge(&format!("{length}\n{SETTLED}")), Outcome::Success { stop_reason: "length".to_owned() });
        let Outcome::Failed { reason } =
            judge(&format!("{stop}\n{}\n{SETTLED}\n", ASSISTANT.replace("REASON", "error")))
        else {
            panic!("an error after a stop must fail");
        };
        assert_eq!(reason, "the model's last message ended with `error`: out of memory");
    }

    #[test]
    fn half_a_character_in_the_models_words_is_no_reason_to_fail() {
        let stop = ASSISTANT.replace("REASON", "stop").replace("out of memory", "\\ud83e");
        assert!(matches!(judge(&format!("{stop}\n{SETTLED}")), Outcome::Success { .. }), "{stop}");
    }

    #[test]
    fn output_that_is_cut_off_or_no_output_is_a_failure() {
        let stop = ASSISTANT.replace("REASON", "stop");
        for transcript in [
            String::new(),
            "\n \n".to_owned(),
            SETTLED.to_owned(),
            stop.clone(),
            format!("{stop}\n{{\"type\":\"agent_set"),
            "not json".to_owned(),
        ] {
            assert!(matches!(judge(&transcript), Outcome::Failed { .. }), "{transcript:?}");
        }
    }
}
